"""Configuration of the lists in `lcm`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.translation import ngettext_lazy

from lcm.domain.lifecycle import SessionStatus
from lcm.domain.roles import Role
from lcm.models import Domain, LabletDefinition
from lcm.selectors import definitions, jobs, organisation, sessions
from lcm.web import filters
from lcm.web.list_page import BulkAction, Column, ListPage, PageAction
from lcm.web.object_links import link_objects, object_name
from lcm.web.wording import Plural, count_text

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
        return "**No active sessions.** Ended sessions are listed below."
    return f"**{active:,} active** · {running:,} running"


def _definitions_lead() -> str:
    review = LabletDefinition.objects.filter(needs_review=True).count()
    total = LabletDefinition.objects.count()
    if not total:
        return "**No definitions yet.** Import a CML topology to create one."
    definitions = count_text(total, "definition")
    if review:
        return NEEDS_REVIEW.text(review, definitions=definitions)
    return f"**{definitions}** · 0 to review"


_SESSION_COLUMNS = [
    Column("Session", lambda row: str(row.pk), export_label="Id"),
    Column("Status", lambda row: row.get_status_display(), sort="status"),
    Column("Definition", lambda row: str(row.definition)),
    Column("Owner", lambda row: row.owner.username),
    Column("Project", lambda row: row.project.path),
    Column("Priority", lambda row: row.get_priority_display(), sort="-priority"),
]
_REQUESTED = Column("Requested", lambda row: row.created_at, sort="-created_at", numeric=True)
SESSIONS = ListPage(
    title="Sessions",
    export_name="sessions",
    counted=Plural(ngettext_lazy("%(count)s session", "%(count)s sessions")),
    search_label="Search sessions",
    no_match_title="No session matches",
    empty_title="No sessions yet",
    rows=sessions.sessions,
    filterset=filters.SessionFilter,
    columns=[*_SESSION_COLUMNS, Column("Timeslot", lambda row: row.ends_at, sort="ends_at"), _REQUESTED],
    export_columns=[
        *_SESSION_COLUMNS,
        Column("Starts", lambda row: row.starts_at, sort="starts_at"),
        Column("Ends", lambda row: row.ends_at, sort="ends_at"),
        _REQUESTED,
        Column("Port drift", lambda row: row.port_drift_detected),
        Column("Open port drift", lambda row: row.port_drift_open),
    ],
    row_template="sessions/row.html",
    default_sort="-created_at",
    search_hint="Id, definition, owner, project",
    icon="play-circle",
    empty_hint="Request a session of an active definition here or through the API.",
    lead=_sessions_lead,
    actions=[PageAction("New session", "session_create", Role.OPERATOR, "plus", primary=True)],
    bulk=[BulkAction("Cancel…", "session_bulk_cancel", Role.OPERATOR, danger=True)],
)


def _requirement(name: str) -> Any:
    return lambda row: getattr(row.current_revision, name)


DEFINITIONS = ListPage(
    title="Definitions",
    export_name="definitions",
    counted=Plural(ngettext_lazy("%(count)s definition", "%(count)s definitions")),
    search_label="Search definitions",
    no_match_title="No definition matches",
    empty_title="No definitions yet",
    rows=definitions.definitions,
    filterset=filters.DefinitionFilter,
    columns=[
        Column("Definition", lambda row: str(row), sort="name"),
        Column("Status", lambda row: row.get_status_display(), sort="status"),
        Column(
            "CPU",
            _requirement("cpu_cores"),
            sort="-current_revision__cpu_cores",
            numeric=True,
            export_label="CPU cores",
        ),
        Column(
            "Memory",
            _requirement("memory_gb"),
            sort="-current_revision__memory_gb",
            numeric=True,
            export_label="Memory GB",
        ),
        Column(
            "Storage",
            _requirement("storage_gb"),
            sort="-current_revision__storage_gb",
            numeric=True,
            export_label="Storage GB",
        ),
        Column("Revision", lambda row: row.current_revision.number, numeric=True),
        Column("Imported", lambda row: row.created_at, sort="-created_at", numeric=True),
    ],
    row_template="definitions/row.html",
    default_sort="name",
    search_hint="Name, description, version",
    icon="document-text",
    empty_hint="Import a CML topology: LCM reads its nodes, links and ports and estimates its requirements.",
    lead=_definitions_lead,
    actions=[PageAction("Import", "definition_import", Role.ADMIN, "arrow-up-tray", primary=True)],
    bulk=[
        BulkAction("Activate…", "definition_bulk_activate", Role.ADMIN),
        BulkAction("Deprecate…", "definition_bulk_deprecate", Role.ADMIN, danger=True),
    ],
)

_REVISION_COLUMNS = [
    Column("Revision", lambda row: row.number, sort="-number"),
    Column("CPU", lambda row: row.cpu_cores, sort="-cpu_cores", numeric=True, export_label="CPU cores"),
    Column("Memory", lambda row: row.memory_gb, sort="-memory_gb", numeric=True, export_label="Memory GB"),
    Column(
        "Storage", lambda row: row.storage_gb, sort="-storage_gb", numeric=True, export_label="Storage GB"
    ),
    Column("Basis", lambda row: ": ".join(filter(None, (row.get_basis_display(), row.mixed_bases)))),
    Column("Outcome", lambda row: row.outcome_label),
    Column("Reason", lambda row: row.reason),
    Column("Applied", lambda row: row.created_at, numeric=True),
]


def revisions_list(definition: LabletDefinition) -> ListPage:
    assert definition.current_revision is not None
    can_revert = definition.current_revision.number > 1
    return ListPage(
        title=f"Revisions of {definition}",
        export_name="revisions",
        counted=Plural(ngettext_lazy("%(count)s revision", "%(count)s revisions")),
        search_label="Search revisions",
        no_match_title="No revision matches",
        empty_title="No revisions yet",
        rows=lambda: definitions.revisions_to_list(definition),
        filterset=filters.RevisionFilter,
        columns=_REVISION_COLUMNS,
        row_actions=Role.ADMIN if can_revert else None,
        export_columns=[
            *_REVISION_COLUMNS,
            Column("Ports", lambda row: str(row.port_changes)),
            Column("Actor", lambda row: row.actor),
        ],
        row_template="definitions/revision_row.html",
        default_sort="-number",
        search_hint="Reason, actor",
        icon="clock",
        empty_hint="An import creates the first revision.",
        lead=lambda: "**Requirement history.** Each session keeps the revision it was requested with.",
    )


def _domains_lead() -> str:
    count = Domain.objects.count()
    first = _DOMAINS.text(count) if count else "No domains yet."
    return f"**{first}** Fair share divides capacity between domains first, then between projects."


DOMAINS = ListPage(
    title="Domains",
    export_name="domains",
    counted=Plural(ngettext_lazy("%(count)s domain", "%(count)s domains")),
    search_label="Search domains",
    no_match_title="No domain matches",
    empty_title="No domains yet",
    rows=organisation.domains,
    filterset=filters.DomainFilter,
    columns=[
        Column("Domain", lambda row: row.name, sort="name"),
        Column("Description", lambda row: row.description),
        Column("Projects", lambda row: row.project_count, numeric=True),
        Column("Created", lambda row: row.created_at, sort="-created_at", numeric=True),
    ],
    row_template="organisation/domain_row.html",
    default_sort="name",
    search_hint="Name, description",
    icon="building-office-2",
    empty_hint="A domain is an organisation or a part of one.",
    lead=_domains_lead,
    actions=[PageAction("New domain", "domain_create", Role.ADMIN, "plus", primary=True)],
)


def _projects_lead() -> str:
    projects, domains = organisation.project_counts()
    first = f"{count_text(projects, 'project')} in {count_text(domains, 'domain')}."
    if not projects:
        first = "No projects yet."
    return f"**{first}** Members of a project request sessions in it."


PROJECTS = ListPage(
    title="Projects",
    export_name="projects",
    counted=Plural(ngettext_lazy("%(count)s project", "%(count)s projects")),
    search_label="Search projects",
    no_match_title="No project matches",
    empty_title="No projects yet",
    rows=organisation.projects,
    filterset=filters.ProjectFilter,
    columns=[
        Column("Project", lambda row: row.name, sort="name"),
        Column("Domain", lambda row: row.domain.name, sort="domain__name"),
        Column("Description", lambda row: row.description),
        Column("Members", lambda row: row.member_count, numeric=True),
        Column("Created", lambda row: row.created_at, sort="-created_at", numeric=True),
    ],
    row_template="organisation/project_row.html",
    default_sort="name",
    search_hint="Name, description, domain",
    icon="folder",
    empty_hint="A project belongs to a domain. Its members can request sessions.",
    lead=_projects_lead,
    actions=[PageAction("New project", "project_create", Role.ADMIN, "plus", primary=True)],
)


def members_list(project: Any) -> ListPage:
    """Return the member list of a project with the given number of members."""
    add = PageAction(
        "Add member",
        "project_detail",
        Role.ADMIN,
        "plus",
        primary=True,
        args=(project.pk,),
        anchor="id_person",
    )
    return ListPage(
        title=f"Members of {project.path}",
        export_name="members",
        counted=Plural(ngettext_lazy("%(count)s member", "%(count)s members")),
        search_label="Search members",
        no_match_title="No member matches",
        empty_title="No members yet",
        rows=lambda: organisation.members_of(project),
        filterset=filters.MemberFilter,
        columns=[
            Column("Member", lambda row: row.user.username, sort="user__username"),
            Column("Name", lambda row: row.user.get_full_name()),
            Column("Joined", lambda row: row.joined_at, sort="-joined_at", numeric=True),
        ],
        row_template="organisation/member_row.html",
        default_sort="user__username",
        search_hint="Name, user name",
        icon="users",
        empty_hint="Add people on the project's page. Members can request sessions.",
        lead=lambda: _members_lead(project),
        actions=[add],
        row_actions=Role.VIEWER,
    )


def _members_lead(project: Any) -> str:
    if not project.member_count:
        return f"**{project.path} has no members.** Only members can request sessions in it."
    return _MEMBERS.text(project.member_count, project=project.path)


def _people_lead() -> str:
    counts = organisation.people_by_role()
    roles = [text.text(counts[role]) for role, text in _ROLES.items() if counts.get(role)]
    return (
        f"**{' · '.join(roles)}.** "
        "Viewers read. Operators manage sessions and slots. Admins manage everything. "
        "People without a role can own sessions but cannot open pages."
    )


PEOPLE = ListPage(
    title="People",
    export_name="people",
    counted=Plural(ngettext_lazy("%(count)s person", "%(count)s people")),
    search_label="Search people",
    no_match_title="No person matches",
    empty_title="No people yet",
    rows=organisation.people,
    filterset=filters.PersonFilter,
    columns=[
        Column("Person", lambda row: row.username, sort="username"),
        Column("Role", lambda row: row.role.label),
        Column("Account", lambda row: "open" if row.is_active else "closed"),
        Column("Email", lambda row: row.email),
        Column("Last sign-in", lambda row: row.last_login, numeric=True),
        Column("Joined", lambda row: row.date_joined, sort="-date_joined", numeric=True),
    ],
    row_template="people/row.html",
    default_sort="username",
    search_hint="Name, email",
    icon="users",
    empty_hint="Create people in the admin, then assign a role here.",
    lead=_people_lead,
    row_actions=Role.ADMIN,
)

# Tokens that expire this soon are highlighted, so that they are rotated in time.
SOON = timedelta(days=30)


def _tokens_lead() -> str:
    valid, ending = organisation.token_counts(timezone.now(), within=SOON)
    first = "No valid tokens."
    if valid:
        first = f"{count_text(valid, 'valid token')} · {ending:,} expiring within {SOON.days} days."
    return (
        f"**{first}** Controllers and API clients authenticate with tokens. A key is shown once, on creation."
    )


TOKENS = ListPage(
    title="Tokens",
    export_name="tokens",
    counted=Plural(ngettext_lazy("%(count)s token", "%(count)s tokens")),
    search_label="Search tokens",
    no_match_title="No token matches",
    empty_title="No tokens yet",
    rows=organisation.tokens,
    filterset=filters.TokenFilter,
    columns=[
        Column("Token", lambda row: row.name, sort="name"),
        Column("Kind", lambda row: row.get_kind_display()),
        Column("For", lambda row: row.user.username if row.user else ", ".join(row.scope_labels)),
        Column("State", lambda row: row.state),
        Column("Last used", lambda row: row.last_used_at, numeric=True),
        Column("Expires", lambda row: row.expires_at, sort="expires_at", numeric=True),
        Column("Created", lambda row: row.created_at, sort="-created_at", numeric=True),
    ],
    row_template="tokens/row.html",
    default_sort="-created_at",
    search_hint="Name, person",
    icon="key",
    empty_hint="Controllers and API clients authenticate with a token.",
    lead=_tokens_lead,
    row_actions=Role.ADMIN,
    actions=[PageAction("New token", "token_create", Role.ADMIN, "plus", primary=True)],
    bulk=[BulkAction("Revoke…", "token_bulk_revoke", Role.ADMIN, danger=True)],
)


def _jobs_lead() -> str:
    counts = jobs.job_counts()
    figures = [count_text(counts.unfinished, "unfinished job")]
    if counts.failed:
        figures.append(f"{counts.failed:,} failed")
    if counts.refusing:
        figures.append(f"{counts.refusing:,} with rejected rows")
    days = count_text(settings.CONFIG["JOB_DAYS"], "day")
    return f"**{' · '.join(figures)}.** Jobs are kept for {days} after they end."


JOBS = ListPage(
    title="Jobs",
    export_name="jobs",
    counted=Plural(ngettext_lazy("%(count)s job", "%(count)s jobs")),
    search_label="Search jobs",
    no_match_title="No job matches",
    empty_title="No jobs yet",
    rows=jobs.jobs,
    filterset=filters.JobFilter,
    columns=[
        Column("Job", lambda row: row.title),
        Column("State", lambda row: row.outcome_label, sort="state"),
        Column("Progress", lambda row: row.worked_on, export_label="Processed"),
        Column("Started by", lambda row: row.actor),
        Column("Started", lambda row: row.created_at, sort="-created_at", numeric=True),
    ],
    row_template="jobs/row.html",
    default_sort="-created_at",
    search_hint="Title, person",
    icon="briefcase",
    empty_hint="Bulk actions on more than 500 rows and other long tasks run here in the background.",
    lead=_jobs_lead,
)

CHANGES = ListPage(
    title="Change log",
    export_name="changes",
    counted=Plural(ngettext_lazy("%(count)s change", "%(count)s changes")),
    search_label="Search changes",
    no_match_title="No change matches",
    empty_title="No changes yet",
    rows=organisation.changes,
    filterset=filters.ChangeFilter,
    columns=[
        Column("Change", lambda row: row.message),
        Column("Object", object_name),
        Column("Actor", lambda row: row.actor),
        Column("Reason", lambda row: row.reason),
        Column("Time", lambda row: row.at, sort="-at", numeric=True),
    ],
    enrich_rows=link_objects,
    row_template="changes/row.html",
    default_sort="-at",
    search_hint="Change, object, actor, reason",
    icon="list-bullet",
    empty_hint="Every change is recorded here.",
    lead=lambda: (
        "**Every change with its actor, time and reason.** Entries cannot be edited. "
        f"Searches cover the newest {filters.SEARCHED_CHANGES:,}."
    ),
)
