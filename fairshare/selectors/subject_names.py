"""Names of subjects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Case, CharField, Model, OuterRef, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from fairshare.models.levels import Level
from fairshare.selectors.trees import SubjectKey
from lcm.models import Domain, Project, User


class SubjectName(NamedTuple):
    """A subject's name and its place in the tree."""

    name: str
    parent_name: str = ""

    def __str__(self) -> str:
        return f"{self.parent_name} / {self.name}" if self.parent_name else self.name


def names_of(keys: Iterable[SubjectKey]) -> dict[SubjectKey, SubjectName]:
    """Return names in one query; deleted subjects are shown by ID."""
    wanted = list(keys)
    of_level: dict[str, set[UUID]] = {level: set() for level in Level.values}
    for key in wanted:
        of_level[key.level].add(key.subject)
        if key.level == Level.USER:
            of_level[Level.PROJECT].add(key.parent)
    names = _read(of_level)

    def named(key: SubjectKey) -> SubjectName:
        own = names.get(key.subject, SubjectName(f"{key.subject.hex[:6]} (gone)"))
        if key.level == Level.USER:
            return SubjectName(own.name, str(names.get(key.parent, "")))
        return own

    return {key: named(key) for key in wanted}


def _read(of_level: Mapping[str, set[UUID]]) -> dict[UUID, SubjectName]:
    """Return projects with their domains, and domains and people by name, keyed by unique ID."""
    alone = Value("", output_field=CharField())
    projects = Project.objects.filter(pk__in=of_level[Level.PROJECT]).order_by()
    domains = Domain.objects.filter(pk__in=of_level[Level.DOMAIN]).order_by()
    people = User.objects.filter(pk__in=of_level[Level.USER]).order_by()
    rows = projects.values_list("pk", "name", "domain__name").union(
        domains.values_list("pk", "name", alone), people.values_list("pk", "username", alone), all=True
    )
    return {pk: SubjectName(name, parent_name) for pk, name, parent_name in rows}


def with_names(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Annotate rows with `name` and `parent_name` (the project of a person, the domain of a project)."""

    def of(model: type[Model], field: str, column: str) -> Subquery:
        return Subquery(model._default_manager.filter(pk=OuterRef(column)).values(field)[:1])

    def by_level(**names: Subquery) -> Case:
        whens = [When(level=level, then=value) for level, value in names.items()]
        return Case(*whens, default=Value(""), output_field=CharField())

    named: QuerySet[Any] = rows.annotate(
        name=Coalesce(
            by_level(
                user=of(User, "username", "subject_id"),
                project=of(Project, "name", "subject_id"),
                domain=of(Domain, "name", "subject_id"),
            ),
            Value("gone"),
        ),
        parent_name=Coalesce(
            by_level(user=of(Project, "name", "parent_id"), project=of(Domain, "name", "parent_id")),
            Value(""),
        ),
    )
    return named
