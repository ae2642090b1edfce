"""What is done for a session in each of its statuses. Each stage can be begun again at any point.

A stage answers in how many seconds it wants to look again; None: when LCM tells something new.
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

OVER = "its timeslot is over"
NO_TOPOLOGY = "its definition has no topology, and CML cannot import a lab without one"
LAST_OBSERVATION = "last observation"
SOON = 1.0
LCM_AWAY = 5.0


async def handle_scheduled(desk: StageContext, session: Session, places: Places) -> float | None:
    """Begin when the timeslot is near; LCM's consent comes before anything is done."""
    if desk.is_over(session):
        await desk.end(session, model.CANCELLED, f"{OVER} before it could start")
        return None
    if not desk.clock.is_known or desk.now() >= session.ends_at:
        return LCM_AWAY
    early = (session.starts_at - desk.now()).total_seconds() - desk.config.start_lead_seconds
    if early > 0:
        return early
    desk.memory(session).settled_at = desk.now()
    await desk.move(session, model.INSTANTIATING)
    return None


async def handle_instantiating(desk: StageContext, session: Session, places: Places) -> float | None:
    """Import under the mark, ports into the tags, start, wait until it has converged."""
    if desk.is_over(session):
        return await _end_early(desk, session, f"{OVER} before it was ready")
    if desk.age(session) > desk.config.boot_timeout_seconds:
        why = f"the lab did not converge within {desk.config.boot_timeout_seconds:g} s"
        return await give_up(desk, session, places, why)
    if any(not place.part.topology for place in places):
        return await give_up(desk, session, places, NO_TOPOLOGY)
    try:
        if all([await _is_up(desk, session, place) for place in places]):
            await desk.move(session, model.READY, _said_of_links(session))
            return None
    except TemplateMismatch as error:
        return await give_up(desk, session, places, f"the ports cannot be written: {error}")
    except CmlError as error:
        if is_retryable(error):
            raise
        return await give_up(desk, session, places, str(error))
    return desk.config.boot_poll_seconds


async def _end_early(desk: StageContext, session: Session, reason: str) -> float | None:
    if not await desk.still_over(session):
        return LCM_AWAY
    await desk.end(session, model.STOPPING, reason)
    return None


async def _is_up(desk: StageContext, session: Session, place: PartOnWorker) -> bool:
    """Whether the lab of a part has converged; one that does not run is started."""
    lab_id, worker = await _prepared_lab(desk, session, place), place.worker
    if lab_id is None:
        return False
    if await worker.cml.lab_state(lab_id) != STARTED:
        await worker.start(lab_id)
        return False
    return await worker.cml.check_if_converged(lab_id)


def _said_of_links(session: Session) -> str:
    """A lab ends at its worker: what was between two of them is missing."""
    return f"links between workers are left out: {', '.join(session.left_out)}" if session.left_out else ""


async def _prepared_lab(desk: StageContext, session: Session, place: PartOnWorker) -> str | None:
    """The lab of a part, imported once, with its ports in the tags; None when it has to be waited for."""
    (part, worker), memory = place, desk.memory(session).on(place)
    if memory.prepared and memory.lab_id:
        return memory.lab_id
    lab_id = memory.lab_id = await _imported_lab(desk, session, place)
    if lab_id is None:
        return None
    nodes = await worker.cml.nodes(lab_id)
    template = [entry for entry in session.port_template if part.has(entry["node_label"])]
    changes = tags_to_write(nodes.items, template, session.allocated_ports)
    for node_id, tags in changes.items():
        await worker.cml.set_node_tags(lab_id, node_id, tags)
    memory.prepared = True
    return lab_id


async def _imported_lab(desk: StageContext, session: Session, place: PartOnWorker) -> str | None:
    """The lab of a part by its mark, else a new one.

    CML may still be at an import that we gave up, or that one before us began: it is waited for.
    """
    (part, worker), memory = place, desk.memory(session)
    labs = await worker.labs_of(LabOwner(session.id, session.attempt))
    for twin in labs[1:]:
        await worker.remove(twin.id)
    if labs:
        return labs[0].id
    settling = timedelta(seconds=desk.config.import_settle_seconds)
    memory.settled_at = memory.settled_at or desk.now() + settling
    if desk.now() < memory.settled_at:
        return None
    title = format_title(session.id, session.attempt, part.title)
    try:
        return await worker.import_lab(part.topology or "", title)
    except CmlError as error:
        if has_unknown_result(error):
            memory.settled_at = desk.now() + settling
        raise


async def give_up(desk: StageContext, session: Session, places: Places, why: str) -> float | None:
    """Clean up, then say what went wrong; a worker that does not let us is left to the search for orphans."""
    is_gone = True
    try:
        await desk.remove_labs(session, places)
    except CmlError:
        if desk.age(session) < desk.config.boot_timeout_seconds + desk.config.stop_timeout_seconds:
            raise
        is_gone = False
    await desk.fail(session, why, lab_is_gone=is_gone)
    return None


async def handle_ready(desk: StageContext, session: Session, places: Places) -> float | None:
    """Runs at once, or when its user has arrived."""
    if desk.is_over(session):
        return await _end_early(desk, session, OVER)
    if not session.awaits_arrival or session.arrived_at:
        await desk.move(session, model.RUNNING)
        return None
    return await _still_there(desk, session, places)


async def handle_running(desk: StageContext, session: Session, places: Places) -> float | None:
    """Observe when asked, and at the end of the timeslot; notice when the lab is lost."""
    memory = desk.memory(session)
    asked = session.requests.get("observe")
    if desk.is_over(session):
        return await _collect(desk, session, places)
    if asked and memory.answered_request != asked:
        labs = await desk.labs_of(session, places)
        if labs:
            memory.answered_request = asked
            seen = await desk.observe(session, labs, observer=MANUAL)
            await desk.post_observation(session, seen, f"observation asked for at {asked}")
    return await _still_there(desk, session, places)


async def _collect(desk: StageContext, session: Session, places: Places) -> float | None:
    """Observe the lab as it was used, say that we are collecting, post.

    While LCM does not answer only the observation is kept: the session may have been extended meanwhile.
    """
    memory = desk.memory(session)
    try:
        labs = await desk.labs_of(session, places)
        if not labs:
            return await _lost(desk, session)
    except CmlError as error:
        if not desk.is_over(session, for_seconds=desk.config.observe_seconds):
            raise
        memory.observed_end, memory.why_missing, labs = session.ends_at, str(error), []
    over = await desk.still_over(session)
    if over is False:
        return SOON
    is_observed = memory.observed_end == session.ends_at
    if over is None and is_observed:
        return LCM_AWAY
    seen = None if is_observed else await desk.observe(session, labs)
    if over and not await desk.end(session, model.COLLECTING, OVER) and not desk.outbox.waiting(session.id):
        return SOON
    if not is_observed:
        memory.observed_end = session.ends_at
        memory.why_missing = await desk.post_observation(session, seen, _last(session))
    return SOON if over else LCM_AWAY


async def handle_collecting(desk: StageContext, session: Session, places: Places) -> float | None:
    await _observe_once(desk, session, places)
    if desk.outbox.waiting(session.id):
        return SOON
    # LCM also ends sessions whose worker will be taken away, and gives the reason itself.
    reason = OVER if desk.is_over(session) else ""
    await desk.move(session, model.STOPPING, _and_unobserved(desk, session, reason))
    return None


async def handle_stopping(desk: StageContext, session: Session, places: Places) -> float | None:
    """Take the lab down; one that was called off while it ran is observed first."""
    is_late = desk.age(session) > desk.config.stop_timeout_seconds
    if is_late and not await desk.labs_are_gone(session, places):
        why = f"the lab could not be taken down within {desk.config.stop_timeout_seconds:g} s"
        await desk.fail(session, _and_unobserved(desk, session, why), lab_is_gone=False)
        return None
    await _observe_once(desk, session, places)
    if desk.outbox.waiting(session.id):
        return SOON
    await desk.remove_labs(session, places)
    await desk.move(session, model.TERMINATED, _and_unobserved(desk, session))
    return None


async def _observe_once(desk: StageContext, session: Session, places: Places) -> None:
    """The last observation of a lab that runs, or why there is none; teardown goes on in any case."""
    memory = desk.memory(session)
    if memory.observed_end == session.ends_at:
        return
    try:
        labs = await desk.labs_of(session, places)
        memory.why_missing = await _not_running(labs)
    except CmlError as error:
        memory.why_missing = str(error)
        return
    if memory.why_missing:
        return
    memory.observed_end = session.ends_at
    seen = await desk.observe(session, labs)
    memory.why_missing = await desk.post_observation(session, seen, _last(session))


async def _not_running(labs: Sequence[LabLocation]) -> str:
    """Why there is nothing to observe, if there is not."""
    for worker, lab_id in labs:
        if await worker.cml.lab_state(lab_id) != STARTED:
            return "its lab does not run"
        if not await worker.cml.check_if_converged(lab_id):
            return "its lab was still starting"
    return "" if labs else "its lab is gone"


def _and_unobserved(desk: StageContext, session: Session, reason: str = "") -> str:
    """A reason, and why LCM has no observation; a run before us may have seen to it."""
    why = desk.memory(session).why_missing
    missing = f"not observed: {why}" if why and not session.observed_at else ""
    return "; ".join(part for part in (reason, missing) if part)


def _last(session: Session) -> str:
    """Under this name the last observation is posted: once, whatever happens in between."""
    return f"{LAST_OBSERVATION} {session.ends_at.isoformat()}"


async def _still_there(desk: StageContext, session: Session, places: Places) -> float | None:
    if not await desk.labs_of(session, places):
        return await _lost(desk, session)
    left = (session.ends_at - desk.now()).total_seconds()
    return min(left if left > 0 else SOON, desk.config.running_check_seconds)


async def _lost(desk: StageContext, session: Session) -> float | None:
    """Of one that is spread the other labs are still there."""
    await desk.fail(session, "its lab vanished from the worker", lab_is_gone=len(session.parts) == 1)
    return None


STAGES: Mapping[str, Stage] = {
    model.SCHEDULED: handle_scheduled,
    model.INSTANTIATING: handle_instantiating,
    model.READY: handle_ready,
    model.RUNNING: handle_running,
    model.COLLECTING: handle_collecting,
    model.STOPPING: handle_stopping,
}
# Stages that change what is on a worker: only while LCM confirms that the pool is ours.
NEED_LEASE = frozenset({model.SCHEDULED, model.INSTANTIATING, model.STOPPING})
