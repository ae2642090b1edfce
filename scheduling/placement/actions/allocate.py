"""Place waiting jobs on free nodes, in queue order."""

from __future__ import annotations

from operator import attrgetter

from scheduling.placement.framework.cycle import Cycle, Verdict, VerdictOutcome
from scheduling.placement.framework.explanation import explain_refusal
from scheduling.placement.framework.gangs import first_unplaceable_task, try_spread
from scheduling.placement.framework.job_order import jobs_in_order
from scheduling.placement.framework.model import Job


def allocate(cycle: Cycle) -> None:
    """Give each job a verdict. Space held for a job is reserved before anything else is placed."""
    ssn = cycle.ssn
    held = [job for job in ssn.snapshot.waiting if job.held_on in ssn.nodes.index]
    held.sort(key=attrgetter("created", "id"))
    on_held_nodes = {job.id: _place_on_held_node(cycle, job) for job in held if not ssn.refused(job)}
    for position, job in enumerate(jobs_in_order(ssn, ssn.snapshot.waiting), 1):
        verdict = on_held_nodes.get(job.id) or _place(cycle, job)
        verdict.position = position
        cycle.verdicts.append(verdict)


def _place_on_held_node(cycle: Cycle, job: Job) -> Verdict:
    """Place the job on the node that was cleared for it, or reserve what will be free there."""
    ssn, task = cycle.ssn, job.whole
    number = ssn.nodes.index[job.held_on]
    candidates = ssn.candidates(task, job)
    fits = candidates.allows(number)
    scores = candidates.rescore(number) if fits and cycle.keep_scores else {}
    # Reserve the GPUs that are free already, so that no other job takes them meanwhile.
    part = ssn.part_on(task, number)
    ssn.change(job, part, 1, taking=True)
    return Verdict(job, 0, VerdictOutcome.PLACED if fits else VerdictOutcome.HELD, (part,), scores)


def _place(cycle: Cycle, job: Job) -> Verdict:
    ssn = cycle.ssn
    reasons = ssn.refused(job)
    if reasons:
        return Verdict(job, 0, VerdictOutcome.REFUSED, why=explain_refusal(ssn, reasons))
    if job.is_spread:
        return _place_spread(cycle, job)
    task = job.whole
    candidates = ssn.candidates(task, job)
    number = candidates.best()
    if number is None:
        return Verdict(job, 0, VerdictOutcome.WAITING, unplaced=candidates)
    scores = candidates.score_by_plugin(number) if cycle.keep_scores else {}
    part = ssn.part_on(task, number)
    ssn.change(job, part, 1, taking=True)
    return Verdict(job, 0, VerdictOutcome.PLACED, (part,), scores)


def _place_spread(cycle: Cycle, job: Job) -> Verdict:
    """Place the tasks one by one on their best nodes, all or none, with one lease per node."""
    ssn = cycle.ssn
    statement = ssn.statement()
    tried = try_spread(ssn, job, statement, keep_scores=cycle.keep_scores)
    statement.discard()
    if tried.unplaced is not None:
        return Verdict(
            job, 0, VerdictOutcome.WAITING, unplaced=first_unplaceable_task(ssn, job) or tried.unplaced
        )
    parts = tried.parts
    for part in parts:
        ssn.change(job, part, 1, taking=True)
    return Verdict(job, 0, VerdictOutcome.PLACED, parts, tried.scores)
