"""Reading domains, projects, people, tokens and the change log."""

from __future__ import annotations

from django.db.models import Count, Model, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from lcm.models import ApiToken, ChangeLog, Domain, Membership, Project, User


def domains() -> QuerySet[Domain]:
    return Domain.objects.annotate(project_count=Count("projects"))


def projects() -> QuerySet[Project]:
    """Members are counted for each project that is shown, by index: a join would count everyone's."""
    mine = Membership.objects.filter(project=OuterRef("pk")).order_by().values("project")
    counted = Subquery(mine.annotate(count=Count("*")).values("count"))
    return Project.objects.select_related("domain").annotate(member_count=Coalesce(counted, 0))


def members_of(project: Project) -> QuerySet[Membership]:
    return project.memberships.select_related("user")


def people() -> QuerySet[User]:
    return User.objects.prefetch_related("groups")


def tokens() -> QuerySet[ApiToken]:
    return ApiToken.objects.select_related("user")


def changes() -> QuerySet[ChangeLog]:
    return ChangeLog.objects.all()


def changes_of(obj: Model, limit: int = 20) -> list[ChangeLog]:
    """The newest entries about one object."""
    return list(ChangeLog.objects.filter(object_id=str(obj.pk)).order_by("-at", "-id")[:limit])
