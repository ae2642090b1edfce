"""The change feed: written with the change, numbered after its commit, forgotten after a while.

An entry gets its revision in a transaction of its own that holds the lock on the head, so revisions
become visible in their order and a reader who is at 7 has seen everything up to 7. Writers of changes
wait for nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F
from django.dispatch import receiver

from lcm.db.bulk import ids_subquery
from lcm.domain.lifecycle import ON_A_SLOT, SessionStatus
from lcm.events import feed_notification
from lcm.events.signals import sessions_moved
from lcm.models import FeedEntry, FeedHead, FeedKind, LabletSession


@receiver(sessions_moved)
def add_moved_sessions(
    sender: Any, session_ids: list[UUID], old: SessionStatus, new: SessionStatus, now: datetime, **kwargs: Any
) -> None:
    """Controllers hear of sessions that are on a slot, come to one or leave it."""
    if old in ON_A_SLOT or new in ON_A_SLOT:
        append_session_changes(session_ids, now=now)


BATCH = 10_000
# However short the retention in hours is long for it: the feed holds no more than this.
MAX_ENTRIES = 200_000


def append_session_changes(session_ids: Sequence[UUID], *, now: datetime) -> None:
    """These sessions changed: one statement, however many."""
    if not session_ids:
        return
    source, keys = ids_subquery(session_ids)
    entry, session = FeedEntry._meta.db_table, LabletSession._meta.db_table
    query = (
        f'INSERT INTO "{entry}" (kind, object_id, pool, at) '  # noqa: S608  (names of our own tables)
        f'SELECT %s, id, pool, %s FROM "{session}" WHERE id IN ({source})'
    )
    moment = FeedEntry._meta.get_field("at").get_db_prep_save(now, connection)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(query, [FeedKind.SESSION.value, moment, keys])
        _tell_watchers()


def append_slot_changes(slots: Iterable[tuple[UUID, str]], *, now: datetime) -> None:
    """These slots changed: each as (id, name of its pool)."""
    entries = [FeedEntry(kind=FeedKind.SLOT, object_id=key, pool=pool, at=now) for key, pool in slots]
    if entries:
        with transaction.atomic():
            FeedEntry.objects.bulk_create(entries, batch_size=500)
            _tell_watchers()


def assign_revisions() -> int:
    """Give committed entries their revisions; tells how many got one."""
    with transaction.atomic():
        head = _locked_head()
        numbered = _number(after=head.revision)
        FeedHead.objects.filter(pk=head.pk).update(revision=F("revision") + numbered)
    return numbered


def prune_entries(*, now: datetime) -> int:
    """Remove what is older than `FEED_HOURS` or more than the feed holds; who is further back lists again."""
    while assign_revisions() == BATCH:
        pass
    old = now - timedelta(hours=settings.CONFIG["FEED_HOURS"])
    # Revisions come in the order of time, so only what goes is looked at.
    young = FeedEntry.objects.filter(at__gte=old, revision__isnull=False).order_by("revision")
    with transaction.atomic():
        head = _locked_head()
        oldest_young = young.values_list("revision", flat=True).first()
        newest_old = head.revision if oldest_young is None else oldest_young - 1
        until = max(newest_old, head.revision - MAX_ENTRIES)
        if until <= head.forgotten:
            return 0
        # First the word that they are gone: nobody reads a feed with holes.
        FeedHead.objects.filter(pk=head.pk).update(forgotten=until)
    return _remove_up_to(until)


def _remove_up_to(revision: int) -> int:
    removed = 0
    rows = FeedEntry.objects.filter(revision__lte=revision)
    while keys := list(rows.order_by("revision").values_list("pk", flat=True)[:BATCH]):
        removed += FeedEntry.objects.filter(
            pk__gte=min(keys), pk__lte=max(keys), revision__lte=revision
        ).delete()[0]
    return removed


def _locked_head() -> FeedHead:
    head, _ = FeedHead.objects.select_for_update().get_or_create(pk=FeedHead.ONLY)
    return head


def _number(*, after: int) -> int:
    table = FeedEntry._meta.db_table
    query = (
        f'UPDATE "{table}" SET revision = %s + new.place FROM (SELECT id, row_number() OVER (ORDER BY id) AS '  # noqa: S608
        f'place FROM "{table}" WHERE revision IS NULL ORDER BY id LIMIT {BATCH}) AS new '
        f'WHERE "{table}".id = new.id'
    )
    with connection.cursor() as cursor:
        cursor.execute(query, [after])
        return int(cursor.rowcount)


def _tell_watchers() -> None:
    transaction.on_commit(feed_notification.publish_feed_change, robust=True)
