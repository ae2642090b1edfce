"""Rebuild of daily usage from records, as a job with one step per day."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from django.utils.translation import gettext as _

from fairshare.services.usage_buckets import check_usage, rebuild_day, recorded_days
from lcm.domain.actors import Actor
from lcm.domain.errors import StateConflict
from lcm.models import Job
from lcm.services.jobs import JobStep, start_job

KIND = "rebuild-usage"


def start_rebuild(*, reason: str, actor: Actor, now: datetime) -> Job:
    """Start a job that rebuilds every day with complete records; safe while observers run."""
    days = recorded_days()
    if days is None:
        raise StateConflict(_("There are no records to rebuild buckets from."))
    first, last = days
    count = (last - first).days + 1
    return start_job(
        kind=KIND,
        title="Rebuild usage of 1 day" if count == 1 else f"Rebuild usage of {count:,} days",
        arguments={"first": first.isoformat(), "last": last.isoformat()},
        total=count,
        reason=reason,
        actor=actor,
        now=now,
    )


def rebuild_step(job: Job, now: datetime) -> JobStep:
    """Rebuild one day; after the last day, run and store a usage consistency check."""
    first, last = (date.fromisoformat(job.arguments[name]) for name in ("first", "last"))
    repaired = job.cursor.get("repaired", 0)
    day = date.fromisoformat(job.cursor["day"]) if "day" in job.cursor else first
    if day > last:
        check_usage(first=first, last=last, now=now)
        result = "1 bucket was repaired." if repaired == 1 else f"{repaired:,} buckets were repaired."
        return JobStep(result=result)
    following = (day + timedelta(days=1)).isoformat()
    try:
        differences = rebuild_day(day)
    except StateConflict as error:
        return JobStep(
            rejected=1, cursor={"day": following, "repaired": repaired}, more=True, notes=[error.message]
        )
    cursor = {"day": following, "repaired": repaired + len(differences)}
    return JobStep(done=1, cursor=cursor, more=True, notes=list(map(str, differences[:5])))
