"""Serializers of saved views."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.http import QueryDict
from django.utils.translation import gettext as _
from rest_framework import serializers

from lcm.models import Density, SavedView
from lcm.models.list_views import MAX_COLUMNS, MAX_KEY, MAX_QUERY
from lcm.web.list_layout import saved_query


class SavedViewSerializer(serializers.ModelSerializer[SavedView]):
    owner_name = serializers.CharField(source="owner.username", read_only=True)
    is_default = serializers.SerializerMethodField(help_text="The list opens with it for the caller.")

    class Meta:
        model = SavedView
        fields = [
            "id", "list_name", "name", "owner", "owner_name", "shared", "query", "columns", "density",
            "is_default", "created_at", "updated_at",
        ]  # fmt: skip

    def get_is_default(self, view: SavedView) -> bool:
        settings = self.context["request"].user.list_settings.get(view.list_name, {})
        return bool(settings.get("default_view") == str(view.pk))


class ViewChangeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=60)
    shared = serializers.BooleanField(
        required=False, help_text="Everyone can use the view; its owner and Admins can change it."
    )
    query = serializers.CharField(
        max_length=MAX_QUERY,
        allow_blank=True,
        required=False,
        help_text="Filters, order and page size, as in the address: `status=RUNNING&sort=ends_at`.",
    )
    columns = serializers.ListField(
        child=serializers.CharField(max_length=MAX_KEY),
        max_length=MAX_COLUMNS,
        required=False,
        help_text="Keys of columns, as in the parameter `columns` of the page; empty: the default columns.",
    )
    density = serializers.ChoiceField(choices=Density.choices, required=False)

    def validate_query(self, value: str) -> str:
        try:
            query = saved_query(QueryDict(value))
        except SuspiciousOperation as error:
            raise serializers.ValidationError(_("This query has too many fields.")) from error
        if len(query) > MAX_QUERY:
            raise serializers.ValidationError(_("This query is too long."))
        return query


class NewViewSerializer(ViewChangeSerializer):
    list_name = serializers.RegexField(
        "^[a-z][a-z-]*$", max_length=50, help_text="The list, as in the names of its exports: `sessions`."
    )


class DefaultViewSerializer(serializers.Serializer[Any]):
    is_default = serializers.BooleanField(default=True)
