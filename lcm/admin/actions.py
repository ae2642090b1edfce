"""Admin actions that call a service for each selected object, after a page that requires a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin import helpers
from django.contrib.admin.actions import delete_selected
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.translation import ngettext_lazy

from lcm.admin.base import AnyModelAdmin, AuditedModelAdmin
from lcm.admin.reason_form import confirmed_reason
from lcm.domain.errors import LcmError
from lcm.web.wording import Plural

AT_ONCE = 1_000
REFUSALS_SHOWN = 20
MORE_REJECTED = Plural(ngettext_lazy("%(count)s more was rejected.", "%(count)s more were rejected."))


@admin.action(description="Delete selected %(verbose_name_plural)s …", permissions=["delete"])
def delete_selected_objects(
    modeladmin: AnyModelAdmin, request: HttpRequest, queryset: QuerySet[Any]
) -> TemplateResponse | None:
    """Delete the selected objects as Django does, after a reason is given."""
    form = confirmed_reason(request, said_yes="post" in request.POST)
    page = delete_selected(modeladmin, request, queryset)
    if page is not None:
        page.context_data = {**(page.context_data or {}), "reason_form": form}
    return page


def confirm_with_form(
    modeladmin: AuditedModelAdmin,
    request: HttpRequest,
    queryset: QuerySet[Any],
    *,
    form_class: Callable[..., forms.Form],
    title: str,
    submit: str,
    save: Callable[[Any, dict[str, Any]], object],
    done: Plural,
) -> TemplateResponse | None:
    """Show a form before the action; once it is valid, call `save` with each object and the cleaned data."""
    if too_many(modeladmin, request, queryset):
        return None
    form = form_class(request.POST if "apply" in request.POST else None)
    if form.is_valid():
        values = form.cleaned_data
        apply_to_each(modeladmin, request, queryset, save=lambda obj: save(obj, values), done=done)
        return None
    context = {
        **modeladmin.admin_site.each_context(request),
        "title": title,
        "submit": submit,
        "form": form,
        "chosen": queryset,
        "opts": modeladmin.opts,
        "media": modeladmin.media,
        "action": request.POST.getlist("action")[_form_used(request)],
        "action_checkbox_name": helpers.ACTION_CHECKBOX_NAME,
    }
    return TemplateResponse(request, "admin/lcm/action.html", context)


def apply_to_each(
    modeladmin: AuditedModelAdmin,
    request: HttpRequest,
    queryset: QuerySet[Any],
    *,
    save: Callable[[Any], object],
    done: Plural,
) -> None:
    """Call a service with each object; show its error for each rejected object and continue with the rest."""
    if too_many(modeladmin, request, queryset):
        return
    count, refusals = 0, []
    for obj in list(queryset):
        try:
            save(obj)
            count += 1
        except LcmError as error:
            refusals.append(error.message)
    if count:
        modeladmin.message_user(request, done.text(count), messages.SUCCESS)
    for text in refusals[:REFUSALS_SHOWN]:
        modeladmin.message_user(request, text, messages.ERROR)
    if len(refusals) > REFUSALS_SHOWN:
        more = MORE_REJECTED.text(len(refusals) - REFUSALS_SHOWN)
        modeladmin.message_user(request, more, messages.ERROR)


def too_many(modeladmin: AuditedModelAdmin, request: HttpRequest, queryset: QuerySet[Any]) -> bool:
    if not queryset.order_by()[AT_ONCE : AT_ONCE + 1].exists():
        return False
    text = f"Select at most {AT_ONCE:,} objects at a time. Nothing was changed."
    modeladmin.message_user(request, text, messages.ERROR)
    return True


def _form_used(request: HttpRequest) -> int:
    """Return which action form was submitted, the one above (0) or below (1) the list."""
    index = request.POST.get("index", "0")
    return int(index) if index.isdigit() and int(index) < len(request.POST.getlist("action")) else 0
