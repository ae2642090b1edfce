"""API filter backend that uses the FilterSets of the pages."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django_filters.rest_framework import DjangoFilterBackend

from lcm.domain.errors import InvalidInput


class SharedFilterBackend(DjangoFilterBackend):  # type: ignore[misc]
    """Filters a list; an unknown or invalid filter is an error instead of being ignored."""

    paging = frozenset({"cursor", "page_size", "sort", "format"})
    of_deletions = frozenset({"reason"})

    def filter_queryset(self, request: Any, queryset: Any, view: Any) -> Any:
        filterset = self.get_filterset(request, queryset, view)
        if filterset is None:
            return queryset
        others = self.of_deletions if request.method == "DELETE" else self.paging
        unknown = set(request.query_params) - set(filterset.filters) - others
        if unknown:
            raise InvalidInput(dict.fromkeys(sorted(unknown), _("Unknown filter.")))
        if not filterset.is_valid():
            raise InvalidInput({name: [str(e) for e in errors] for name, errors in filterset.errors.items()})
        return filterset.qs
