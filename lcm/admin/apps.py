"""App config that replaces `django.contrib.admin` in INSTALLED_APPS."""

from django.contrib.admin.apps import AdminConfig


class LcmAdminConfig(AdminConfig):
    default_site = "lcm.admin.site.LcmAdminSite"

    def ready(self) -> None:
        super().ready()
        from lcm.admin import definitions, notifications, organisation, people, records, sessions  # noqa: F401
