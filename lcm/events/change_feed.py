"""Writing the change feed: entries are added with the change, numbered after its commit and pruned later.

A separate transaction that holds the lock on the feed head assigns revisions. Revisions therefore become
visible in order: a reader at revision 7 has read all entries up to 7. Writers of changes never wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F

from lcm.db.bulk import ids_subquery
from lcm.events import feed_notification
from lcm.models import FeedEntry, FeedHead, FeedKind, LabletSession

BATCH = 10_000
# Upper limit of the feed, whatever `CHANGE_FEED_HOURS` is.
MAX_ENTRIES = 200_000


def append_session_changes(session_ids: Sequence[UUID], *, now: datetime) -> None:
    """Add an entry for each changed session, in one statement."""
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
        _notify_watchers()


def append_slot_changes(slots: Iterable[tuple[UUID, str]], *, now: datetime) -> None:
    """Add an entry for each changed slot, given as (id, pool name)."""
    entries = [FeedEntry(kind=FeedKind.SLOT, object_id=key, pool=pool, at=now) for key, pool in slots]
    if entries:
        with transaction.atomic():
            FeedEntry.objects.bulk_create(entries, batch_size=500)
            _notify_watchers()


def assign_revisions() -> int:
    """Assign revisions to committed entries; return how many were numbered."""
    with transaction.atomic():
        head = _locked_head()
        numbered = _number(after=head.revision)
        FeedHead.objects.filter(pk=head.pk).update(revision=F("revision") + numbered)
    return numbered


def prune_entries(*, now: datetime) -> int:
    """Remove entries older than `CHANGE_FEED_HOURS` or beyond `MAX_ENTRIES`; return how many."""
    while assign_revisions() == BATCH:
        pass
    cutoff = now - timedelta(hours=settings.CONFIG["CHANGE_FEED_HOURS"])
    # Revisions are in order of time, so one lookup finds the first entry to keep.
    recent = FeedEntry.objects.filter(at__gte=cutoff, revision__isnull=False).order_by("revision")
    with transaction.atomic():
        head = _locked_head()
        oldest_recent = recent.values_list("revision", flat=True).first()
        newest_expired = head.revision if oldest_recent is None else oldest_recent - 1
        until = max(newest_expired, head.revision - MAX_ENTRIES)
        if until <= head.pruned_revision:
            return 0
        # Move the lower bound before deleting, so that no reader gets a feed with gaps.
        FeedHead.objects.filter(pk=head.pk).update(pruned_revision=until)
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


def _notify_watchers() -> None:
    transaction.on_commit(feed_notification.publish_feed_change, robust=True)
