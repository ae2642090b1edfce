"""Cursor pagination, shared with the pages."""

from __future__ import annotations

import re
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param
from rest_framework.views import APIView

from lcm.domain.errors import InvalidInput
from lcm.web.pagination import RowPage, page_of

DEFAULT_SIZE = 50
MAX_SIZE = 500


class KeysetPagination(BasePagination):
    """`?cursor=…&page_size=…&sort=…`; the response has `next`, `previous` and `results`."""

    page: RowPage[Any]

    def paginate_queryset(  # type: ignore[override]
        self, queryset: QuerySet[Any], request: Request, view: APIView | None = None
    ) -> list[Any]:
        self.address = request.build_absolute_uri()
        default, names = _sorts(view)
        sort = request.query_params.get("sort") or default
        if sort.removeprefix("-") not in names:
            raise InvalidInput({"sort": _("Sort by one of %(names)s.") % {"names": ", ".join(names)}})
        self.page = page_of(
            queryset, sort=sort, size=_size(request), cursor=request.query_params.get("cursor", "")
        )
        return self.page.rows

    def get_paginated_response(self, data: object) -> Response:
        return Response(
            {"next": self._link(self.page.next), "previous": self._link(self.page.previous), "results": data}
        )

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"type": "string", "nullable": True, "format": "uri"}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {"next": link, "previous": link, "results": schema},
        }

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        default, names = _sorts(view)
        return [
            _parameter("cursor", {"type": "string"}, "Start of the page, from `next` or `previous`."),
            _parameter("page_size", {"type": "integer", "minimum": 1, "maximum": MAX_SIZE}, "Rows per page."),
            _parameter(
                "sort",
                {"type": "string", "enum": [*names, *(f"-{name}" for name in names)]},
                f"`{default}` by default; a leading `-` reverses the order.",
            ),
        ]

    def _link(self, cursor: str | None) -> str | None:
        if cursor is None:
            return None
        return replace_query_param(remove_query_param(self.address, "cursor"), "cursor", cursor)


class SinglePage(KeysetPagination):
    """The list format for a short list that is not stored: every row is on one page."""

    def paginate_queryset(self, queryset: Any, request: Request, view: APIView | None = None) -> list[Any]:
        self.page = RowPage(list(queryset), first=1, next=None, previous=None)
        return self.page.rows

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        return []


def _sorts(view: APIView | None) -> tuple[str, list[str]]:
    """Return the default order of a list, and the names it can be sorted by."""
    sorts: tuple[str, ...] = getattr(view, "sorts", ("-created_at",))
    return sorts[0], [sort.removeprefix("-") for sort in sorts]


def _size(request: Request) -> int:
    text = request.query_params.get("page_size") or str(DEFAULT_SIZE)
    if not re.fullmatch("[0-9]{1,3}", text) or not 1 <= int(text) <= MAX_SIZE:
        raise InvalidInput({"page_size": _("Must be between 1 and %(max)s.") % {"max": MAX_SIZE}})
    return int(text)


def _parameter(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": description}
