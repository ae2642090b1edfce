"""Records of decisions and wait reasons, written when they change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q

from lcm.db.bulk import delete_in_batches, ids_subquery, insert_rows
from scheduling.models import Decision, Explanation, LastVerdict, Phase, Pool, QueueOrder
from scheduling.placement.framework import explanation
from scheduling.placement.framework.cycle import Verdict
from scheduling.placement.plugins.timeslot import TOO_EARLY

BATCH = 5_000
# How long an unreferenced explanation is kept: a running tick may be about to use it.
UNUSED = timedelta(hours=1)


def record_decisions(pool: Pool, verdicts: Sequence[Verdict], *, tick_id: UUID, now: datetime) -> int:
    """Record one decision for each reservation."""
    if not verdicts:
        return 0
    with transaction.atomic():
        digests = _save_explanations(verdicts, now)
        insert_rows(
            Decision,
            ["reservation", "outcome", "position", "slot", "why", "scores"],
            [
                (
                    verdict.job.id,
                    verdict.outcome.value,
                    verdict.position,
                    verdict.parts[0].node if verdict.parts else None,
                    digests.get(id(verdict.why)),
                    {plugin: round(score, 4) for plugin, score in verdict.scores.items()},
                )
                for verdict in verdicts
            ],
            same={"tick": tick_id, "pool": pool.pk, "at": now},
        )
    return len(verdicts)


def save_verdicts(verdicts: Iterable[Verdict]) -> None:
    """Save the last verdict of each reservation, so that only changes are recorded."""
    by_summary: dict[str, list[str]] = {}
    for verdict in verdicts:
        by_summary.setdefault(verdict.summary, []).append(verdict.job.id)
    with connection.cursor() as cursor:
        for summary, keys in by_summary.items():
            source, parameter = ids_subquery(keys)
            # SQLite needs the condition to distinguish the ON of the conflict from that of a join.
            cursor.execute(
                f"INSERT INTO {LastVerdict._meta.db_table} (reservation_id, summary)"  # noqa: S608
                f" SELECT ids.*, %s FROM ({source}) AS ids WHERE true"
                " ON CONFLICT (reservation_id) DO UPDATE SET summary = excluded.summary",
                [summary, parameter],
            )


def record_order(pool: Pool, verdicts: Iterable[Verdict], *, now: datetime) -> None:
    """Save the order of the queue if it changed; advance bookings have no position."""
    queued = [each.job.id for each in verdicts if not each.why or each.why.main_reason != TOO_EARLY]
    ids = bytes.fromhex("".join(queued).replace("-", ""))
    newest = QueueOrder.objects.filter(pool=pool).values_list("ids", flat=True).first()
    if newest is None or bytes(newest) != ids:
        QueueOrder.objects.update_or_create(pool=pool, defaults={"ids": ids, "at": now})


def delete_old_decisions(*, now: datetime) -> int:
    """Delete old decisions, the oldest of pools with too many, and unreferenced explanations."""
    deleted = 0
    for pool in Pool.objects.all():
        old = Decision.objects.filter(pool=pool)
        limit = now - timedelta(days=settings.CONFIG["DECISION_DAYS"])
        excess = (
            old.order_by("-at").values_list("at", flat=True)[settings.CONFIG["DECISIONS_PER_POOL"] :].first()
        )
        superseded = old.filter(_is_superseded(), at__lt=max(limit, excess or limit))
        deleted += delete_in_batches(superseded, BATCH)
    unused = Explanation.objects.filter(used_at__lt=now - UNUSED)
    while keys := list(unused.filter(decisions=None).values_list("pk", flat=True)[:BATCH]):
        # The statement checks the references again: a tick may just have used the explanation.
        unused.filter(pk__in=keys).delete()
    return deleted


def _is_superseded() -> Q:
    """Filter decisions that are not the last one of a waiting reservation, which is kept."""
    later = Decision.objects.filter(reservation=OuterRef("reservation"), at__gt=OuterRef("at"))
    return ~Q(reservation__phase=Phase.PENDING) | Q(Exists(later))


def _save_explanations(verdicts: Sequence[Verdict], now: datetime) -> dict[int, str]:
    """Save explanations by content; return the digest of each.

    Existing rows are locked by an update, so that they are not deleted meanwhile; in a fixed order, so that
    two ticks do not deadlock.
    """
    found: dict[int, str] = {}
    rows: dict[str, Explanation] = {}
    for why in {id(verdict.why): verdict.why for verdict in verdicts if verdict.why}.values():
        row = _row(why, now)
        found[id(why)] = row.digest
        rows[row.digest] = row
    Explanation.objects.bulk_create(
        [rows[digest] for digest in sorted(rows)],
        update_conflicts=True,
        unique_fields=["digest"],
        update_fields=["used_at"],
    )
    return found


def _row(why: explanation.PlacementExplanation, now: datetime) -> Explanation:
    reasons = [asdict(count) for count in (*why.counts, *why.failures)]
    content = json.dumps([why.message, reasons, why.nodes], sort_keys=True)
    digest = hashlib.md5(content.encode(), usedforsecurity=False).hexdigest()
    return Explanation(
        digest=digest,
        main_reason=why.main_reason[:40],
        message=why.message[:500],
        reasons=reasons,
        slots=why.nodes,
        used_at=now,
    )
