"""What usage shows on the overview."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse

from fairshare.selectors.usage import last_check
from lcm.web.needs import Look, Need


def needs_of_usage(look: Look) -> Iterator[Need]:
    """Buckets that are not the sum of their records."""
    check = last_check()
    if check is not None and check.difference_count:
        count = check.difference_count
        text = f"**{count:,} usage {'bucket differs' if count == 1 else 'buckets differ'}** from the records"
        more = "Shares and the queue's order are made of them"
        yield Need(text, reverse("fair_share"), check.checked_at, "bad", more, "oct")
