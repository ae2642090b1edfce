"""API filter backend that uses the FilterSets of the pages."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django_filters.rest_framework import DjangoFilterBackend

from lcm.domain.errors import InvalidInput
from lcm.web.added_filters import with_added_filters


class SharedFilterBackend(DjangoFilterBackend):
    """Filters a list; an unknown or invalid filter is an error instead of being ignored."""

    paging = frozenset({"cursor", "page_size", "sort", "format"})
    of_deletions = frozenset({"reason"})

    def get_filterset_class(self, view: object, queryset: object = None) -> Any:
        filterset = super().get_filterset_class(view, queryset)
        return filterset and with_added_filters(filterset)

    def get_filterset_kwargs(self, request: object, queryset: object, view: object) -> Any:
        """Return the arguments without empty values, which set no filter."""
        kwargs = super().get_filterset_kwargs(request, queryset, view)
        data = kwargs["data"].copy()
        for name, values in kwargs["data"].lists():
            data.setlist(name, [value for value in values if value != ""])
        return {**kwargs, "data": data}

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
