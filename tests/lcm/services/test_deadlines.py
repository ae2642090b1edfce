"""Events before the end of sessions and tokens: when, for which objects, and once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given
from hypothesis import settings as properties
from hypothesis import strategies as st

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import ApiToken, ChangeLog, LabletSession
from lcm.services import deadlines
from lcm.services.deadlines import announce_ending_sessions, announce_expiring_tokens
from lcm.services.sessions import extend_session
from lcm.services.tokens import create_token, revoke_token, rotate_token
from lcm.tasks import detect_deadlines

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
WARNED = {S.SCHEDULED, S.INSTANTIATING, S.READY, S.RUNNING}


def entries(event):
    return list(ChangeLog.objects.filter(event=event).order_by("pk"))


@pytest.mark.parametrize("status", list(S))
def test_only_a_session_with_a_slot_ends_soon(status, session_in, now):
    session = session_in(status)
    found = announce_ending_sessions(now=session.ends_at - 5 * MINUTE)
    assert found == len(entries("session.ending_soon")) == (status in WARNED)


@pytest.mark.parametrize(
    ("minutes_left", "setting", "due"),
    [(15.1, 900, False), (15, 900, True), (0.1, 900, True), (0, 900, False), (-1, 900, False),
     (15, 600, False), (1, 0, False)],
)  # fmt: skip
def test_a_session_is_announced_from_the_set_time_until_its_end(
    minutes_left, setting, due, session_in, now, settings
):
    settings.CONFIG["ENDING_SOON"] = float(setting)
    session = session_in(S.RUNNING)
    assert announce_ending_sessions(now=session.ends_at - minutes_left * MINUTE) == due


def test_each_end_is_announced_once_and_an_extended_session_ends_soon_again(session_in, now, as_admin):
    session = session_in(S.RUNNING)
    first, later = session.ends_at, session.ends_at + 30 * MINUTE
    for ago in (10, 9):
        announce_ending_sessions(now=first - ago * MINUTE)
    extend_session(session=session, ends_at=later, actor=as_admin, now=first - 8 * MINUTE)
    for moment in (first - 7 * MINUTE, later - 15 * MINUTE, later - 14 * MINUTE):
        announce_ending_sessions(now=moment)
    found = entries("session.ending_soon")
    assert [each.after["ends_at"][:16] for each in found] == [
        f"{end:%Y-%m-%dT%H:%M}" for end in (first, later)
    ]
    assert found[0].message == f"{session} ends at {first:%Y-%m-%d %H:%M} UTC"
    assert (found[0].routed, found[0].actor) == (False, SYSTEM.label)


@properties(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.integers(1, 20), st.booleans()), max_size=12))
def test_every_end_that_came_close_was_announced_once(steps, session_in, as_admin, now, db):
    """However time passes and the session is extended: one event for each end that was looked at in time."""
    with transaction.atomic():
        session = session_in(S.RUNNING, ends_at=now + 30 * MINUTE)
        expected, moment = [], now
        for minutes, extend in steps:
            moment += minutes * MINUTE
            announce_ending_sessions(now=moment)
            if timedelta(0) < session.ends_at - moment <= 15 * MINUTE and session.ends_at not in expected:
                expected.append(session.ends_at)
            if extend:
                end = max(session.ends_at, moment) + 10 * MINUTE
                extend_session(session=session, ends_at=end, actor=as_admin, now=moment)
        assert len(entries("session.ending_soon")) == len(expected)
        transaction.set_rollback(True)


def token(now, admin, days, name="ci"):
    return create_token(
        name=name, kind="person", user=admin, expires_at=now + days * DAY, actor=SYSTEM, now=now
    )[0]


@pytest.mark.parametrize(
    ("lifetime", "left", "due"),
    [(90, 7.1, False), (90, 7, True), (90, 0.1, True), (90, -0.1, False), (7, 6, False), (8, 7, True)],
)
def test_a_token_is_announced_seven_days_before_it_expires(lifetime, left, due, admin, now):
    expires_at = token(now, admin, lifetime).expires_at
    assert announce_expiring_tokens(now=expires_at - left * DAY) == due


def test_a_token_is_announced_once_and_its_replacement_again(admin, as_admin, now):
    first = token(now, admin, 90)
    soon = first.expires_at - 5 * DAY
    assert [announce_expiring_tokens(now=soon) for _ in range(2)] == [1, 0]
    second = rotate_token(token=first, reason="expires", actor=as_admin, now=soon)[0]
    revoked = token(now, admin, 90, name="old")
    revoke_token(token=revoked, reason="unused", actor=as_admin, now=soon)
    assert announce_expiring_tokens(now=soon) == 0
    assert announce_expiring_tokens(now=second.expires_at - DAY) == 1
    found = entries("token.expiring")
    assert [each.object_id for each in found] == [str(first.pk), str(second.pk)]
    assert found[0].message == f"token ci expires at {first.expires_at:%Y-%m-%d %H:%M} UTC"


def test_the_task_announces_more_than_one_batch(session_in, admin, time_machine, monkeypatch):
    monkeypatch.setattr(deadlines, "BATCH", 2)
    ends = {session_in(S.RUNNING).ends_at for _ in range(3)}
    token(min(ends), admin, 8)
    time_machine.move_to(min(ends) - MINUTE, tick=False)
    for _ in range(2):
        detect_deadlines()
    assert len(entries("session.ending_soon")) == 3


def test_a_run_that_finds_nothing_writes_nothing(session_in, admin, now, django_assert_num_queries):
    session_in(S.RUNNING)
    token(now, admin, 90)
    with django_assert_num_queries(6):  # each a savepoint, a read and the release
        found = [announce_ending_sessions(now=now), announce_expiring_tokens(now=now)]
    assert found == [0, 0]


def test_an_event_and_the_mark_of_its_row_are_written_together(session_in, now, monkeypatch):
    """A worker that is killed between the two leaves neither, and the next run writes both."""
    session = session_in(S.RUNNING)
    soon = session.ends_at - MINUTE

    def killed(entries):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(deadlines, "log_changes", killed)
        with pytest.raises(SystemExit):
            announce_ending_sessions(now=soon)
    assert not LabletSession.objects.filter(announced_end__isnull=False).exists()
    assert announce_ending_sessions(now=soon) == 1


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_workers_that_look_at_once_announce_each_object_once(session_in, admin, now, at_once):
    ends = {session_in(S.RUNNING).ends_at for _ in range(3)}
    expires_at = token(now, admin, 8).expires_at
    looks = [lambda: announce_ending_sessions(now=min(ends) - MINUTE)] * 3
    looks += [lambda: announce_expiring_tokens(now=expires_at - DAY)] * 3
    found = at_once(*looks)
    assert all(isinstance(each, int) for each in found), found
    assert (len(entries("session.ending_soon")), len(entries("token.expiring"))) == (3, 1)
    assert LabletSession.objects.exclude(announced_end=None).count() == 3
    assert ApiToken.objects.exclude(expiry_announced_at=None).count() == 1
