"""URL configuration."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path, re_path

from lcm.pages import (
    account,
    changes,
    definition_import,
    definitions,
    jobs,
    organisation,
    overview,
    people,
    project_members,
    search,
    sessions,
    tokens,
)
from lcm.web import error_pages
from lcm.web.server import health

handler400 = error_pages.bad_request
handler403 = error_pages.forbidden
handler404 = error_pages.not_found
handler500 = error_pages.server_error

api: list[URLPattern | URLResolver] = [
    path("", include("observations.api.urls")),
    path("", include("lcm.api.urls")),
    path("", include("scheduling.api.urls")),
    path("", include("fairshare.api.urls")),
    re_path(".*", error_pages.unknown_call, name="unknown_call"),
]
# The API comes first: it gets most requests, and its prefix matches no page.
urlpatterns = [
    path("api/", include(api)),
    path("", overview.home, name="home"),
    path("search", search.search_page, name="search"),
    path("login", account.log_in, name="login"),
    path("logout", account.log_out, name="logout"),
    path("theme", account.set_theme, name="set_theme"),
    path("suggest/<slug:kind>", account.suggest, name="suggest"),
    path("sessions/", sessions.session_list, name="session_list"),
    path("sessions/new", sessions.session_create, name="session_create"),
    path("sessions/cancel", sessions.session_bulk_cancel, name="session_bulk_cancel"),
    path("sessions/<uuid:pk>/", sessions.session_detail, name="session_detail"),
    path("sessions/<uuid:pk>/cancel", sessions.session_cancel, name="session_cancel"),
    path("sessions/<uuid:pk>/extend", sessions.session_extend, name="session_extend"),
    path("definitions/", definitions.definition_list, name="definition_list"),
    path("definitions/import", definition_import.definition_import, name="definition_import"),
    path("definitions/bulk-import", definition_import.definition_bulk_import, name="definition_bulk_import"),
    path("definitions/activate", definitions.definition_bulk_activate, name="definition_bulk_activate"),
    path("definitions/deprecate", definitions.definition_bulk_deprecate, name="definition_bulk_deprecate"),
    path("definitions/<uuid:pk>/", definitions.definition_detail, name="definition_detail"),
    path("definitions/<uuid:pk>/edit", definitions.definition_edit, name="definition_edit"),
    path("definitions/<uuid:pk>/revise", definitions.definition_revise, name="definition_revise"),
    path("definitions/<uuid:pk>/ports", definitions.definition_ports, name="definition_ports"),
    path("definitions/<uuid:pk>/status", definitions.definition_status, name="definition_status"),
    path("definitions/<uuid:pk>/delete", definitions.definition_delete, name="definition_delete"),
    path("definitions/<uuid:pk>/revisions", definitions.definition_revisions, name="definition_revisions"),
    path(
        "definitions/<uuid:pk>/revisions/<int:number>/revert",
        definitions.definition_revert,
        name="definition_revert",
    ),
    path("domains/", organisation.domain_list, name="domain_list"),
    path("domains/new", organisation.domain_create, name="domain_create"),
    path("domains/<uuid:pk>/", organisation.domain_detail, name="domain_detail"),
    path("domains/<uuid:pk>/edit", organisation.domain_edit, name="domain_edit"),
    path("domains/<uuid:pk>/delete", organisation.domain_delete, name="domain_delete"),
    path("projects/", organisation.project_list, name="project_list"),
    path("projects/new", organisation.project_create, name="project_create"),
    path("projects/<uuid:pk>/", project_members.project_detail, name="project_detail"),
    path("projects/<uuid:pk>/edit", organisation.project_edit, name="project_edit"),
    path("projects/<uuid:pk>/delete", organisation.project_delete, name="project_delete"),
    path("projects/<uuid:pk>/members/", project_members.member_list, name="member_list"),
    path("projects/<uuid:pk>/members/add", project_members.member_add, name="member_add"),
    path(
        "projects/<uuid:pk>/members/<uuid:user_pk>/remove",
        project_members.member_remove,
        name="member_remove",
    ),
    path("profile", people.profile, name="profile"),
    path("profile/password", people.password_change, name="password_change"),
    path("people/", people.person_list, name="person_list"),
    path("people/<uuid:pk>/role", people.person_role, name="person_role"),
    path("tokens/", tokens.token_list, name="token_list"),
    path("tokens/new", tokens.token_create, name="token_create"),
    path("tokens/<uuid:pk>/rotate", tokens.token_rotate, name="token_rotate"),
    path("tokens/<uuid:pk>/revoke", tokens.token_revoke, name="token_revoke"),
    path("tokens/revoke", tokens.token_bulk_revoke, name="token_bulk_revoke"),
    path("jobs/", jobs.job_list, name="job_list"),
    path("jobs/<uuid:pk>/", jobs.job_detail, name="job_detail"),
    path("jobs/<uuid:pk>/retry", jobs.job_retry, name="job_retry"),
    path("changes/", changes.change_list, name="change_list"),
    path("changes/<int:pk>/", changes.change_detail, name="change_detail"),
    path("favicon.ico", account.favicon, name="favicon"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.prometheus, name="metrics"),
    path("", include("scheduling.urls")),
    path("", include("fairshare.urls")),
    path("", include("observations.urls")),
    path("admin/", admin.site.urls),
]
