"""The admin site, for staff with the Admin role."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponseRedirect
from django.urls import reverse

from lcm.admin.access import is_admin
from lcm.admin.data_fixes import delete_selected_objects, log_password_change
from lcm.web.access import is_local_address


class LcmAdminSite(admin.AdminSite):
    site_header = site_title = "LCM data fixes"
    index_title = "Data fixes"
    site_url = "/"
    index_template = "admin/lcm/index.html"

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        self.add_action(delete_selected_objects, "delete_selected")

    def has_permission(self, request: HttpRequest) -> bool:
        user = request.user
        return bool(user.is_active and user.is_staff) and is_admin(request)

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Redirect to LCM's sign-in page; show signed-in people why they have no access."""
        after = request.GET.get("next", "")
        if not is_local_address(request, after):
            after = reverse("admin:index")
        if self.has_permission(request):
            return HttpResponseRedirect(after)
        if request.user.is_authenticated:
            raise PermissionDenied("Data fixes require staff status and the role Admin.")
        return redirect_to_login(after)

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        with transaction.atomic():
            response = super().password_change(request, extra_context)
            if request.method == "POST" and response.status_code == 302:
                log_password_change(request, request.user)
        return response

    def get_log_entries(self, request: HttpRequest) -> Any:
        """Return nothing: the start page links to the change log instead of Django's log."""
        return []
