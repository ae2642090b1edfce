"""Columns, density and saved views of lists."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from lcm.domain.errors import LcmError
from lcm.domain.roles import Role
from lcm.models import Density, SavedView, User
from lcm.selectors.list_views import settings_of, views_changeable_by, views_for
from lcm.services import list_views as services
from lcm.web.access import is_local_address, role_required
from lcm.web.form_page import FormPage, FormResult, form_view, redirect_with_message
from lcm.web.forms import PageForm
from lcm.web.list_layout import LAYOUT_NAMES, saved_query, view_address


class ListAddress:
    """The address of the list that a request came from."""

    def __init__(self, request: HttpRequest) -> None:
        found = request.POST.get("next") or request.GET.get("next", "")
        # The path alone must stay on this host too: “//example.org” would be another one.
        is_usable = is_local_address(request, found) and is_local_address(request, urlsplit(found).path)
        self.full = found if is_usable else reverse("home")
        parts = urlsplit(self.full)
        self.path, self.query = parts.path, QueryDict(parts.query)

    def shown_layout(self, user: User, list_name: str) -> dict[str, Any]:
        """Return the columns and density that the list has there."""
        view = views_for(user).filter(pk=self.view_id).first() if self.view_id else None
        source = view or settings_of(user, list_name)
        columns = self.query["columns"].split(",") if "columns" in self.query else source.columns
        return {"columns": list(columns), "density": self.query.get("density") or source.density}

    @property
    def view_id(self) -> UUID | None:
        try:
            return UUID(self.query.get("view", ""))
        except ValueError:
            return None

    def with_layout(self, **values: str) -> str:
        """Return the address with another layout in its query."""
        query = self.query.copy()
        for name in (*LAYOUT_NAMES[1:], "cursor"):
            query.pop(name, None)
        query.update({name: value for name, value in values.items() if value})
        return f"{self.path}?{query.urlencode()}" if query else self.path


@require_POST
@role_required(Role.VIEWER)
def list_layout(request: HttpRequest, name: str) -> HttpResponseBase:
    """Save columns and density of the person; with a view they are a change of the view in the URL."""
    assert isinstance(request.user, User)
    address, is_reset = ListAddress(request), "reset" in request.POST
    columns = [] if is_reset else request.POST.getlist("columns")
    density = Density.COMFORTABLE.value if is_reset else request.POST.get("density", "")
    if address.view_id is not None:
        changed = {} if is_reset else {"columns": ",".join(columns), "density": density}
        return redirect(address.with_layout(**changed))
    try:
        services.set_list_layout(user=request.user, list_name=name, columns=columns, density=density)
    except LcmError as error:
        messages.error(request, error.message)
    return redirect(address.with_layout())


class ViewForm(PageForm):
    name = forms.CharField(label=_("Name"), max_length=60)
    shared = forms.BooleanField(
        label=_("Share with everyone"),
        required=False,
        help_text=_("Everyone who can see this list can use the view. You and Admins can change it."),
    )
    next = forms.CharField(widget=forms.HiddenInput, required=False)


class DeleteViewForm(PageForm):
    next = forms.CharField(widget=forms.HiddenInput, required=False)


def _values(address: ListAddress, user: User, list_name: str, data: Any) -> dict[str, Any]:
    layout = address.shown_layout(user, list_name)
    return {"name": data["name"], "shared": data["shared"], "query": saved_query(address.query), **layout}


@form_view(Role.VIEWER)
def view_create(request: HttpRequest, name: str) -> FormPage:
    assert isinstance(request.user, User)
    user, address = request.user, ListAddress(request)
    return FormPage(
        title=gettext("Save view"),
        text=gettext("A view contains the filters, order, page size, columns and density of the list."),
        form=ViewForm,
        submit=gettext("Save view"),
        save=lambda data: services.create_view(
            owner=user, now=timezone.now(), list_name=name, **_values(address, user, name, data)
        ),
        done=lambda view: gettext("View %(name)s saved.") % {"name": view},
        next=lambda view: view_address(address.path, view),
        initial={"next": address.full},
        back=address.full,
        crumbs=[(gettext("List"), address.full), (gettext("Save view"), "")],
        one_column=True,
    )


@form_view(Role.VIEWER)
def view_edit(request: HttpRequest, pk: UUID) -> FormPage:
    assert isinstance(request.user, User)
    user, address = request.user, ListAddress(request)
    view = get_object_or_404(views_changeable_by(user), pk=pk)
    return FormPage(
        title=gettext("Update view %(name)s") % {"name": view},
        text=gettext("The view gets the current filters, order, page size, columns and density of the list."),
        form=ViewForm,
        submit=gettext("Update view"),
        save=lambda data: services.update_view(
            view=view, by=user, now=timezone.now(), **_values(address, user, view.list_name, data)
        ),
        done=lambda view: gettext("View %(name)s updated.") % {"name": view},
        next=lambda view: view_address(address.path, view),
        initial={"next": address.full, "name": view.name, "shared": view.shared},
        back=address.full,
        crumbs=[(gettext("List"), address.full), (gettext("Update view"), "")],
        one_column=True,
    )


@form_view(Role.VIEWER)
def view_delete(request: HttpRequest, pk: UUID) -> FormPage:
    assert isinstance(request.user, User)
    user, address = request.user, ListAddress(request)
    view = get_object_or_404(views_changeable_by(user), pk=pk)
    effect = gettext("Everyone who uses it loses it.") if view.shared else gettext("Only you use it.")
    return FormPage(
        title=gettext("Delete view %(name)s?") % {"name": view},
        text=effect,
        form=DeleteViewForm,
        submit=gettext("Delete view"),
        danger=True,
        save=lambda _data: services.delete_view(view=view, by=user, now=timezone.now()),
        done=gettext("View %(name)s deleted.") % {"name": view},
        next=f"{address.path}?view=",
        initial={"next": address.full},
        back=address.full,
        crumbs=[(gettext("List"), address.full), (gettext("Delete view"), "")],
    )


@require_POST
@role_required(Role.VIEWER)
def view_default(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Open the list with this view from now on, or no longer."""
    assert isinstance(request.user, User)
    view: SavedView = get_object_or_404(views_for(request.user), pk=pk)
    is_default = bool(request.POST.get("is_default"))
    services.set_default_view(user=request.user, view=view, is_default=is_default)
    text = gettext("The list no longer opens with a view.")
    if is_default:
        text = gettext("The list now opens with the view %(name)s.") % {"name": view}
    return redirect_with_message(request, FormResult(text, ListAddress(request).full))
