"""Give waiting jobs the nodes that are free, in the order of the queue."""

from __future__ import annotations

from scheduling.placement.framework.cycle import Cycle, Outcome, Verdict
from scheduling.placement.framework.explanation import refusal
from scheduling.placement.framework.gangs import first_refusing, try_apart
from scheduling.placement.framework.job_order import in_order
from scheduling.placement.framework.model import Job


def run(cycle: Cycle) -> None:
    """One verdict a job. Space that is being cleared for someone is theirs before anything else."""
    ssn = cycle.ssn
    held = sorted((job for job in ssn.snapshot.waiting if job.held_on in ssn.nodes.index), key=_first_come)
    kept = {job.id: _keep(cycle, job) for job in held if not ssn.refused(job)}
    for position, job in enumerate(in_order(ssn, ssn.snapshot.waiting), 1):
        verdict = kept.get(job.id) or _place(cycle, job)
        verdict.position = position
        cycle.verdicts.append(verdict)


def _first_come(job: Job) -> tuple[float, str]:
    return job.created, job.id


def _keep(cycle: Cycle, job: Job) -> Verdict:
    """The job on the node that was cleared for it, or its claim on what will be free there."""
    ssn, task = cycle.ssn, job.whole
    number = ssn.nodes.index[job.held_on]
    candidates = ssn.candidates(task, job)
    fits = candidates.allows(number)
    scores = candidates.score_anew(number) if fits and cycle.keep_scores else {}
    # Of GPUs it gets what is free already, so that nobody else takes them while it waits for the rest.
    part = ssn.part_on(task, number)
    ssn.change(job, part, 1, taking=True)
    return Verdict(job, 0, Outcome.PLACED if fits else Outcome.HELD, (part,), scores)


def _place(cycle: Cycle, job: Job) -> Verdict:
    ssn = cycle.ssn
    reasons = ssn.refused(job)
    if reasons:
        return Verdict(job, 0, Outcome.REFUSED, why=refusal(ssn, reasons))
    if job.apart:
        return _place_apart(cycle, job)
    task = job.whole
    candidates = ssn.candidates(task, job)
    number = candidates.best()
    if number is None:
        return Verdict(job, 0, Outcome.WAITING, stuck=candidates)
    scores = candidates.score_by_plugin(number) if cycle.keep_scores else {}
    part = ssn.part_on(task, number)
    ssn.change(job, part, 1, taking=True)
    return Verdict(job, 0, Outcome.PLACED, (part,), scores)


def _place_apart(cycle: Cycle, job: Job) -> Verdict:
    """Task by task, each where it is best; all of them or none, with one lease a node."""
    ssn = cycle.ssn
    statement = ssn.statement()
    tried = try_apart(ssn, job, statement, keep_scores=cycle.keep_scores)
    statement.discard()
    if tried.stuck is not None:
        return Verdict(job, 0, Outcome.WAITING, stuck=first_refusing(ssn, job) or tried.stuck)
    parts = tried.parts
    for part in parts:
        ssn.change(job, part, 1, taking=True)
    return Verdict(job, 0, Outcome.PLACED, parts, tried.scores)
