"""Pages of long lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.paginator import Paginator
from django.utils.functional import cached_property

from lcm.web.paging import capped_count

if TYPE_CHECKING:
    AnyPaginator = Paginator[Any]
else:
    AnyPaginator = Paginator


class CappedPaginator(AnyPaginator):
    """Counts no further than a person would turn pages; what lies beyond is found by searching."""

    @cached_property
    def count(self) -> int:
        found, _ = capped_count(self.object_list)  # type: ignore[arg-type]
        return found
