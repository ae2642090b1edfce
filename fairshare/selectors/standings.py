"""What the scheduler reads: where everybody stands in a pool."""

from __future__ import annotations

from uuid import UUID

from fairshare.levels import Level
from fairshare.models import FairShare, FairShareCalculation
from lcm.models import Membership
from scheduling.fairness import Standing, Standings
from scheduling.models import Pool


def standings(pool: Pool) -> Standings:
    """(user, project) → standing as last calculated; who is not in it stands at the top."""
    rows = FairShare.objects.filter(pool=pool, level=Level.USER).exclude(
        domain_standing=1.0, project_standing=1.0, user_standing=1.0
    )
    found = {
        (user, project): Standing(*values)
        for user, project, *values in rows.values_list(
            "subject_id", "parent_id", "domain_standing", "project_standing", "user_standing"
        )
    }
    return found | _newcomers(pool, found)


def _newcomers(pool: Pool, known: dict[tuple[UUID, UUID], Standing]) -> dict[tuple[UUID, UUID], Standing]:
    """Who joined since the calculation has used nothing, but stands behind what their project used."""
    at = FairShareCalculation.objects.filter(pool=pool).order_by("-at").values_list("at", flat=True).first()
    if at is None:
        return {}
    joined = list(Membership.objects.filter(joined_at__gte=at).values_list("user_id", "project_id"))
    if not joined:
        return {}
    projects = {
        key: Standing(domain, project)
        for key, domain, project in FairShare.objects.filter(
            pool=pool, level=Level.PROJECT, subject_id__in={project for _, project in joined}
        )
        .exclude(domain_standing=1.0, project_standing=1.0)
        .values_list("subject_id", "domain_standing", "project_standing")
    }
    return {key: projects[key[1]] for key in joined if key not in known and key[1] in projects}
