"""Helpers that use the admin like a browser."""

from __future__ import annotations

from typing import Any

from django.db.models import Model
from django.test import Client
from django.urls import reverse

from lcm.models import ChangeLog


def list_url(model: type[Model] | Model) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def add_url(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_add")


def change_url(obj: Model) -> str:
    return reverse(f"admin:{obj._meta.app_label}_{obj._meta.model_name}_change", args=[obj.pk])


def delete_url(obj: Model) -> str:
    return reverse(f"admin:{obj._meta.app_label}_{obj._meta.model_name}_delete", args=[obj.pk])


def act(client: Client, action: str, *objs: Model, **values: Any) -> Any:
    """Run an action on some objects of a list."""
    chosen = {"action": action, "_selected_action": [str(obj.pk) for obj in objs]}
    first = {"index": 0} if not values else {}
    return client.post(list_url(objs[0]), {**chosen, **first, **values}, follow=True)


def edit(client: Client, obj: Model, **values: Any) -> Any:
    """Open an object's form, change some values, enter a reason and save."""
    sent = {**form_values(client.get(change_url(obj))), "reason": "corrected", **values}
    return client.post(change_url(obj), sent)


def delete(client: Client, obj: Model, reason: str = "not needed") -> Any:
    """Open the confirmation page, enter a reason and confirm."""
    return client.post(delete_url(obj), {"post": "yes", "reason": reason})


def form_values(page: Any) -> dict[str, Any]:
    """Return the values that a browser would submit for an unchanged form."""
    forms = [page.context["adminform"].form]
    for formset in page.context["inline_admin_formsets"]:
        forms += [formset.formset.management_form]
    return {name: value for form in forms for name, value in submitted_values(form)}


def submitted_values(form: Any) -> list[tuple[str, Any]]:
    sent: list[tuple[str, Any]] = []
    for field in form:
        value = field.value()
        if hasattr(field.field.widget, "decompress") and value is not None:
            parts = field.field.widget.decompress(value)
            sent += [(f"{field.html_name}_{index}", str(part)) for index, part in enumerate(parts)]
        elif isinstance(value, list):
            sent.append((field.html_name, [str(getattr(each, "pk", each)) for each in value]))
        elif value is not None and value is not False:
            sent.append((field.html_name, str(value)))
    return sent


def messages_of(page: Any) -> list[str]:
    return [str(message) for message in page.context["messages"]]


def log_of(obj: Model) -> list[ChangeLog]:
    return list(ChangeLog.objects.filter(object_id=str(obj.pk)).order_by("id"))
