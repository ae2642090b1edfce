"""Keeping what the scheduler decided, as far as it is new."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction

from lcm.bulk import insert_rows
from scheduling.framework import explain
from scheduling.framework.cycle import Verdict
from scheduling.models import Decision, Explanation, Pool, QueueOrder, Reservation

FIELDS = ["reservation", "tick", "pool", "at", "outcome", "position", "slot", "why", "scores"]
BATCH = 5_000


def record_decisions(pool: Pool, verdicts: Sequence[Verdict], *, tick_id: UUID, now: datetime) -> int:
    """One decision each."""
    if not verdicts:
        return 0
    with transaction.atomic():
        digests = _keep_explanations(verdicts)
        insert_rows(
            Decision,
            FIELDS,
            [
                (
                    verdict.job.id,
                    tick_id.hex,
                    pool.pk.hex,
                    now,
                    verdict.outcome.value,
                    verdict.position,
                    verdict.parts[0].node if verdict.parts else None,
                    digests.get(id(verdict.why)),
                    {plugin: round(score, 4) for plugin, score in verdict.scores.items()},
                )
                for verdict in verdicts
            ],
        )
    return len(verdicts)


def remember_verdicts(verdicts: Iterable[Verdict]) -> None:
    """Each reservation keeps what was last said of it, so that only news is told again."""
    by_summary: dict[str, list[str]] = {}
    for verdict in verdicts:
        by_summary.setdefault(verdict.summary, []).append(verdict.job.id)
    for summary, keys in by_summary.items():
        for start in range(0, len(keys), BATCH):
            Reservation.objects.filter(pk__among=keys[start : start + BATCH]).update(verdict=summary)


def record_order(pool: Pool, verdicts: Iterable[Verdict], *, now: datetime) -> None:
    """The order of those that wait, as it is now; written only when it changed."""
    ids = bytes.fromhex("".join(verdict.job.id for verdict in verdicts).replace("-", ""))
    newest = QueueOrder.objects.filter(pool=pool).values_list("ids", flat=True).first()
    if newest is None or bytes(newest) != ids:
        QueueOrder.objects.update_or_create(pool=pool, defaults={"ids": ids, "at": now})


def forget_decisions(*, now: datetime) -> int:
    """Old ones go, and the oldest of a pool that has too many; then what nobody refers to."""
    gone = 0
    for pool in Pool.objects.all():
        old = Decision.objects.filter(pool=pool)
        limit = now - timedelta(days=settings.CONFIG["DECISION_DAYS"])
        excess = (
            old.order_by("-at").values_list("at", flat=True)[settings.CONFIG["DECISIONS_PER_POOL"] :].first()
        )
        gone += _delete(old.filter(at__lt=max(limit, excess or limit)))
    _delete(Explanation.objects.filter(decisions=None))
    return gone


def _delete(rows) -> int:  # type: ignore[no-untyped-def]
    """In pieces, so that nobody waits long for a lock."""
    gone = 0
    while keys := list(rows.values_list("pk", flat=True)[:BATCH]):
        rows.model.objects.filter(pk__in=keys).delete()
        gone += len(keys)
    return gone


def _keep_explanations(verdicts: Sequence[Verdict]) -> dict[int, str]:
    """Explanations by their content; answers the digest of each."""
    found: dict[int, str] = {}
    rows: dict[str, Explanation] = {}
    for why in {id(verdict.why): verdict.why for verdict in verdicts if verdict.why}.values():
        row = _row(why)
        found[id(why)] = row.digest
        rows[row.digest] = row
    Explanation.objects.bulk_create(rows.values(), ignore_conflicts=True)
    return found


def _row(why: explain.Explanation) -> Explanation:
    reasons = [asdict(count) for count in (*why.counts, *why.failures)]
    content = json.dumps([why.sentence, reasons, why.nodes], sort_keys=True)
    digest = hashlib.md5(content.encode(), usedforsecurity=False).hexdigest()
    return Explanation(
        digest=digest,
        dominant=why.dominant[:40],
        sentence=why.sentence[:500],
        reasons=reasons,
        slots=why.nodes,
    )
