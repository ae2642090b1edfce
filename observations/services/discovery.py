"""Updates of the scrape target list."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from observations.models import ScrapeTarget
from observations.selectors.discovery import ScrapeCandidate


def keep_targets(kind: str, candidates: Sequence[ScrapeCandidate], *, now: datetime) -> int:
    """Add, change and remove targets of a kind to match the candidates; return the number of changes."""
    listed = {row.name: row for row in ScrapeTarget.objects.filter(kind=kind)}
    names = {each.name for each in candidates}
    removed = [row.pk for name, row in listed.items() if name not in names]
    new, changed = [], []
    for each in candidates:
        row = listed.get(each.name)
        if row is None:
            target = ScrapeTarget(
                kind=kind, name=each.name, address=each.address, labels=each.labels, since=now
            )
            new.append(target)
        elif (row.address, row.labels) != (each.address, each.labels):
            row.address, row.labels, row.since = each.address, each.labels, now
            changed.append(row)
    with transaction.atomic():
        ScrapeTarget.objects.filter(pk__in=removed).delete()
        ScrapeTarget.objects.bulk_create(new, ignore_conflicts=True)
        ScrapeTarget.objects.bulk_update(changed, ["address", "labels", "since"], batch_size=500)
    return len(removed) + len(new) + len(changed)
