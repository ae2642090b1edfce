"""Timeline of a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lcm.domain.lifecycle import FINAL, HAPPY_PATH, SessionStatus
from lcm.models import LabletSession, SessionTransition


@dataclass(frozen=True)
class TimelineStep:
    """A past, current or expected status of a session; for an expected one `at` is the planned time."""

    status: SessionStatus
    at: datetime | None
    lasted: timedelta | None
    state: str  # past, now, next

    @property
    def label(self) -> str:
        return self.status.label


def session_timeline(
    session: LabletSession, transitions: Sequence[SessionTransition], *, now: datetime
) -> list[TimelineStep]:
    """Return the steps of the current attempt, then the expected next steps."""
    steps = [step for step in transitions if step.attempt == session.attempt] or list(transitions)
    past: list[TimelineStep] = []
    for index, step in enumerate(steps):
        status = SessionStatus(step.to_status)
        following = steps[index + 1].at if index + 1 < len(steps) else None
        is_last = following is None
        # The clock of the process that made the transition may be ahead of this one.
        end = following or max(now, step.at)
        lasted = None if is_last and status in FINAL else end - step.at
        state = "now" if is_last and status not in FINAL else "past"
        past.append(TimelineStep(status, step.at, lasted, state))
    return past + _expected_steps(session, now)


def _expected_steps(session: LabletSession, now: datetime) -> list[TimelineStep]:
    """Return the expected steps; only the start and end of the timeslot have a planned time."""
    status = SessionStatus(session.status)
    if status not in HAPPY_PATH or status in FINAL:
        return []
    planned = {SessionStatus.RUNNING: session.starts_at, SessionStatus.COLLECTING: session.ends_at}
    future = {each: at for each, at in planned.items() if at > now}
    rest = HAPPY_PATH[HAPPY_PATH.index(status) + 1 :]
    return [TimelineStep(each, future.get(each), None, "next") for each in rest]
