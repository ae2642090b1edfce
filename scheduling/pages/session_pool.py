"""Page that moves a waiting session to another pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from lcm.domain.roles import Role
from lcm.selectors.sessions import sessions
from lcm.web.access import role_required
from lcm.web.form_page import FormPage, FormResult, actor_of, form_page
from lcm.web.forms import ReasonForm
from scheduling.selectors.capacity import other_pools
from scheduling.services.pool_transfer import move_to_pool


class SessionPoolForm(ReasonForm):
    """Choose a pool; the service decides whether it suits the session."""

    pool = forms.CharField(max_length=63, widget=forms.Select)
    field_order = ("pool", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["pool"].widget.choices = [(name, name) for name in self.initial["pools"]]


@require_http_methods(["GET", "POST"])
@role_required(Role.OPERATOR)
def session_pool(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    session = get_object_or_404(sessions(), pk=pk)
    here = reverse("session_detail", args=[pk])
    pools = other_pools(session)

    def save(data: Mapping[str, Any]) -> FormResult:
        move_to_pool(session=session, **data, actor=actor_of(request), now=timezone.now())
        return FormResult(f"Session {session.short_id} moved to {session.pool}.", here)

    text = f"It waits in {session.pool}. It keeps its age and priority."
    none = f"There is no other pool for {session.definition.system} that is enabled."
    page = FormPage(
        title=f"Move session {session.short_id} to another pool",
        text=text if pools else none,
        form=SessionPoolForm,
        submit="Move session",
        save=save,
        back=here,
        initial={"pools": pools},
        crumbs=[("Sessions", reverse("session_list")), (session.short_id, here), ("Move", "")],
    )
    return form_page(request, page)
