"""Configuration of the lists in `lcm`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext, ngettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from lcm.domain.lifecycle import SessionStatus
from lcm.domain.roles import Role
from lcm.models import Domain, LabletDefinition
from lcm.selectors import definitions, jobs, organisation, sessions
from lcm.web import filters
from lcm.web.list_columns import NEVER, Column
from lcm.web.list_page import BulkAction, ListPage, PageAction
from lcm.web.object_links import link_objects, object_name
from lcm.web.resources import amount_columns
from lcm.web.wording import Plural

NEEDS_REVIEW = Plural(
    ngettext_lazy(
        "**%(count)s of %(definitions)s needs review.**", "**%(count)s of %(definitions)s need review.**"
    )
)
_DOMAINS = Plural(ngettext_lazy("One domain uses the whole fleet.", "%(count)s domains share the fleet."))
_MEMBERS = Plural(
    ngettext_lazy(
        "**%(count)s person can request sessions in %(project)s.**",
        "**%(count)s people can request sessions in %(project)s.**",
    )
)
_VALID_TOKENS = Plural(ngettext_lazy("%(count)s valid token", "%(count)s valid tokens"))
_UNFINISHED_JOBS = Plural(ngettext_lazy("%(count)s unfinished job", "%(count)s unfinished jobs"))
_JOBS_KEPT = Plural(
    ngettext_lazy(
        "Jobs are kept for %(count)s day after they end.", "Jobs are kept for %(count)s days after they end."
    )
)
_ROLES = {
    Role.ADMIN: Plural(ngettext_lazy("%(count)s Admin", "%(count)s Admins")),
    Role.OPERATOR: Plural(ngettext_lazy("%(count)s Operator", "%(count)s Operators")),
    Role.VIEWER: Plural(ngettext_lazy("%(count)s Viewer", "%(count)s Viewers")),
    Role.NONE: Plural(ngettext_lazy("%(count)s without a role", "%(count)s without a role")),
}


def _sessions_lead() -> str:
    counts = sessions.active_by_status()
    active, running = sum(counts.values()), counts[SessionStatus.RUNNING]
    if not active:
        return gettext("**No active sessions.** Ended sessions are listed below.")
    return gettext("**%(active)s active** · %(running)s running") % {
        "active": f"{active:,}",
        "running": f"{running:,}",
    }


def _definitions_lead() -> str:
    review = LabletDefinition.objects.filter(needs_review=True).count()
    total = LabletDefinition.objects.count()
    if not total:
        return gettext("**No definitions yet.** Import a CML topology to create one.")
    definitions = DEFINITIONS.counted.text(total)
    if review:
        return NEEDS_REVIEW.text(review, definitions=definitions)
    return gettext("**%(definitions)s** · 0 to review") % {"definitions": definitions}


_SESSION_COLUMNS = [
    Column(_("Session"), lambda row: str(row.pk), export_label=_("ID"), cell="id"),
    Column(_("Status"), lambda row: row.get_status_display(), sort="status", cell="status", phone="side"),
    Column(_("Definition"), lambda row: str(row.definition), cell="definition", phone="below"),
    Column(_("Owner"), lambda row: row.owner.username, cell="owner"),
    Column(_("Project"), lambda row: row.project.path, cell="project", name="project"),
    Column(_("Priority"), lambda row: row.get_priority_display(), sort="-priority"),
]
_REQUESTED = Column(_("Requested"), lambda row: row.created_at, sort="-created_at", numeric=True)
SESSIONS = ListPage(
    title=_("Sessions"),
    export_name="sessions",
    counted=Plural(ngettext_lazy("%(count)s session", "%(count)s sessions")),
    search_label=_("Search sessions"),
    no_match_title=_("No session matches"),
    empty_title=_("No sessions yet"),
    rows=sessions.sessions,
    filterset=filters.SessionFilter,
    columns=[
        # The project stands below the owner.
        *(replace(each, optional=each.name == "project") for each in _SESSION_COLUMNS),
        Column(
            _("Timeslot"), lambda row: row.ends_at, sort="ends_at", css="wide", cell="timeslot", phone="end"
        ),
        _REQUESTED,
    ],
    cells="sessions/cells.html",
    export_columns=[
        *_SESSION_COLUMNS,
        Column(_("Starts"), lambda row: row.starts_at, sort="starts_at"),
        Column(_("Ends"), lambda row: row.ends_at, sort="ends_at"),
        _REQUESTED,
        Column(_("Port drift"), lambda row: row.port_drift_detected),
        Column(_("Open port drift"), lambda row: row.port_drift_open),
    ],
    default_sort="-created_at",
    search_hint=_("ID, definition, owner, project"),
    icon="play-circle",
    empty_hint=_("Request a session of an active definition here or through the API."),
    lead=_sessions_lead,
    actions=[PageAction(_("New session"), "session_create", Role.OPERATOR, "plus", primary=True)],
    bulk=[
        BulkAction(_("Extend…"), "session_bulk_extend", Role.OPERATOR),
        BulkAction(_("Priority…"), "session_bulk_priority", Role.OPERATOR),
        BulkAction(_("Cancel…"), "session_bulk_cancel", Role.OPERATOR, danger=True),
    ],
)


DEFINITIONS = ListPage(
    title=_("Definitions"),
    export_name="definitions",
    counted=Plural(ngettext_lazy("%(count)s definition", "%(count)s definitions")),
    search_label=_("Search definitions"),
    no_match_title=_("No definition matches"),
    empty_title=_("No definitions yet"),
    rows=definitions.definitions,
    filterset=filters.DefinitionFilter,
    columns=[
        Column(_("Definition"), lambda row: str(row), sort="name", cell="name", name="definition"),
        Column(
            _("Status"),
            lambda row: row.get_status_display(),
            sort="status",
            cell="status",
            name="status",
            phone="side",
        ),
        *amount_columns(of="current_revision"),
        Column(_("Revision"), lambda row: row.current_revision.number, numeric=True, name="revision"),
        Column(
            _("Imported"),
            lambda row: row.created_at,
            sort="-created_at",
            numeric=True,
            name="imported",
            phone="end",
        ),
    ],
    cells="definitions/cells.html",
    default_sort="name",
    search_hint=_("Name, description, version"),
    icon="document-text",
    empty_hint=_(
        "Import a CML topology: LCM reads its nodes, links and ports and estimates its requirements."
    ),
    lead=_definitions_lead,
    actions=[PageAction(_("Import"), "definition_import", Role.ADMIN, "arrow-up-tray", primary=True)],
    bulk=[
        BulkAction(_("Activate…"), "definition_bulk_activate", Role.ADMIN),
        BulkAction(_("Deprecate…"), "definition_bulk_deprecate", Role.ADMIN, danger=True),
    ],
)

REVISION_COLUMNS = [
    Column(_("Revision"), lambda row: row.number, sort="-number", cell="number"),
    *amount_columns(),
    Column(
        _("Basis"),
        lambda row: ": ".join(filter(None, (row.get_basis_display(), row.mixed_bases))),
        cell="basis",
    ),
    Column(_("Outcome"), lambda row: row.outcome_label, cell="outcome", phone="side"),
    Column(_("Reason"), lambda row: row.reason, css="wide", cell="reason", phone="below"),
    Column(_("Applied"), lambda row: row.created_at, numeric=True, phone="end"),
]


def revisions_list(definition: LabletDefinition) -> ListPage:
    assert definition.current_revision is not None
    can_revert = definition.current_revision.number > 1
    return ListPage(
        title=gettext("Revisions of %(definition)s") % {"definition": definition},
        export_name="revisions",
        counted=Plural(ngettext_lazy("%(count)s revision", "%(count)s revisions")),
        search_label=gettext("Search revisions"),
        no_match_title=gettext("No revision matches"),
        empty_title=gettext("No revisions yet"),
        rows=lambda: definitions.revisions_to_list(definition),
        filterset=filters.RevisionFilter,
        columns=REVISION_COLUMNS,
        cells="definitions/revision_cells.html",
        row_actions=Role.ADMIN if can_revert else None,
        export_columns=[
            *REVISION_COLUMNS,
            Column(_("Ports"), lambda row: str(row.port_changes)),
            Column(_("Actor"), lambda row: row.actor),
        ],
        actions_cell="definitions/revision_cells.html#actions",
        default_sort="-number",
        search_hint=gettext("Reason, actor"),
        icon="clock",
        empty_hint=gettext("An import creates the first revision."),
        lead=lambda: gettext(
            "**Requirement history.** Each session keeps the revision it was requested with."
        ),
    )


def _domains_lead() -> str:
    count = Domain.objects.count()
    first = _DOMAINS.text(count) if count else gettext("No domains yet.")
    more = gettext("Fair share divides capacity between domains first, then between projects.")
    return f"**{first}** {more}"


DOMAINS = ListPage(
    title=_("Domains"),
    export_name="domains",
    counted=Plural(ngettext_lazy("%(count)s domain", "%(count)s domains")),
    search_label=_("Search domains"),
    no_match_title=_("No domain matches"),
    empty_title=_("No domains yet"),
    rows=organisation.domains,
    filterset=filters.DomainFilter,
    columns=[
        Column(_("Domain"), lambda row: row.name, sort="name", cell="domain"),
        Column(_("Description"), lambda row: row.description, css="wide", phone="below"),
        Column(_("Projects"), lambda row: row.project_count, numeric=True, cell="projects"),
        Column(_("Created"), lambda row: row.created_at, sort="-created_at", numeric=True, phone="end"),
    ],
    cells="organisation/cells.html",
    default_sort="name",
    search_hint=_("Name, description"),
    icon="building-office-2",
    empty_hint=_("A domain is an organisation or a part of one."),
    lead=_domains_lead,
    actions=[PageAction(_("New domain"), "domain_create", Role.ADMIN, "plus", primary=True)],
)


def _projects_lead() -> str:
    projects, domains = organisation.project_counts()
    first = gettext("No projects yet.")
    if projects:
        first = gettext("%(projects)s in %(domains)s.") % {
            "projects": PROJECTS.counted.text(projects),
            "domains": DOMAINS.counted.text(domains),
        }
    return f"**{first}** {gettext('Members of a project request sessions in it.')}"


PROJECTS = ListPage(
    title=_("Projects"),
    export_name="projects",
    counted=Plural(ngettext_lazy("%(count)s project", "%(count)s projects")),
    search_label=_("Search projects"),
    no_match_title=_("No project matches"),
    empty_title=_("No projects yet"),
    rows=organisation.projects,
    filterset=filters.ProjectFilter,
    columns=[
        Column(_("Project"), lambda row: row.name, sort="name", cell="project"),
        Column(
            _("Domain"), lambda row: row.domain.name, sort="domain__name", cell="project_domain", phone="side"
        ),
        Column(_("Description"), lambda row: row.description, css="wide", phone="below"),
        Column(_("Members"), lambda row: row.member_count, numeric=True, cell="members"),
        Column(_("Created"), lambda row: row.created_at, sort="-created_at", numeric=True, phone="end"),
    ],
    cells="organisation/cells.html",
    default_sort="name",
    search_hint=_("Name, description, domain"),
    icon="folder",
    empty_hint=_("A project belongs to a domain. Its members can request sessions."),
    lead=_projects_lead,
    actions=[PageAction(_("New project"), "project_create", Role.ADMIN, "plus", primary=True)],
)


def members_list(project: Any) -> ListPage:
    """Return the member list of a project with the given number of members."""
    add = PageAction(
        gettext("Add member"),
        "project_detail",
        Role.ADMIN,
        "plus",
        primary=True,
        args=(project.pk,),
        anchor="id_person",
    )
    return ListPage(
        title=gettext("Members of %(project)s") % {"project": project.path},
        export_name="members",
        counted=Plural(ngettext_lazy("%(count)s member", "%(count)s members")),
        search_label=gettext("Search members"),
        no_match_title=gettext("No member matches"),
        empty_title=gettext("No members yet"),
        rows=lambda: organisation.members_of(project),
        filterset=filters.MemberFilter,
        columns=[
            Column(_("Member"), lambda row: row.user.username, sort="user__username", cell="member"),
            Column(_("Name"), lambda row: row.user.get_full_name(), phone="below"),
            Column(_("Joined"), lambda row: row.joined_at, sort="-joined_at", numeric=True, phone="side"),
        ],
        cells="organisation/cells.html",
        actions_cell="organisation/cells.html#member_actions",
        default_sort="user__username",
        search_hint=gettext("Name, user name"),
        icon="users",
        empty_hint=gettext("Add people on the project's page. Members can request sessions."),
        lead=lambda: _members_lead(project),
        actions=[add],
        row_actions=Role.VIEWER,
    )


def _members_lead(project: Any) -> str:
    if not project.member_count:
        return gettext("**%(project)s has no members.** Only members can request sessions in it.") % {
            "project": project.path
        }
    return _MEMBERS.text(project.member_count, project=project.path)


def _people_lead() -> str:
    counts = organisation.people_by_role()
    roles = [text.text(counts[role]) for role, text in _ROLES.items() if counts.get(role)]
    more = gettext(
        "Viewers read. Operators manage sessions and slots. Admins manage everything. "
        "People without a role can own sessions but cannot open pages."
    )
    return f"**{' · '.join(roles)}.** {more}"


PEOPLE = ListPage(
    title=_("People"),
    export_name="people",
    counted=Plural(ngettext_lazy("%(count)s person", "%(count)s people")),
    search_label=_("Search people"),
    no_match_title=_("No person matches"),
    empty_title=_("No people yet"),
    rows=organisation.people,
    filterset=filters.PersonFilter,
    columns=[
        Column(_("Person"), lambda row: row.username, sort="username", cell="person"),
        Column(_("Role"), lambda row: row.role.label, cell="role", phone="side"),
        Column(
            _("Account"), lambda row: gettext("open") if row.is_active else gettext("closed"), cell="account"
        ),
        Column(_("Email"), lambda row: row.email, phone="below"),
        Column(_("Last sign-in"), lambda row: row.last_login, numeric=True, empty=NEVER),
        Column(_("Joined"), lambda row: row.date_joined, sort="-date_joined", numeric=True),
    ],
    cells="people/cells.html",
    actions_cell="people/cells.html#actions",
    default_sort="username",
    search_hint=_("Name, email"),
    icon="users",
    empty_hint=_("Add people one at a time, or import them from a CSV file."),
    lead=_people_lead,
    actions=[
        PageAction(_("Import"), "person_import", Role.ADMIN, "arrow-up-tray"),
        PageAction(_("Add person"), "person_create", Role.ADMIN, "plus", primary=True),
    ],
    row_actions=Role.ADMIN,
)

# Tokens that expire this soon are highlighted, so that they are rotated in time.
SOON = timedelta(days=30)


def _tokens_lead() -> str:
    valid, ending = organisation.token_counts(timezone.now(), within=SOON)
    first = gettext("No valid tokens.")
    if valid:
        expiring = gettext("%(count)s expiring within %(days)s days.") % {
            "count": f"{ending:,}",
            "days": SOON.days,
        }
        first = f"{_VALID_TOKENS.text(valid)} · {expiring}"
    more = gettext("Controllers and API clients authenticate with tokens. A key is shown once, on creation.")
    return f"**{first}** {more}"


TOKENS = ListPage(
    title=_("Tokens"),
    export_name="tokens",
    counted=Plural(ngettext_lazy("%(count)s token", "%(count)s tokens")),
    search_label=_("Search tokens"),
    no_match_title=_("No token matches"),
    empty_title=_("No tokens yet"),
    rows=organisation.tokens,
    filterset=filters.TokenFilter,
    columns=[
        Column(_("Token"), lambda row: row.name, sort="name", cell="token"),
        Column(_("Kind"), lambda row: row.get_kind_display()),
        Column(
            _("For"),
            lambda row: row.user.username if row.user else ", ".join(row.scope_labels),
            cell="for",
            phone="below",
        ),
        Column(_("State"), lambda row: row.state, cell="state", phone="side"),
        Column(_("Last used"), lambda row: row.last_used_at, numeric=True, empty=NEVER),
        Column(_("Expires"), lambda row: row.expires_at, sort="expires_at", numeric=True),
        Column(_("Created"), lambda row: row.created_at, sort="-created_at", numeric=True),
    ],
    cells="tokens/cells.html",
    actions_cell="tokens/cells.html#actions",
    default_sort="-created_at",
    search_hint=_("Name, person"),
    icon="key",
    empty_hint=_("Controllers and API clients authenticate with a token."),
    lead=_tokens_lead,
    row_actions=Role.ADMIN,
    actions=[PageAction(_("New token"), "token_create", Role.ADMIN, "plus", primary=True)],
    bulk=[BulkAction(_("Revoke…"), "token_bulk_revoke", Role.ADMIN, danger=True)],
)


def _jobs_lead() -> str:
    counts = jobs.job_counts()
    figures = [_UNFINISHED_JOBS.text(counts.unfinished)]
    if counts.failed:
        figures.append(
            ngettext("%(count)s failed", "%(count)s failed", counts.failed) % {"count": f"{counts.failed:,}"}
        )
    if counts.with_rejected_items:
        figures.append(
            gettext("%(count)s with rejected items") % {"count": f"{counts.with_rejected_items:,}"}
        )
    kept = _JOBS_KEPT.text(settings.CONFIG["JOB_DAYS"])
    return f"**{' · '.join(figures)}.** {kept}"


JOBS = ListPage(
    title=_("Jobs"),
    export_name="jobs",
    counted=Plural(ngettext_lazy("%(count)s job", "%(count)s jobs")),
    search_label=_("Search jobs"),
    no_match_title=_("No job matches"),
    empty_title=_("No jobs yet"),
    rows=jobs.jobs,
    filterset=filters.JobFilter,
    columns=[
        Column(_("Job"), lambda row: row.title, cell="job"),
        Column(_("State"), lambda row: row.outcome_label, sort="state", cell="state", phone="side"),
        Column(
            _("Progress"), lambda row: row.worked_on, export_label=_("Processed"), css="wide", cell="progress"
        ),
        Column(_("Started by"), lambda row: row.actor, phone="below"),
        Column(_("Started"), lambda row: row.created_at, sort="-created_at", numeric=True, phone="end"),
    ],
    cells="jobs/cells.html",
    default_sort="-created_at",
    search_hint=_("Title, person"),
    icon="briefcase",
    empty_hint=_("Bulk actions on more than 500 rows and other long tasks run here in the background."),
    lead=_jobs_lead,
)

CHANGES = ListPage(
    title=_("Change log"),
    export_name="changes",
    counted=Plural(ngettext_lazy("%(count)s change", "%(count)s changes")),
    search_label=_("Search changes"),
    no_match_title=_("No change matches"),
    empty_title=_("No changes yet"),
    rows=organisation.changes,
    filterset=filters.ChangeFilter,
    columns=[
        Column(_("Change"), lambda row: row.message, cell="change"),
        Column(_("Object"), object_name, css="fit-content", cell="object", phone="below"),
        Column(_("Actor"), lambda row: row.actor, css="fit-content", cell="actor"),
        Column(_("Reason"), lambda row: row.reason, css="wide"),
        Column(_("Time"), lambda row: row.at, sort="-at", numeric=True, phone="end"),
    ],
    cells="changes/cells.html",
    enrich_rows=link_objects,
    default_sort="-at",
    search_hint=_("Change, object, actor, reason"),
    icon="list-bullet",
    empty_hint=_("Every change is recorded here."),
    lead=lambda: (
        gettext(
            "**Every change with its actor, time and reason.** Entries cannot be edited. Searches "
            "cover the newest %(count)s."
        )
        % {"count": f"{filters.SEARCHED_CHANGES:,}"}
    ),
)
