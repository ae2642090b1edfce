"""The coordinator runs lifecycle handlers and observers, one run of each at a time.

Handlers report outcomes and only the coordinator writes transitions; observers only observe and record.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

from django.utils import timezone

from lcm.db.clock import database_now
from lcm.domain import lifecycle
from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import LabletSession
from lcm.services.session_transitions import transition_sessions
from scheduling.coordination.handlers.base import HandlerOutcome, SessionLifecycleHandler
from scheduling.coordination.leases import HeldLease, lease
from scheduling.coordination.observer import (
    ObserverHandler,
    ObserverResult,
    call,
    check_observer,
    in_key_order,
)
from scheduling.extensions import SchedulingExtension
from scheduling.metrics import count_run
from scheduling.models import RunKind
from scheduling.placement.framework.entry_points import load_entry_points
from scheduling.services.observer_runs import clear_failures, count_failures, record_run

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=10)
PAGE = 500
# A run observes nothing if its clock leads that of the database by more: it would charge for future time.
MAX_CLOCK_LEAD = timedelta(minutes=5)
LEASE_LOST = "the lease was lost, and another run may have begun"
ENTRY_POINTS = "lcm.observers"

Clock = Callable[[], datetime]


@dataclass
class HandlerResult(ObserverResult):
    """Counts and errors of a handler's run."""

    stale_count: int = 0
    skipped_count: int = 0


AnyResult = TypeVar("AnyResult", bound=ObserverResult)
Registered = TypeVar("Registered", bound="SessionLifecycleHandler | ObserverHandler[Any]")
# Runs a handler or observer, part by part.
Runner = Callable[[Registered, datetime, HeldLease], Iterator[AnyResult]]


class ScheduleCoordinator:
    """Registry and runner of handlers and observers."""

    def __init__(self) -> None:
        self.handlers: dict[str, SessionLifecycleHandler] = {}
        self.observers: dict[str, ObserverHandler[Any]] = {}
        # Problems of installed observers that cannot run, by entry point.
        self.rejected: dict[str, str] = {}
        # Names of installed observers, with their entry points.
        self.installed: dict[str, str] = {}

    def register_handler(self, handler: SessionLifecycleHandler) -> None:
        """Register a handler; names are unique across handlers and observers."""
        self._check_name(handler)
        self.handlers[handler.name()] = handler

    def register_observer(self, observer: ObserverHandler[Any]) -> None:
        """Register an observer of an app."""
        check_observer(observer)
        self._check_name(observer)
        self.observers[observer.name()] = observer

    def load_installed(self) -> None:
        """Register the handlers and observers of all apps and of installed packages."""
        added = SchedulingExtension.installed()
        for handler in added.handlers:
            self.register_handler(handler)
        for observer in added.observers:
            self.register_observer(observer)
        self.load_observers()

    def load_observers(self) -> None:
        """Register the observers of installed packages; observers that cannot run are reported."""
        self.rejected |= load_entry_points(ENTRY_POINTS, self._register_installed)

    def _register_installed(self, point: str, loaded: object) -> None:
        """Register an entry point: an observer, its class, or a function that returns one."""
        observer = check_observer(loaded() if callable(loaded) else loaded)
        name = observer.name()
        if name in self.handlers or name in self.observers:
            raise ValueError(f"there is already an observer or lifecycle handler “{name}”")
        self.observers[name] = observer
        self.installed[name] = point

    def process_handler(self, name: str, clock: Clock = timezone.now) -> HandlerResult | None:
        """Run a handler once: None if another run has its lease, an empty result for an unknown name."""
        return _process(RunKind.HANDLER, self.handlers.get(name), name, clock, HandlerResult(), _run_handler)

    def process_observer(self, name: str, clock: Clock = timezone.now) -> ObserverResult | None:
        """Run an observer once: None if another run has its lease, an empty result for an unknown name."""
        return _process(
            RunKind.OBSERVER, self.observers.get(name), name, clock, ObserverResult(), _run_observer
        )

    def _check_name(self, new: SessionLifecycleHandler | ObserverHandler[Any]) -> None:
        registered = self.handlers.get(new.name()) or self.observers.get(new.name())
        if registered is not None and type(registered) is not type(new):
            raise ValueError(f"the name “{new.name()}” is already used by {type(registered).__name__}")


def lease_name(name: str) -> str:
    return f"observer:{name}"


def _process(
    kind: RunKind,
    runnable: Registered | None,
    name: str,
    clock: Clock,
    result: AnyResult,
    run: Runner[Registered, AnyResult],
) -> AnyResult | None:
    """Run all parts under the lease; a lost lease ends the run and is reported."""
    if runnable is None:
        logger.error(f"unknown_{kind}", extra={kind.value: name})
        return result
    started, empty_result = time.perf_counter(), result
    with lease(lease_name(name), length=LEASE) as hold:
        if hold is None:
            return None
        now = clock()
        for part in _guarded(run(runnable, now, hold), name, hold, empty_result):
            result += part
        if not result.error and not hold.renew():
            result = replace(result, error=LEASE_LOST)
        duration_ms = round((time.perf_counter() - started) * 1000)
        # A run rejected for its clock is not listed before later runs.
        started_at = min(now, database_now())
        record_run(kind=kind, name=name, started_at=started_at, duration_ms=duration_ms, result=result)
    count_run(kind, name, duration_ms=duration_ms, result=result)
    _log_run(kind, name, duration_ms, result)
    return result


def _guarded(
    parts: Iterator[AnyResult], name: str, hold: HeldLease, empty_result: AnyResult
) -> Iterator[AnyResult]:
    """Run the parts while the lease lasts; an error while reading targets counts as a failure."""
    while True:
        if not hold.renew():
            logger.error("run_exceeded_lease", extra={"observer": name})
            yield replace(empty_result, error=LEASE_LOST)
            return
        try:
            yield next(parts)
        except StopIteration:
            return
        except Exception as error:
            logger.exception("run_failed", extra={"observer": name})
            yield replace(empty_result, failure_count=1, error=_error_text(error))
            return


def _run_observer(observer: ObserverHandler[Any], now: datetime, hold: HeldLease) -> Iterator[ObserverResult]:
    if (lead := now - database_now()) > MAX_CLOCK_LEAD:
        problem = f"the clock of this run is {lead.total_seconds():,.0f} s ahead of the database's"
        logger.error("run_rejected", extra={"observer": observer.name(), "reason": problem})
        yield ObserverResult(failure_count=1, error=f"{problem}; nothing was observed")
        return
    total: ObserverResult | None = None
    for targets in _in_pages(call(observer.fetch_targets, now=now), observer.page_size):
        for part in _observe_page(observer, targets, now):
            total = part if total is None else total + part
            yield part
    # Without an override there is nothing to call, so no event loop is started.
    if total is not None and type(observer).post_process is not ObserverHandler.post_process:
        call(observer.post_process, total, now=now)


def _run_handler(handler: SessionLifecycleHandler, now: datetime, hold: HeldLease) -> Iterator[HandlerResult]:
    for page in in_key_order(handler.sessions(now), PAGE):
        yield _process_page(handler, page, hold, now)


def _log_run(kind: RunKind, name: str, duration_ms: int, result: ObserverResult) -> None:
    """Log one line per run, except for handlers that found nothing to do."""
    counts = asdict(result)
    level = logging.INFO if kind == RunKind.OBSERVER or any(counts.values()) else logging.DEBUG
    logger.log(level, f"{kind}_ran", extra={kind.value: name, "duration_ms": duration_ms, **counts})


def _in_pages(targets: Iterable[Any], size: int) -> Iterator[list[Any]]:
    remaining = iter(targets)
    while page := list(islice(remaining, size)):
        yield page


def _observe_page(
    observer: ObserverHandler[Any], targets: Sequence[Any], now: datetime
) -> Iterator[ObserverResult]:
    """Observe a page of targets; if that fails, each alone, so that a bad target affects only itself."""
    try:
        result = call(observer.execute, targets, now=now)
    except Exception as error:
        if len(targets) == 1:
            logger.exception(
                "observation_failed", extra={"observer": observer.name(), "target": str(targets[0])[:200]}
            )
            yield ObserverResult(failure_count=1, error=_error_text(error))
            return
        logger.warning(
            "observer_page_failed", extra={"observer": observer.name(), "error": _error_text(error)}
        )
    else:
        yield _counts(result)
        return
    for target in targets:
        yield from _observe_page(observer, [target], now)


def _counts(result: Any) -> ObserverResult:
    """Return the counts of any result with `success_count` and `failure_count`, as integers."""
    try:
        counts = max(int(result.success_count), 0), max(int(result.failure_count), 0)
    except (AttributeError, TypeError, ValueError) as error:
        return ObserverResult(failure_count=1, error=f"execute returned no ObserverResult: {error}"[:300])
    return ObserverResult(*counts, str(getattr(result, "error", "") or ""))


def _process_page(
    handler: SessionLifecycleHandler, page: list[LabletSession], hold: HeldLease, now: datetime
) -> HandlerResult:
    """Run the handler on a page of sessions and write the transitions.

    A run that lost its lease meanwhile writes nothing: another run may have begun.
    """
    try:
        outcome = handler.execute(page, now)
    except Exception as error:
        logger.exception("handler_failed", extra={"handler": handler.name()})
        outcome = HandlerOutcome(failures={session.pk: _error_text(error) for session in page})
    if not hold.is_held():
        return HandlerResult()
    decided = outcome.successes.keys() | outcome.failures.keys()
    undecided = [session for session in page if session.pk not in decided]
    stale = {row.pk: handler.stale_reason(row) for row in undecided if handler.is_stale(row, now)}
    succeeded = _move(handler, page, outcome.successes, handler.success_status, hold, now)
    went_stale = _move(handler, page, stale, handler.stale_status, hold, now)
    _fail(handler, page, outcome.failures, hold, now)
    return HandlerResult(
        succeeded,
        len(outcome.failures),
        list(outcome.failures.values())[-1] if outcome.failures else "",
        stale_count=went_stale,
        skipped_count=len(undecided) - len(stale),
    )


def _move(
    handler: SessionLifecycleHandler,
    page: Sequence[LabletSession],
    reasons: Mapping[UUID, str],
    to: S | None,
    hold: HeldLease,
    now: datetime,
) -> int:
    """Move sessions in groups; end a session on its last attempt. Return how many moved."""
    if to is None:
        clear_failures(handler.name(), list(reasons))
        return len(reasons)
    moved = 0
    for (old, reason, last), group in _grouped(handler, page, reasons, hold):
        status = give_up_status(old) if last and to == S.PENDING else to
        text = f"{reason}; given up after attempt {handler.max_attempts}" if status != to else reason
        # The handler decided by the timeslot end it read. A session extended since is left to the next run.
        done = transition_sessions(
            sessions=group, old=old, to=status, actor=SYSTEM, now=now, reason=text, unless_extended=True
        )
        clear_failures(handler.name(), [session.pk for session in done])
        moved += len(done)
    return moved


def _fail(
    handler: SessionLifecycleHandler,
    page: Sequence[LabletSession],
    reasons: Mapping[UUID, str],
    hold: HeldLease,
    now: datetime,
) -> None:
    """Count the failures; then retry as the handler says, or end the session after the last attempt."""
    counts = count_failures(handler.name(), reasons, now=now)
    exhausted = {key: reasons[key] for key, count in counts.items() if count >= handler.max_attempts}
    to_retry = {key: reason for key, reason in reasons.items() if key not in exhausted}
    for (old, reason, _), group in _grouped(handler, page, exhausted, hold):
        text = f"{reason}; given up after attempt {handler.max_attempts}"
        moved = transition_sessions(
            sessions=group, old=old, to=give_up_status(old), actor=SYSTEM, now=now, reason=text
        )
        clear_failures(handler.name(), [session.pk for session in moved])
    if handler.failure_status is not None:
        for (old, reason, _), group in _grouped(handler, page, to_retry, hold):
            transition_sessions(
                sessions=group, old=old, to=handler.failure_status, actor=SYSTEM, now=now, reason=reason
            )


def give_up_status(status: S) -> S:
    """Return the status of a session without attempts left: FAILED if the lifecycle allows it."""
    return next(
        final
        for final in (S.FAILED, S.CANCELLED, S.STOPPING)
        if lifecycle.is_transition_allowed(status, final)
    )


Group = tuple[tuple[S, str, bool], list[LabletSession]]


def _grouped(
    handler: SessionLifecycleHandler,
    page: Iterable[LabletSession],
    reasons: Mapping[UUID, str],
    hold: HeldLease,
) -> Iterator[Group]:
    """Yield sessions with the same transition and reason, until the lease is lost."""
    groups: dict[tuple[S, str, bool], list[LabletSession]] = {}
    for session in page:
        if session.pk in reasons:
            last = session.attempt >= handler.max_attempts
            groups.setdefault((S(session.status), reasons[session.pk], last), []).append(session)
    for group in groups.items():
        if not hold.is_held():
            return
        yield group


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]


coordinator = ScheduleCoordinator()
process_handler = coordinator.process_handler
process_observer = coordinator.process_observer
