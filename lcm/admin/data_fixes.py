"""Base classes of model admins: a reason for every edit and deletion, recorded in the change log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.admin.actions import delete_selected
from django.contrib.admin.options import ShowFacets
from django.contrib.admin.utils import flatten_fieldsets
from django.core.paginator import Paginator
from django.db import models, transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.http import urlencode

from lcm.admin.access import AdminOnlyMixin
from lcm.admin.deletion import protecting_objects, with_dependents
from lcm.domain.actors import Actor
from lcm.models import User
from lcm.services.changelog import build_entry, differences, log_change, log_changes, loggable_fields
from lcm.web.forms import JsonField
from lcm.web.pagination import capped_count

if TYPE_CHECKING:
    AnyPaginator = Paginator[Any]
    AnyModelAdmin = admin.ModelAdmin[Any]
    AnyTabularInline = admin.TabularInline[Any, Any]
else:
    AnyPaginator = Paginator
    AnyModelAdmin = admin.ModelAdmin
    AnyTabularInline = admin.TabularInline


class AdminReasonForm(forms.Form):
    required_css_class = "required"
    reason = forms.CharField(
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 60}),
        help_text="Recorded in the change log under your name.",
    )


class CappedPaginator(AnyPaginator):
    """Counts up to a cap; objects beyond it are found by searching."""

    @cached_property
    def count(self) -> int:
        found, _ = capped_count(self.object_list)  # type: ignore[arg-type]
        return found


class DataFixAdmin(AdminOnlyMixin, AnyModelAdmin):
    """Requires a reason for edits and deletions; saves edited columns only, so concurrent changes persist."""

    list_per_page = 50
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    paginator = CappedPaginator
    delete_confirmation_template = "admin/lcm/delete_confirmation.html"
    delete_selected_confirmation_template = "admin/lcm/delete_selected_confirmation.html"
    formfield_overrides = {models.JSONField: {"form_class": JsonField}}
    # A sentence above the list and the form, with a link to the matching LCM page.
    note = ""
    note_page = ""

    def get_form(self, request: HttpRequest, obj: object = None, change: bool = False, **kwargs: Any) -> Any:
        """Add the reason, which is not a model field, to the form."""
        names = kwargs.get("fields", ())
        if names is None or not self._edits(request, obj):
            return super().get_form(request, obj, change=change, **kwargs)
        names = names or flatten_fieldsets(self.get_fieldsets(request, obj))
        kwargs["fields"] = [name for name in names if name != "reason"]
        form = super().get_form(request, obj, change=change, **kwargs)
        return type(form.__name__, (form, AdminReasonForm), {})

    def get_fieldsets(self, request: HttpRequest, obj: object = None) -> Any:
        own = super().get_fieldsets(request, obj)
        return [*own, ("Reason", {"fields": ("reason",)})] if self._edits(request, obj) else own

    def _edits(self, request: HttpRequest, obj: object) -> bool:
        return obj is not None and self.has_change_permission(request, obj)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """Show the object's entries of the change log."""
        query = urlencode({"object_id": object_id})
        return redirect(f"{reverse('admin:lcm_changelog_changelist')}?{query}")

    def save_model(self, request: HttpRequest, obj: models.Model, form: Any, change: bool) -> None:
        if not change:
            obj.save(force_insert=True)
            return
        form.before = loggable_values(_stored(obj))
        obj.save(update_fields=_edited_columns(obj, form.changed_data))

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        if change:
            _log_edit(request, form.instance, form.before)
        else:
            _log_addition(request, form.instance)

    # The change log, which has more detail, replaces Django's admin log.
    def log_addition(self, request: HttpRequest, obj: models.Model, message: object) -> Any:
        return None

    def log_change(self, request: HttpRequest, obj: models.Model, message: object) -> Any:
        return None

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        log_changes(
            build_entry(
                row,
                actor=actor_of(request),
                event="admin.deleted",
                message=f"{_title(row)} deleted as a data fix",
                reason=_reason(request),
                before=loggable_values(row),
            )
            for obj in queryset
            for row in with_dependents(obj)
        )

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """List a few of the objects that prevent the deletion, and their number."""
        protected = [text for obj in objs for text in self.protecting_objects(obj)]
        return ([], {}, set(), protected) if protected else super().get_deleted_objects(objs, request)

    def protecting_objects(self, obj: Any) -> list[str]:
        return protecting_objects(obj)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        form = confirmed_reason(request, is_confirmed=request.method == "POST")
        return super().delete_view(request, object_id, {"reason_form": form, **(extra_context or {})})


class ReadOnlyAdmin(DataFixAdmin):
    """Admin of records that are written once or only by services."""

    may_add = may_change = may_delete = False


class ReadOnlyInline(AdminOnlyMixin, AnyTabularInline):
    may_add = may_change = may_delete = False
    extra = 0
    show_change_link = True


@admin.action(description="Delete selected %(verbose_name_plural)s…", permissions=["delete"])
def delete_selected_objects(
    modeladmin: AnyModelAdmin, request: HttpRequest, queryset: models.QuerySet[Any]
) -> TemplateResponse | None:
    """Delete the selected objects as Django does, after a reason is given."""
    form = confirmed_reason(request, is_confirmed="post" in request.POST)
    with transaction.atomic():
        page = delete_selected(modeladmin, request, queryset)
    if page is not None:
        page.context_data = {**(page.context_data or {}), "reason_form": form}
    return page


def confirmed_reason(request: HttpRequest, *, is_confirmed: bool) -> AdminReasonForm:
    """Return the reason of a confirmed deletion; without one, show the confirmation page again."""
    form = AdminReasonForm(request.POST if is_confirmed else None)
    if is_confirmed and not form.is_valid():
        request.POST = QueryDict()
    return form


def actor_of(request: HttpRequest) -> Actor:
    assert isinstance(request.user, User)
    return Actor.person(request.user)


def loggable_values(obj: models.Model) -> dict[str, Any]:
    """Return an object's field values for the change log; many-to-many values by name."""
    many = {
        field.name: sorted(str(each) for each in getattr(obj, field.name).all())
        for field in obj._meta.many_to_many
        if _is_plain(field)
    }
    return loggable_fields(obj) | many


def log_password_change(request: HttpRequest, user: Any) -> None:
    log_change(
        user, actor=actor_of(request), event="person.password_changed", message=f"password of {user} changed"
    )


def _stored(obj: models.Model) -> models.Model:
    return type(obj)._base_manager.get(pk=obj.pk)


def _is_plain(field: models.ManyToManyField[Any, Any]) -> bool:
    """Return whether a many-to-many table has no model, and so no admin or log, of its own."""
    through = field.remote_field.through
    return through is not None and bool(through._meta.auto_created)


def _edited_columns(obj: models.Model, names: list[str]) -> list[str]:
    edited = [field.name for field in obj._meta.concrete_fields if field.name in names]
    touched = [field.name for field in obj._meta.concrete_fields if getattr(field, "auto_now", False)]
    return [*edited, *touched] if edited else []


def _log_addition(request: HttpRequest, obj: models.Model) -> None:
    message = f"{_title(obj)} added as a data fix"
    log_change(
        obj, actor=actor_of(request), event="admin.added", message=message, reason=_reason(request),
        after=loggable_values(_stored(obj)),
    )  # fmt: skip


def _log_edit(request: HttpRequest, obj: models.Model, before: dict[str, Any]) -> None:
    old, new = differences(before, loggable_values(_stored(obj)))
    if not new:
        return
    fields = ", ".join(name.replace("_", " ") for name in new)
    message = f"{_title(obj)} edited as a data fix: {fields}"
    log_change(
        obj, actor=actor_of(request), event="admin.edited", message=message, reason=_reason(request),
        before=old, after=new,
    )  # fmt: skip


def _reason(request: HttpRequest) -> str:
    return request.POST.get("reason", "").strip()


def _title(obj: models.Model) -> str:
    kind, name = str(obj._meta.verbose_name), str(obj)
    return name if name.startswith(kind) else f"{kind} {name}"
