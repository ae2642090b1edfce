"""Queries of domains, projects, people, tokens and the change log."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Case, Count, Exists, Model, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from lcm.domain.roles import GROUPS, Role
from lcm.models import ApiToken, ChangeLog, Domain, Membership, Project, User

_FOR_ADMINS = frozenset({"user", "group", "apitoken", "webhook", "eventrule", "delivery"})


def domains() -> QuerySet[Domain]:
    return Domain.objects.annotate(project_count=Count("projects"))


def projects() -> QuerySet[Project]:
    """Return projects with `member_count`; a subquery counts only the rows shown, a join would count all."""
    memberships = Membership.objects.filter(project=OuterRef("pk")).order_by().values("project")
    member_count_subquery = Subquery(memberships.annotate(count=Count("*")).values("count"))
    return Project.objects.select_related("domain").annotate(member_count=Coalesce(member_count_subquery, 0))


def members_of(project: Project) -> QuerySet[Membership]:
    return project.memberships.select_related("user")


def project_counts() -> tuple[int, int]:
    """Return the number of projects, and of domains with projects."""
    found = Project.objects.aggregate(projects=Count("pk"), domains=Count("domain", distinct=True))
    return found["projects"], found["domains"]


def project_choices() -> list[tuple[str, str]]:
    """Return all projects as choices of a form, in the order of their paths."""
    rows = Project.objects.order_by("domain__name", "name").values_list("pk", "domain__name", "name")
    return [(str(pk), f"{domain} / {name}") for pk, domain, name in rows]


def people_in(domain: Domain) -> int:
    """Return the number of distinct members of a domain's projects."""
    return Membership.objects.filter(project__domain=domain).values("user").distinct().count()


def people() -> QuerySet[User]:
    return User.objects.prefetch_related("groups")


def role_rank() -> Case:
    """Return `role_of` as a query expression."""
    groups = User.groups.through._default_manager.filter(user=OuterRef("pk"))
    highest = sorted(GROUPS.items(), key=lambda each: -each[1])
    return Case(
        When(is_active=False, then=Value(Role.NONE)),
        When(is_superuser=True, then=Value(Role.ADMIN)),
        *(When(Exists(groups.filter(group__name=name)), then=Value(role)) for name, role in highest),
        default=Value(Role.NONE),
    )


def people_by_role() -> dict[Role, int]:
    """Return the number of people by role. Only people with a role are read, the others are counted."""
    role_memberships = User.groups.through._default_manager.filter(
        group__name__in=GROUPS, user__is_active=True
    )
    roles: dict[UUID, Role] = {}
    for pk, name in role_memberships.values_list("user_id", "group__name"):
        roles[pk] = max(roles.get(pk, Role.NONE), GROUPS[name])
    roles |= dict.fromkeys(
        User.objects.filter(is_superuser=True, is_active=True).values_list("pk", flat=True), Role.ADMIN
    )
    counts = Counter(roles.values())
    counts[Role.NONE] = User.objects.count() - len(roles)
    return +counts


def in_role(people: QuerySet[User], role: Role) -> QuerySet[User]:
    """Filter people by role; group members are selected first, so that the rank is computed for few."""
    if role:
        name = next(name for name, each in GROUPS.items() if each == role)
        members = User.groups.through._default_manager.filter(group__name=name).values("user")
        people = people.filter(Q(pk__in=members) | Q(is_superuser=True))
    return people.alias(rank=role_rank()).filter(rank=role)


def admin_names(limit: int = 5) -> list[str]:
    """Return the names of the first Admins by user name; the same for everyone who may open pages."""
    return [admin.display_name for admin in in_role(User.objects.order_by("username"), Role.ADMIN)[:limit]]


def tokens() -> QuerySet[ApiToken]:
    return ApiToken.objects.select_related("user")


def token_counts(now: datetime, *, within: timedelta) -> tuple[int, int]:
    """Return the number of valid tokens, and how many of them expire within this time."""
    found = ApiToken.objects.filter(revoked_at=None, expires_at__gt=now).aggregate(
        valid=Count("pk"), ending=Count("pk", filter=Q(expires_at__lte=now + within))
    )
    return found["valid"], found["ending"]


def changes() -> QuerySet[ChangeLog]:
    return ChangeLog.objects.all()


def values_are_for_admins(change: ChangeLog) -> bool:
    """Return whether only administrators may see the values, as on the object's own pages."""
    return change.object_type in _FOR_ADMINS


def changes_of(obj: Model, limit: int = 20) -> list[ChangeLog]:
    """Return the newest change log entries of an object."""
    return list(ChangeLog.objects.filter(object_id=str(obj.pk)).order_by("-at", "-id")[:limit])


def last_change_of(object_id: str) -> ChangeLog | None:
    """Return the newest change log entry of an object, which may be deleted."""
    return ChangeLog.objects.filter(object_id=object_id).order_by("-at", "-id").first()
