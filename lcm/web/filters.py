"""One FilterSet per list, shared by its page and its API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import django_filters as df
from django.core.exceptions import ObjectDoesNotExist, ValidationError
from django.db.models import Max, Model, Q, QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema_field

from lcm.domain.errors import InvalidInput
from lcm.domain.lifecycle import ACTIVE
from lcm.domain.roles import GROUPS, Role
from lcm.extensions import Extension
from lcm.models import (
    ApiToken,
    ChangeLog,
    DefinitionRevision,
    DefinitionStatus,
    Domain,
    Job,
    JobState,
    LabletDefinition,
    LabletSession,
    Membership,
    Priority,
    Project,
    RevisionBasis,
    RevisionOutcome,
    SavedView,
    TokenKind,
    User,
)
from lcm.models.base import ID_PATTERN
from lcm.models.sessions import STATUS_CHOICES
from lcm.selectors.organisation import in_role
from lcm.selectors.sessions import domains_for_choice, search_sessions
from lcm.web.filter_inputs import MomentFilter, UsernameFilter
from lcm.web.filter_time import filter_now
from lcm.web.period_filters import PeriodFilter, ends_of_period

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

SEARCHED_CHANGES = 100_000


class SearchFilter(df.CharFilter):
    """The search box `q`: find the text in a set of columns."""

    def __init__(self, *columns: str, **kwargs: Any) -> None:
        super().__init__(label=_("Search"), max_length=100, **kwargs)
        self.columns = columns

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        if not value:
            return qs
        found = Q()
        for column in self.columns:
            found |= Q(**{f"{column}__icontains": value})
        return qs.filter(found)


class ChoicesFilter(df.MultipleChoiceFilter):
    """Match any of the chosen values with one `IN`; without joins, no DISTINCT is needed."""

    def filter(self, qs: QuerySet[Any], value: list[str]) -> QuerySet[Any]:
        return qs.filter(**{f"{self.field_name}__in": value}) if value else qs


@extend_schema_field({"type": "boolean"})
class FlagFilter(df.ChoiceFilter):
    """A boolean; any other value is an error instead of being ignored."""

    def __init__(self, *, yes: StrOrPromise = _("Yes"), no: StrOrPromise = _("No"), **kwargs: Any) -> None:
        super().__init__(choices=[("true", yes), ("false", no)], **kwargs)

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        return qs.filter(**{self.field_name: value == "true"}) if value else qs


@extend_schema_field({"type": "boolean"})
class EndedFilter(df.ChoiceFilter):
    """Whether an object has ended; inverted, so that `active=true` finds objects that have not ended."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=[("false", _("Yes")), ("true", _("No"))], label=_("Ended"), **kwargs)


class ObjectFilter(df.UUIDFilter):
    """One related object by id; links set this filter, and its chip shows the object's name."""

    def __init__(self, model: type[Model], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.object_model = model

    def name_of(self, value: str) -> str:
        try:
            return str(self.object_model._default_manager.get(pk=value))
        except (ObjectDoesNotExist, ValueError, ValidationError):
            return value


class DomainChoices(df.FilterSet):
    """Domain choices, queried once per form."""

    def __init__(self, *args: object, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.filters["domain"].extra["choices"] = domains_for_choice()


class SessionFilter(DomainChoices):
    q = df.CharFilter(label=_("Search"), max_length=100, method="search")
    status = ChoicesFilter(choices=STATUS_CHOICES, label=_("Status"))
    active = EndedFilter(method="only_active")
    priority = ChoicesFilter(choices=Priority.choices, label=_("Priority"))
    domain = ChoicesFilter(label=_("Domain"), method="in_domains")
    project = ObjectFilter(Project, field_name="project_id", label=_("Project"))
    definition = ObjectFilter(LabletDefinition, field_name="definition_id", label=_("Definition"))
    owner = ObjectFilter(User, field_name="owner_id", label=_("Owner"))
    pool = df.CharFilter(label=_("Pool"))
    drift = FlagFilter(field_name="port_drift_detected", label=_("Port drift"))
    drift_open = FlagFilter(field_name="port_drift_open", label=_("Open port drift"))
    created = PeriodFilter(field_name="created_at", label=_("Requested"))
    created_from, created_to = ends_of_period("created_at", menu="created")
    starts_after = MomentFilter(field_name="starts_at", lookup_expr="gte", label=_("Starts after"))
    starts_before = MomentFilter(field_name="starts_at", lookup_expr="lt", label=_("Starts before"))

    class Meta:
        model = LabletSession
        fields: list[str] = []

    def search(self, qs: QuerySet[LabletSession], name: str, value: str) -> QuerySet[LabletSession]:
        return search_sessions(qs, value)

    def in_domains(self, qs: QuerySet[LabletSession], name: str, value: list[str]) -> QuerySet[LabletSession]:
        """Match by the ids of the domains' projects, which uses an index on sessions; a join would not."""
        if not value:
            return qs
        return qs.filter(
            project__in=list(Project.objects.filter(domain__name__in=value).values_list("pk", flat=True))
        )

    def only_active(self, qs: QuerySet[LabletSession], name: str, value: str) -> QuerySet[LabletSession]:
        return qs.filter(status__in=ACTIVE) if value == "true" else qs.exclude(status__in=ACTIVE)


class ControllerSessionFilter(SessionFilter):
    """The session filter for controllers, which can also select sessions by id."""

    most_ids = 200
    ids = df.CharFilter(label=_("IDs"), method="with_ids")

    @extend_schema_field(
        {"type": "string", "pattern": f"^{ID_PATTERN}(?:,{ID_PATTERN}){{0,{most_ids - 1}}}$"}
    )
    def with_ids(self, qs: QuerySet[LabletSession], name: str, value: str) -> QuerySet[LabletSession]:
        texts = value.split(",")
        if len(texts) > self.most_ids:
            raise InvalidInput(
                {name: gettext("Request at most %(count)s sessions.") % {"count": self.most_ids}}
            )
        try:
            return qs.filter(pk__in=[UUID(text) for text in texts])
        except ValueError as error:
            raise InvalidInput({name: gettext("Enter IDs separated by commas.")}) from error


class DefinitionFilter(df.FilterSet):
    q = SearchFilter("name", "description", "version")
    status = ChoicesFilter(choices=DefinitionStatus.choices, label=_("Status"))
    needs_review = FlagFilter(label=_("Needs review"))
    system = df.CharFilter(label=_("System"))
    created = PeriodFilter(field_name="created_at", label=_("Imported"))
    created_from, created_to = ends_of_period("created_at", menu="created")

    class Meta:
        model = LabletDefinition
        fields: list[str] = []


class RevisionFilter(df.FilterSet):
    q = SearchFilter("reason", "actor")
    basis = ChoicesFilter(choices=RevisionBasis.choices, label=_("Basis"))
    outcome = ChoicesFilter(choices=RevisionOutcome.choices, label=_("Outcome"))
    created = PeriodFilter(field_name="created_at", label=_("Applied"))
    created_from, created_to = ends_of_period("created_at", menu="created")

    class Meta:
        model = DefinitionRevision
        fields: list[str] = []


class DomainFilter(df.FilterSet):
    q = SearchFilter("name", "description")

    class Meta:
        model = Domain
        fields: list[str] = []


class ProjectFilter(DomainChoices):
    q = SearchFilter("name", "description", "domain__name")
    domain = ChoicesFilter(field_name="domain__name", label=_("Domain"))
    member = ObjectFilter(User, field_name="memberships__user_id", label=_("Member"))

    class Meta:
        model = Project
        fields: list[str] = []


class UserFilter(df.FilterSet):
    q = SearchFilter("username", "first_name", "last_name", "email")
    project = ObjectFilter(Project, field_name="memberships__project_id", label=_("Project"))

    class Meta:
        model = User
        fields: list[str] = []


class SavedViewFilter(df.FilterSet):
    q = SearchFilter("name")
    list_name = df.CharFilter(label=_("List"), max_length=50)
    shared = FlagFilter(label=_("Shared"), yes=_("Shared"), no=_("Own only"))

    class Meta:
        model = SavedView
        fields: list[str] = []


class MemberFilter(df.FilterSet):
    q = SearchFilter("user__username", "user__first_name", "user__last_name")

    class Meta:
        model = Membership
        fields: list[str] = []


class PersonFilter(UserFilter):
    role = df.ChoiceFilter(
        choices=[(role.label, role.label) for role in reversed(Role)], label=_("Role"), method="in_role"
    )
    is_active = FlagFilter(label=_("Account"), yes=_("Open"), no=_("Closed"))

    def in_role(self, qs: QuerySet[User], name: str, value: str) -> QuerySet[User]:
        return in_role(qs, GROUPS.get(value, Role.NONE))


class JobFilter(df.FilterSet):
    q = SearchFilter("title", "actor")
    state = ChoicesFilter(choices=JobState.choices, label=_("State"))
    rejected = FlagFilter(label=_("Rejected items"), method="with_rejected_items")
    created = PeriodFilter(field_name="created_at", label=_("Started"))
    created_from, created_to = ends_of_period("created_at", menu="created")

    class Meta:
        model = Job
        fields: list[str] = []

    def with_rejected_items(self, qs: QuerySet[Job], name: str, value: str) -> QuerySet[Job]:
        return qs.filter(rejected__gt=0) if value == "true" else qs.filter(rejected=0)


class TokenFilter(df.FilterSet):
    q = SearchFilter("name", "user__username")
    kind = ChoicesFilter(choices=TokenKind.choices, label=_("Kind"))
    state = ChoicesFilter(
        choices=[("valid", _("Valid")), ("expired", _("Expired")), ("revoked", _("Revoked"))],
        label=_("State"),
        method="in_state",
    )

    class Meta:
        model = ApiToken
        fields: list[str] = []

    def in_state(self, qs: QuerySet[ApiToken], name: str, value: list[str]) -> QuerySet[ApiToken]:
        now = filter_now()
        states = {
            "valid": Q(revoked_at=None, expires_at__gt=now),
            "expired": Q(revoked_at=None, expires_at__lte=now),
            "revoked": Q(revoked_at__isnull=False),
        }
        found = Q()
        for state in value:
            found |= states[state]
        return qs.filter(found)


def _object_types() -> list[tuple[str, StrOrPromise]]:
    return [(name, kind.label) for name, kind in Extension.installed().objects.items()]


class RecentSearchFilter(SearchFilter):
    """Search the newest rows only: a search without a match must not read years of log."""

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        newest = ChangeLog.objects.aggregate(Max("pk"))["pk__max"] if value else None
        return super().filter(qs.filter(pk__gt=newest - SEARCHED_CHANGES) if newest else qs, value)


class ChangeFilter(df.FilterSet):
    q = RecentSearchFilter("message", "object_label", "actor", "reason")
    object_type = ChoicesFilter(choices=_object_types, label=_("Object"))
    object_id = df.CharFilter(label=_("ID"), max_length=40)
    actor = df.CharFilter(label=_("Actor"), max_length=150)
    user = ObjectFilter(User, field_name="user_id", label=_("Actor"))
    person = UsernameFilter(field_name="user", label=_("Person"), menu="person", max_length=150)
    at = PeriodFilter(field_name="at", label=_("Time"))
    since, until = ends_of_period("at", menu="at")

    class Meta:
        model = ChangeLog
        fields: list[str] = []
