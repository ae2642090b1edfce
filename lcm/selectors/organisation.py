"""Reading domains, projects, people, tokens and the change log."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Case, Count, Exists, Model, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from lcm.models import ApiToken, ChangeLog, Domain, Membership, Project, User
from lcm.roles import GROUPS, Role


def domains() -> QuerySet[Domain]:
    return Domain.objects.annotate(project_count=Count("projects"))


def projects() -> QuerySet[Project]:
    """Members are counted for each project that is shown, by index: a join would count everyone's."""
    mine = Membership.objects.filter(project=OuterRef("pk")).order_by().values("project")
    counted = Subquery(mine.annotate(count=Count("*")).values("count"))
    return Project.objects.select_related("domain").annotate(member_count=Coalesce(counted, 0))


def members_of(project: Project) -> QuerySet[Membership]:
    return project.memberships.select_related("user")


def project_counts() -> tuple[int, int]:
    """Projects, and the domains that have any."""
    found = Project.objects.aggregate(projects=Count("pk"), domains=Count("domain", distinct=True))
    return found["projects"], found["domains"]


def people_in(domain: Domain) -> int:
    """Members of its projects, each counted once."""
    return Membership.objects.filter(project__domain=domain).values("user").distinct().count()


def people() -> QuerySet[User]:
    return User.objects.prefetch_related("groups")


def role_rank() -> Case:
    """In a query what `role_of` says of each person."""
    groups = User.groups.through._default_manager.filter(user=OuterRef("pk"))
    highest = sorted(GROUPS.items(), key=lambda each: -each[1])
    return Case(
        When(is_active=False, then=Value(Role.NONE)),
        When(is_superuser=True, then=Value(Role.ADMIN)),
        *(When(Exists(groups.filter(group__name=name)), then=Value(role)) for name, role in highest),
        default=Value(Role.NONE),
    )


def people_by_role() -> dict[Role, int]:
    """How many have each role that anyone has."""
    ranks = User.objects.order_by().annotate(rank=role_rank()).values_list("rank")
    return {Role(rank): count for rank, count in ranks.annotate(Count("pk"))}


def tokens() -> QuerySet[ApiToken]:
    return ApiToken.objects.select_related("user")


def token_counts(now: datetime, *, within: timedelta) -> tuple[int, int]:
    """Tokens that are valid, and those of them that expire within this time."""
    found = ApiToken.objects.filter(revoked_at=None, expires_at__gt=now).aggregate(
        valid=Count("pk"), ending=Count("pk", filter=Q(expires_at__lte=now + within))
    )
    return found["valid"], found["ending"]


def changes() -> QuerySet[ChangeLog]:
    return ChangeLog.objects.all()


def changes_of(obj: Model, limit: int = 20) -> list[ChangeLog]:
    """The newest entries about one object."""
    return list(ChangeLog.objects.filter(object_id=str(obj.pk)).order_by("-at", "-id")[:limit])
