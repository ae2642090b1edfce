"""What `lcm` adds to its own pages and work; other apps add theirs in the same way."""

from django.utils.translation import gettext_lazy as _

from lcm.domain.roles import Role
from lcm.events.event_types import EVENT_TYPES
from lcm.extensions import Extension
from lcm.monitoring.metrics import active_sessions, delivery_queue
from lcm.pages import bulk_actions, deliveries, search
from lcm.pages.first_steps import FIRST_STEPS
from lcm.periodic import specs
from lcm.selectors import names
from lcm.services import import_job
from lcm.web.bulk_actions import bulk_step
from lcm.web.navigation import NavEntry
from lcm.web.object_links import ObjectKind
from lcm.web.search import Finder

NAVIGATION = (
    NavEntry("overview", _("Overview"), "home", "/overview/", "squares-2x2", shortcut="o"),
    NavEntry("inbox", _("Inbox"), "inbox_list", "/inbox/", "inbox", shortcut="i"),
    NavEntry("sessions", _("Sessions"), "session_list", "/sessions/", "play-circle", shortcut="s"),
    NavEntry(
        "definitions",
        _("Definitions"),
        "definition_list",
        "/definitions/",
        "document-text",
        group="Plan",
        shortcut="d",
    ),
    NavEntry(
        "domains", _("Domains"), "domain_list", "/domains/", "building-office-2", group="Plan", shortcut="m"
    ),
    NavEntry("projects", _("Projects"), "project_list", "/projects/", "folder", group="Plan", shortcut="p"),
    NavEntry(
        "people", _("People"), "person_list", "/people/", "users", Role.ADMIN, group="System", shortcut="e"
    ),
    NavEntry(
        "tokens", _("Tokens"), "token_list", "/tokens/", "key", Role.ADMIN, group="System", shortcut="t"
    ),
    NavEntry(
        "notifications",
        _("Notifications"),
        "delivery_list",
        "/notifications/",
        "bell",
        Role.ADMIN,
        group="System",
        shortcut="w",
    ),
    NavEntry("jobs", _("Jobs"), "job_list", "/jobs/", "briefcase", group="System", shortcut="j"),
    NavEntry(
        "changes", _("Change log"), "change_list", "/changes/", "list-bullet", group="System", shortcut="l"
    ),
)
EXTENSION = Extension(
    navigation=NAVIGATION,
    first_steps=FIRST_STEPS,
    finders=(
        Finder(_("Sessions"), search.find_sessions, "session_list"),
        Finder(_("Definitions"), search.find_definitions, "definition_list"),
        Finder(_("Projects"), search.find_projects, "project_list"),
        Finder(_("People"), search.find_people, "person_list", Role.ADMIN),
    ),
    bulk_actions=(
        bulk_actions.EXTEND,
        bulk_actions.PRIORITY,
        bulk_actions.CANCEL,
        bulk_actions.ACTIVATE,
        bulk_actions.DEPRECATE,
        bulk_actions.REVOKE,
        deliveries.RETRY,
    ),
    objects={
        "labletsession": ObjectKind(_("Session"), "session_detail", is_watchable=True),
        "labletdefinition": ObjectKind(_("Definition"), "definition_detail", is_watchable=True),
        "domain": ObjectKind(_("Domain"), "domain_detail"),
        "project": ObjectKind(_("Project"), "project_detail"),
        "apitoken": ObjectKind(_("Token")),
        "user": ObjectKind(_("Person")),
        "webhook": ObjectKind(_("Webhook"), "webhook_detail"),
        "eventrule": ObjectKind(_("Rule"), "rule_edit"),
        "delivery": ObjectKind(_("Delivery"), "delivery_detail"),
        "job": ObjectKind(_("Job"), "job_detail"),
        "savedview": ObjectKind(_("View")),
    },
    suggestions={
        "definitions": names.suggest_definitions,
        "projects": names.suggest_projects,
        "people": names.suggest_people,
    },
    events=EVENT_TYPES,
    jobs={"bulk": bulk_step, import_job.JOB_KIND: import_job.import_step},
    periodic=(specs,),
    metrics=(active_sessions, delivery_queue),
)
