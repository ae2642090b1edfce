"""App config that replaces `django.contrib.admin` in INSTALLED_APPS."""

from importlib import import_module

from django.contrib.admin.apps import AdminConfig

MODULES = ("people", "organisation", "definitions", "sessions", "records")


class LcmAdminConfig(AdminConfig):
    default_site = "lcm.admin.site.LcmAdminSite"

    def ready(self) -> None:
        super().ready()
        for name in MODULES:
            import_module(f"lcm.admin.{name}")
