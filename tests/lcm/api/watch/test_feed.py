"""The change feed: written with the change, numbered after the commit, pruned after a while."""

from datetime import timedelta

import pytest
from django.db import connection, transaction

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.events import change_feed
from lcm.events import change_feed_reader as selectors
from lcm.models import FeedEntry, FeedHead, LabletSession
from lcm.services.session_reports import record_arrival
from lcm.services.session_transitions import transition_session, transition_sessions
from lcm.services.sessions import extend_session
from lcm.tasks import prune_change_feed
from scheduling.models import Slot, SlotState
from scheduling.services.slots import move_slot, record_interruption

S = SessionStatus
pytestmark = pytest.mark.django_db


def entries():
    return list(FeedEntry.objects.order_by("id").values_list("kind", "object_id", "pool"))


def numbered():
    change_feed.assign_revisions()
    return selectors.changes_after(0, limit=100)


@pytest.mark.parametrize(
    ("status", "to", "in_feed"),
    [
        (S.PENDING, S.SCHEDULED, True),
        (S.PENDING, S.CANCELLED, False),
        (S.PENDING, S.EXPIRED, False),
        (S.SCHEDULED, S.PENDING, True),
        (S.SCHEDULED, S.CANCELLED, True),
        (S.RUNNING, S.STOPPING, True),
        (S.STOPPING, S.TERMINATED, True),
    ],
)
def test_a_transition_to_or_from_a_slot_is_in_the_feed(session_in, now, status, to, in_feed):
    session = session_in(status)
    FeedEntry.objects.all().delete()
    transition_session(session=session, to=to, actor=SYSTEM, now=now)
    assert entries() == ([("session", session.pk, "cml-eu")] if in_feed else [])


def test_an_extension_and_an_arrival_are_in_the_feed(session_in, now):
    session = session_in(S.RUNNING)
    FeedEntry.objects.all().delete()
    extend_session(session=session, ends_at=session.ends_at + timedelta(hours=1), actor=SYSTEM, now=now)
    record_arrival(session=session, actor=SYSTEM, now=now)
    record_arrival(session=session, actor=SYSTEM, now=now)
    assert len(entries()) == 2


def test_a_rolled_back_change_is_not_in_the_feed(session_in, now):
    session = session_in(S.SCHEDULED)
    before = entries()
    with transaction.atomic():
        transition_session(session=session, to=S.INSTANTIATING, actor=SYSTEM, now=now)
        transaction.set_rollback(True)
    assert entries() == before


def test_many_sessions_are_written_in_one_statement(session_in, now, django_assert_max_num_queries):
    sessions = [session_in(S.PENDING) for _ in range(30)]
    ids = [session.pk for session in sessions]
    with django_assert_max_num_queries(3):
        change_feed.append_session_changes(ids, now=now)
    assert {key for _, key, _ in entries()} == set(ids)
    assert FeedEntry.objects.count() == 30


def test_moving_many_sessions_writes_one_entry_each(session_in, now):
    sessions = [session_in(S.PENDING) for _ in range(5)]
    transition_sessions(sessions=sessions, old=S.PENDING, to=S.SCHEDULED, actor=SYSTEM, now=now)
    assert {key for _, key, _ in entries()} == {session.pk for session in sessions}


def test_slot_changes_are_in_the_feed(session, now):
    from scheduling.models import Pool

    pool = Pool.objects.get(name="cml-eu")
    slot = Slot.objects.create(
        pool=pool, number=1, state=SlotState.READY, max_leases=1, cpu_cores=1, memory_gb=1, storage_gb=1
    )
    record_interruption(slot=slot, deadline=now + timedelta(minutes=2), now=now)
    move_slot(slot=slot, to=SlotState.DRAINING, now=now)
    assert entries() == [("slot", slot.pk, "cml-eu")] * 2


def test_revisions_grow_by_one_in_the_order_of_writing(session_in):
    for _ in range(3):
        session_in(S.INSTANTIATING)
    changes = numbered()
    assert [change.revision for change in changes] == [1, 2, 3, 4, 5, 6]
    assert [change.id for change in changes] == [key for _, key, _ in entries()]
    assert selectors.feed_bounds() == selectors.FeedBounds(6, 0)


def test_numbering_again_changes_nothing(session_in):
    session_in(S.SCHEDULED)
    assert (change_feed.assign_revisions(), change_feed.assign_revisions()) == (1, 0)
    assert selectors.feed_bounds().revision == 1


def test_numbering_goes_in_batches(session_in, monkeypatch):
    monkeypatch.setattr(change_feed, "BATCH", 2)
    session_in(S.READY)
    assert [change_feed.assign_revisions() for _ in range(3)] == [2, 1, 0]
    assert [change.revision for change in selectors.changes_after(0, limit=9)] == [1, 2, 3]


def test_a_controller_reads_its_pools_only(session_in, active_definition):
    own_session = session_in(S.SCHEDULED)
    session_in(S.SCHEDULED, pool="cml-us")
    change_feed.assign_revisions()
    assert [each.id for each in selectors.changes_after(0, pools=["cml-eu"], limit=9)] == [own_session.pk]


def test_old_entries_are_pruned_and_the_feed_reports_it(session_in, now, settings):
    settings.CONFIG["CHANGE_FEED_HOURS"] = 1
    session_in(S.INSTANTIATING, now=now - timedelta(hours=3))
    session_in(S.SCHEDULED, now=now)
    assert change_feed.prune_entries(now=now) == 2
    assert selectors.feed_bounds() == selectors.FeedBounds(3, 2)
    assert change_feed.prune_entries(now=now) == 0
    assert [change.revision for change in selectors.changes_after(0, limit=9)] == [3]


def test_the_feed_is_bounded_in_size_regardless_of_age(session_in, now, monkeypatch):
    monkeypatch.setattr(change_feed, "MAX_ENTRIES", 2)
    session_in(S.RUNNING)
    prune_change_feed()
    assert selectors.feed_bounds() == selectors.FeedBounds(4, 2)
    assert FeedEntry.objects.count() == 2


def test_pruning_everything_keeps_the_revision(session_in, now):
    session_in(S.SCHEDULED)
    change_feed.prune_entries(now=now + timedelta(days=9))
    session_in(S.SCHEDULED)
    assert [change.revision for change in numbered()] == [2]


def test_a_missing_feed_head_is_created(session_in):
    session_in(S.SCHEDULED)
    FeedHead.objects.all().delete()
    assert change_feed.assign_revisions() == 1


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_late_commit_is_never_skipped(session_in, now, at_once):
    """One transaction writes first and commits last; a reader in between still gets its change."""
    from threading import Event

    first, second = session_in(S.SCHEDULED), session_in(S.SCHEDULED)
    change_feed.assign_revisions()
    seen = selectors.feed_bounds().revision
    written, read = Event(), Event()

    def slow():
        with transaction.atomic():
            transition_session(session=first, to=S.INSTANTIATING, actor=SYSTEM, now=now)
            written.set()
            assert read.wait(10)

    def quick():
        assert written.wait(10)
        transition_session(session=second, to=S.INSTANTIATING, actor=SYSTEM, now=now)
        change_feed.assign_revisions()
        revisions = selectors.changes_after(seen, limit=9)
        read.set()
        return revisions

    _, early = at_once(slow, quick)
    change_feed.assign_revisions()
    late = selectors.changes_after(early[-1].revision, limit=9)
    assert [each.id for each in early] == [second.pk]
    assert [each.id for each in late] == [first.pk]


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_concurrent_numbering_assigns_each_revision_once(session_in, now, at_once):
    sessions = [session_in(S.PENDING) for _ in range(40)]

    def write(part):
        for session in part:
            change_feed.append_session_changes([session.pk], now=now)
            change_feed.assign_revisions()

    results = at_once(*(lambda part=sessions[n::4]: write(part) for n in range(4)))
    assert results == [None] * 4
    revisions = [change.revision for change in selectors.changes_after(0, limit=100)]
    assert revisions == list(range(1, 41))
    assert connection.vendor == "postgresql"
    assert LabletSession.objects.count() == 40
