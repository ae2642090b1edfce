"""Reading domains, projects, people, tokens and the change log."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Case, Count, Exists, Model, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from lcm.domain.roles import GROUPS, Role
from lcm.models import ApiToken, ChangeLog, Domain, Membership, Project, User

_FOR_ADMINS = frozenset({"user", "group", "apitoken"})


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
    """How many have each role that anyone has; those with one are looked at, the others only counted."""
    named = User.groups.through._default_manager.filter(group__name__in=GROUPS, user__is_active=True)
    roles: dict[Any, Role] = {}
    for pk, name in named.values_list("user_id", "group__name"):
        roles[pk] = max(roles.get(pk, Role.NONE), GROUPS[name])
    roles |= dict.fromkeys(
        User.objects.filter(is_superuser=True, is_active=True).values_list("pk", flat=True), Role.ADMIN
    )
    counts = Counter(roles.values())
    counts[Role.NONE] = User.objects.count() - len(roles)
    return +counts


def in_role(people: QuerySet[User], role: Role) -> QuerySet[User]:
    """Those who have this role; only who may have it is looked at closely."""
    if role:
        name = next(name for name, each in GROUPS.items() if each == role)
        held = User.groups.through._default_manager.filter(group__name=name).values("user")
        people = people.filter(Q(pk__in=held) | Q(is_superuser=True))
    return people.alias(rank=role_rank()).filter(rank=role)


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


def values_are_for_admins(change: ChangeLog) -> bool:
    """Return whether the changed values belong to an object whose own pages are for administrators."""
    return change.object_type in _FOR_ADMINS


def changes_of(obj: Model, limit: int = 20) -> list[ChangeLog]:
    """The newest entries about one object."""
    return list(ChangeLog.objects.filter(object_id=str(obj.pk)).order_by("-at", "-id")[:limit])
