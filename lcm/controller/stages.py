"""What is done for a session in each of its statuses. Each stage can be begun again at any point.

A stage answers in how many seconds it wants to look again; None: when LCM tells something new.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from lcm.cml.call_errors import CmlError
from lcm.controller import model
from lcm.controller.desk import Desk
from lcm.controller.marks import Mark, title_for
from lcm.controller.model import Session
from lcm.controller.tagging import TemplateMismatch, tags_to_write
from lcm.controller.worker import STARTED, Worker, is_passing

Stage = Callable[[Desk, Session, Worker], Awaitable[float | None]]

OVER = "its timeslot is over"
LAST_OBSERVATION = "last observation"
SOON = 1.0
LCM_AWAY = 5.0


async def scheduled(desk: Desk, session: Session, worker: Worker) -> float | None:
    """Begin when the timeslot is near; LCM's consent comes before anything is done."""
    if desk.is_over(session):
        await desk.move(session, model.CANCELLED, f"{OVER} before it could start")
        return None
    early = (session.starts_at - desk.now()).total_seconds() - desk.config.start_lead_seconds
    if early > 0:
        return early
    await desk.move(session, model.INSTANTIATING)
    return None


async def instantiating(desk: Desk, session: Session, worker: Worker) -> float | None:
    """Import under the mark, ports into the tags, start, wait until it has converged."""
    if desk.is_over(session):
        return await _end_early(desk, session, f"{OVER} before it was ready")
    if desk.age(session) > desk.config.boot_timeout_seconds:
        why = f"the lab did not converge within {desk.config.boot_timeout_seconds:g} s"
        return await give_up(desk, session, worker, why)
    try:
        lab_id = await _prepared_lab(desk, session, worker)
        if await worker.cml.lab_state(lab_id) != STARTED:
            await worker.start(lab_id)
        elif await worker.cml.check_if_converged(lab_id):
            await desk.move(session, model.READY)
            return None
    except TemplateMismatch as error:
        return await give_up(desk, session, worker, f"the ports cannot be written: {error}")
    except CmlError as error:
        if is_passing(error):
            raise
        return await give_up(desk, session, worker, str(error))
    return desk.config.boot_poll_seconds


async def _end_early(desk: Desk, session: Session, reason: str) -> float | None:
    if not await desk.still_over(session):
        return LCM_AWAY
    await desk.move(session, model.STOPPING, reason)
    return None


async def _prepared_lab(desk: Desk, session: Session, worker: Worker) -> str:
    """The session's lab, imported once, with its ports in the tags."""
    memory = desk.memory(session)
    if memory.prepared and memory.lab_id:
        return memory.lab_id
    labs = await worker.labs_of(Mark(session.id, session.attempt))
    for twin in labs[1:]:
        await worker.remove(twin.id)
    if labs:
        lab_id = labs[0].id
    else:
        title = title_for(session.id, session.attempt, session.definition_name)
        lab_id = await worker.import_lab(session.topology or "", title)
    memory.lab_id = lab_id
    nodes = await worker.cml.nodes(lab_id)
    changes = tags_to_write(nodes.items, session.port_template, session.allocated_ports)
    for node_id, tags in changes.items():
        await worker.cml.set_node_tags(lab_id, node_id, tags)
    memory.prepared = True
    return lab_id


async def give_up(desk: Desk, session: Session, worker: Worker, why: str) -> float | None:
    """Clean up, then say what went wrong; a worker that does not let us is left to the search for orphans."""
    is_gone = True
    try:
        await desk.remove_labs(session, worker)
    except CmlError:
        if desk.age(session) < desk.config.boot_timeout_seconds + desk.config.stop_timeout_seconds:
            raise
        is_gone = False
    await desk.fail(session, why, lab_is_gone=is_gone)
    return None


async def ready(desk: Desk, session: Session, worker: Worker) -> float | None:
    """Runs at once, or when its user has arrived."""
    if desk.is_over(session):
        return await _end_early(desk, session, OVER)
    if not session.awaits_arrival or session.arrived_at:
        await desk.move(session, model.RUNNING)
        return None
    return await _still_there(desk, session, worker)


async def running(desk: Desk, session: Session, worker: Worker) -> float | None:
    """Observe when asked, and at the end of the timeslot; notice when the lab is lost."""
    memory = desk.memory(session)
    asked = session.requests.get("observe")
    if desk.is_over(session):
        return await _collect(desk, session, worker)
    if asked and memory.answered_request != asked:
        lab_id = await desk.lab_of(session, worker)
        if lab_id:
            memory.answered_request = asked
            seen = await desk.observe(session, worker, lab_id)
            await desk.post_observation(session, seen, f"observation asked for at {asked}")
    return await _still_there(desk, session, worker)


async def _collect(desk: Desk, session: Session, worker: Worker) -> float | None:
    """Observe the lab as it was used, say that we are collecting, post.

    While LCM does not answer only the observation is kept: the session may have been extended meanwhile.
    """
    memory = desk.memory(session)
    try:
        lab_id = await desk.lab_of(session, worker)
    except CmlError as error:
        if not desk.is_over(session, for_seconds=desk.config.observe_seconds):
            raise
        memory.observed, memory.why_missing, lab_id = True, str(error), ""
    if lab_id is None:
        return await _lost(desk, session)
    over = await desk.still_over(session)
    if over is False:
        return SOON
    if over is None and memory.observed:
        return LCM_AWAY
    seen = None if memory.observed else await desk.observe(session, worker, lab_id)
    if over and not await desk.move(session, model.COLLECTING, OVER) and not desk.outbox.waiting(session.id):
        return SOON
    if not memory.observed:
        memory.observed = True
        memory.why_missing = await desk.post_observation(session, seen, _last(session))
    return SOON if over else LCM_AWAY


async def collecting(desk: Desk, session: Session, worker: Worker) -> float | None:
    await _observe_once(desk, session, worker)
    if desk.outbox.waiting(session.id):
        return SOON
    await desk.move(session, model.STOPPING, _and_unobserved(desk, session, OVER))
    return None


async def stopping(desk: Desk, session: Session, worker: Worker) -> float | None:
    """Take the lab down; one that was called off while it ran is observed first."""
    if desk.age(session) > desk.config.stop_timeout_seconds:
        why = f"the lab could not be taken down within {desk.config.stop_timeout_seconds:g} s"
        await desk.fail(session, _and_unobserved(desk, session, why), lab_is_gone=False)
        return None
    await _observe_once(desk, session, worker)
    if desk.outbox.waiting(session.id):
        return SOON
    await desk.remove_labs(session, worker)
    await desk.move(session, model.TERMINATED, _and_unobserved(desk, session))
    return None


async def _observe_once(desk: Desk, session: Session, worker: Worker) -> None:
    """The last observation of a lab that runs, or why there is none; teardown goes on in any case."""
    memory = desk.memory(session)
    if memory.observed:
        return
    try:
        lab_id = await desk.lab_of(session, worker)
        memory.why_missing = await _not_running(worker, lab_id)
    except CmlError as error:
        memory.why_missing = str(error)
        return
    if lab_id is None or memory.why_missing:
        return
    memory.observed = True
    seen = await desk.observe(session, worker, lab_id)
    memory.why_missing = await desk.post_observation(session, seen, _last(session))


async def _not_running(worker: Worker, lab_id: str | None) -> str:
    """Why there is nothing to observe, if there is not."""
    if lab_id is None:
        return "its lab is gone"
    if await worker.cml.lab_state(lab_id) != STARTED:
        return "its lab does not run"
    return "" if await worker.cml.check_if_converged(lab_id) else "its lab was still starting"


def _and_unobserved(desk: Desk, session: Session, reason: str = "") -> str:
    """A reason, and why LCM has no observation; a run before us may have seen to it."""
    why = desk.memory(session).why_missing
    missing = f"not observed: {why}" if why and not session.observed_at else ""
    return "; ".join(part for part in (reason, missing) if part)


def _last(session: Session) -> str:
    """Under this name the last observation is posted: once, whatever happens in between."""
    return f"{LAST_OBSERVATION} {session.ends_at.isoformat()}"


async def _still_there(desk: Desk, session: Session, worker: Worker) -> float | None:
    if await desk.lab_of(session, worker) is None:
        return await _lost(desk, session)
    left = (session.ends_at - desk.now()).total_seconds()
    return max(0.0, min(left, desk.config.running_check_seconds))


async def _lost(desk: Desk, session: Session) -> float | None:
    await desk.fail(session, "its lab vanished from the worker", lab_is_gone=True)
    return None


STAGES: Mapping[str, Stage] = {
    model.SCHEDULED: scheduled,
    model.INSTANTIATING: instantiating,
    model.READY: ready,
    model.RUNNING: running,
    model.COLLECTING: collecting,
    model.STOPPING: stopping,
}
# Stages that change what is on a worker: only while LCM confirms that the pool is ours.
CHANGING = frozenset({model.SCHEDULED, model.INSTANTIATING, model.STOPPING})
