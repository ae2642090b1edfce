"""One handler for each session status. A handler can be restarted at any point.

A handler returns the seconds until its next run, or None to wait for a change in LCM.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta

from lcm.cml.client.errors import CmlError
from lcm.cml.observation.model import MANUAL
from lcm.controller import model
from lcm.controller.lab_titles import LabOwner, format_title
from lcm.controller.model import Session
from lcm.controller.port_tags import TemplateMismatch, tags_to_write
from lcm.controller.stage_context import LabLocation, PartOnWorker, StageContext
from lcm.controller.worker import STARTED, has_unknown_result, is_retryable

Places = Sequence[PartOnWorker]
Stage = Callable[[StageContext, Session, Places], Awaitable[float | None]]

TIMESLOT_ENDED = "the timeslot ended"
NO_TOPOLOGY = "the definition has no topology, so CML cannot import a lab"
LAST_OBSERVATION = "last observation"
RECHECK_SECONDS = 1.0
LCM_RETRY_SECONDS = 5.0


async def handle_scheduled(context: StageContext, session: Session, places: Places) -> float | None:
    """Move to INSTANTIATING when the timeslot is near. LCM must accept the transition first."""
    if context.is_over(session):
        await context.end(session, model.CANCELLED, f"{TIMESLOT_ENDED} before the session could start")
        return None
    if not context.clock.is_known or context.now() >= session.ends_at:
        return LCM_RETRY_SECONDS
    early = (session.starts_at - context.now()).total_seconds() - context.config.start_lead_seconds
    if early > 0:
        return early
    context.state_of(session).settled_at = context.now()
    await context.move(session, model.INSTANTIATING)
    return None


async def handle_instantiating(context: StageContext, session: Session, places: Places) -> float | None:
    """Import the lab, write ports into tags, start it and wait until it has converged."""
    if context.is_over(session):
        return await _end_early(context, session, f"{TIMESLOT_ENDED} before the lab was ready")
    if context.age(session) > context.config.boot_timeout_seconds:
        reason = f"the lab did not converge within {context.config.boot_timeout_seconds:g} s"
        return await give_up(context, session, places, reason)
    if any(not place.part.topology for place in places):
        return await give_up(context, session, places, NO_TOPOLOGY)
    try:
        if all([await _has_converged(context, session, place) for place in places]):
            await context.move(session, model.READY, _missing_links_note(session))
            return None
    except TemplateMismatch as error:
        return await give_up(context, session, places, f"ports could not be written to the lab: {error}")
    except CmlError as error:
        if is_retryable(error):
            raise
        return await give_up(context, session, places, str(error))
    return context.config.boot_poll_seconds


async def _end_early(context: StageContext, session: Session, reason: str) -> float | None:
    if not await context.confirm_over(session):
        return LCM_RETRY_SECONDS
    await context.end(session, model.STOPPING, reason)
    return None


async def _has_converged(context: StageContext, session: Session, place: PartOnWorker) -> bool:
    """Return whether the lab of a part has converged. Start it if it is not running."""
    lab_id, worker = await _prepared_lab(context, session, place), place.worker
    if lab_id is None:
        return False
    if await worker.cml.lab_state(lab_id) != STARTED:
        await worker.start(lab_id)
        return False
    return await worker.cml.check_if_converged(lab_id)


def _missing_links_note(session: Session) -> str:
    """Return a note about links between workers, which a spread lab cannot have."""
    return (
        f"links between workers are missing: {', '.join(session.dropped_links)}"
        if session.dropped_links
        else ""
    )


async def _prepared_lab(context: StageContext, session: Session, place: PartOnWorker) -> str | None:
    """Return the lab of a part, imported once and with port tags; None while it must be waited for."""
    (part, worker), state = place, context.state_of(session).on(place)
    if state.prepared and state.lab_id:
        return state.lab_id
    lab_id = state.lab_id = await _imported_lab(context, session, place)
    if lab_id is None:
        return None
    nodes = await worker.cml.nodes(lab_id)
    template = [entry for entry in session.port_template if part.has(entry["node_label"])]
    changes = tags_to_write(nodes.items, template, session.allocated_ports)
    for node_id, tags in changes.items():
        await worker.cml.set_node_tags(lab_id, node_id, tags)
    state.prepared = True
    return lab_id


async def _imported_lab(context: StageContext, session: Session, place: PartOnWorker) -> str | None:
    """Return the lab of a part by its owner mark, or import it.

    CML may still be working on an import that timed out or that an earlier process began. Wait for it first.
    """
    (part, worker), state = place, context.state_of(session)
    labs = await worker.labs_of(LabOwner(session.id, session.attempt))
    for duplicate in labs[1:]:
        await worker.remove(duplicate.id)
    if labs:
        return labs[0].id
    settling = timedelta(seconds=context.config.import_settle_seconds)
    state.settled_at = state.settled_at or context.now() + settling
    if context.now() < state.settled_at:
        return None
    title = format_title(session.id, session.attempt, part.title)
    try:
        return await worker.import_lab(part.topology or "", title)
    except CmlError as error:
        if has_unknown_result(error):
            state.settled_at = context.now() + settling
        raise


async def give_up(context: StageContext, session: Session, places: Places, reason: str) -> float | None:
    """Remove the labs, then report the failure. Labs that cannot be removed are left to orphan collection."""
    lab_removed = True
    try:
        await context.remove_labs(session, places)
    except CmlError:
        if context.age(session) < context.config.boot_timeout_seconds + context.config.stop_timeout_seconds:
            raise
        lab_removed = False
    await context.fail(session, reason, lab_removed=lab_removed)
    return None


async def handle_ready(context: StageContext, session: Session, places: Places) -> float | None:
    """Move to RUNNING at once, or when the user has arrived."""
    if context.is_over(session):
        return await _end_early(context, session, TIMESLOT_ENDED)
    if not session.awaits_arrival or session.arrived_at:
        await context.move(session, model.RUNNING)
        return None
    return await _check_lab(context, session, places)


async def handle_running(context: StageContext, session: Session, places: Places) -> float | None:
    """Observe on request and at the end of the timeslot, and detect a lost lab."""
    state = context.state_of(session)
    requested_at = session.requests.get("observe")
    if context.is_over(session):
        return await _collect(context, session, places)
    if requested_at and state.completed_request != requested_at:
        labs = await context.labs_of(session, places)
        if labs:
            state.completed_request = requested_at
            observation = await context.observe(session, labs, observer=MANUAL)
            await context.post_observation(session, observation, f"observation requested at {requested_at}")
    return await _check_lab(context, session, places)


async def _collect(context: StageContext, session: Session, places: Places) -> float | None:
    """Observe the lab, move to COLLECTING, post the observation.

    While LCM does not respond, only the observation is kept, because the session may have been extended.
    """
    state = context.state_of(session)
    try:
        labs = await context.labs_of(session, places)
        if not labs:
            return await _report_lost_lab(context, session)
    except CmlError as error:
        if not context.is_over(session, for_seconds=context.config.observe_seconds):
            raise
        state.observed_end, state.missing_reason, labs = session.ends_at, str(error), []
    over = await context.confirm_over(session)
    if over is False:
        return RECHECK_SECONDS
    is_observed = state.observed_end == session.ends_at
    if over is None and is_observed:
        return LCM_RETRY_SECONDS
    observation = None if is_observed else await context.observe(session, labs)
    if (
        over
        and not await context.end(session, model.COLLECTING, TIMESLOT_ENDED)
        and not context.outbox.pending_posts(session.id)
    ):
        return RECHECK_SECONDS
    if not is_observed:
        state.observed_end = session.ends_at
        state.missing_reason = await context.post_observation(session, observation, _final_name(session))
    return RECHECK_SECONDS if over else LCM_RETRY_SECONDS


async def handle_collecting(context: StageContext, session: Session, places: Places) -> float | None:
    await _observe_once(context, session, places)
    if context.outbox.pending_posts(session.id):
        return RECHECK_SECONDS
    # LCM also ends sessions whose worker is about to terminate, and states that reason itself.
    reason = TIMESLOT_ENDED if context.is_over(session) else ""
    await context.move(session, model.STOPPING, _with_missing_observation(context, session, reason))
    return None


async def handle_stopping(context: StageContext, session: Session, places: Places) -> float | None:
    """Take the lab down. Observe it first if the session was cancelled while running."""
    is_late = context.age(session) > context.config.stop_timeout_seconds
    if is_late and not await context.labs_are_gone(session, places):
        reason = f"the lab was not removed within {context.config.stop_timeout_seconds:g} s"
        await context.fail(session, _with_missing_observation(context, session, reason), lab_removed=False)
        return None
    await _observe_once(context, session, places)
    if context.outbox.pending_posts(session.id):
        return RECHECK_SECONDS
    await context.remove_labs(session, places)
    await context.move(session, model.TERMINATED, _with_missing_observation(context, session))
    return None


async def _observe_once(context: StageContext, session: Session, places: Places) -> None:
    """Post the final observation of a running lab, or record why there is none. Never blocks teardown."""
    state = context.state_of(session)
    if state.observed_end == session.ends_at:
        return
    try:
        labs = await context.labs_of(session, places)
        state.missing_reason = await _unobservable_reason(labs)
    except CmlError as error:
        state.missing_reason = str(error)
        return
    if state.missing_reason:
        return
    state.observed_end = session.ends_at
    observation = await context.observe(session, labs)
    state.missing_reason = await context.post_observation(session, observation, _final_name(session))


async def _unobservable_reason(labs: Sequence[LabLocation]) -> str:
    """Return why the labs cannot be observed, or an empty string."""
    for worker, lab_id in labs:
        if await worker.cml.lab_state(lab_id) != STARTED:
            return "the lab is not running"
        if not await worker.cml.check_if_converged(lab_id):
            return "the lab was still starting"
    return "" if labs else "the lab is gone"


def _with_missing_observation(context: StageContext, session: Session, reason: str = "") -> str:
    """Append why LCM has no observation, unless an earlier process posted one."""
    missing_reason = context.state_of(session).missing_reason
    missing = f"not observed: {missing_reason}" if missing_reason and not session.observed_at else ""
    return "; ".join(part for part in (reason, missing) if part)


def _final_name(session: Session) -> str:
    """Name of the final observation, which makes its post idempotent."""
    return f"{LAST_OBSERVATION} {session.ends_at.isoformat()}"


async def _check_lab(context: StageContext, session: Session, places: Places) -> float | None:
    if not await context.labs_of(session, places):
        return await _report_lost_lab(context, session)
    left = (session.ends_at - context.now()).total_seconds()
    return min(left if left > 0 else RECHECK_SECONDS, context.config.running_check_seconds)


async def _report_lost_lab(context: StageContext, session: Session) -> float | None:
    """Report a lost lab. A spread session still has its other labs."""
    await context.fail(session, "the lab disappeared from the worker", lab_removed=len(session.parts) == 1)
    return None


STAGES: Mapping[str, Stage] = {
    model.SCHEDULED: handle_scheduled,
    model.INSTANTIATING: handle_instantiating,
    model.READY: handle_ready,
    model.RUNNING: handle_running,
    model.COLLECTING: handle_collecting,
    model.STOPPING: handle_stopping,
}
# Stages that change a worker run only while LCM confirms the pool lease.
NEED_LEASE = frozenset({model.SCHEDULED, model.INSTANTIATING, model.STOPPING})
