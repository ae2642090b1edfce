"""Cells of lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django import template
from django.template import Context
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from lcm.templatetags.lcm import ago
from lcm.web.list_columns import NONE, Column
from lcm.web.wording import amount_text

register = template.Library()


@register.simple_tag(takes_context=True)
def cells(context: Context, columns: Sequence[Column], row: object, template_name: str = "") -> SafeString:
    """Render the table cells of a row; the template has the partials that columns name as their cells."""
    cache = context.render_context
    key = f"cells-{id(columns)}"
    if key not in cache:
        has_title = any("card-" in column.css for column in columns)
        cache[key] = [
            _PreparedColumn.of(column, context, template_name, is_title=not (number or has_title))
            for number, column in enumerate(columns)
        ]
    with context.push(row=row):
        return mark_safe("".join(column.render(context, row) for column in cache[key]))  # noqa: S308


@dataclass(frozen=True)
class _PreparedColumn:
    """A column with what all its cells share."""

    column: Column
    start: str
    # The cell of a row without a value; empty if the template of the cell shows it.
    empty_cell: str
    template: Any

    @classmethod
    def of(cls, column: Column, context: Context, cells: str, *, is_title: bool) -> _PreparedColumn:
        css = ["num"] if column.numeric else []
        css += [column.css] if column.css else []
        css += ["card-title"] if is_title else []
        css += [f"phone-{column.phone}"] if column.phone else []
        label = "" if is_title or "card-" in column.css else column.card_label or column.label
        muted = format_html('<span class="muted">{}</span></td>', column.empty) if column.empty else ""
        none = ["is-none"] if column.empty is NONE else []
        assert context.template is not None
        name = column.cell if "#" in column.cell or not cells else f"{cells}#{column.cell}"
        shown = context.template.engine.get_template(name) if column.cell else None
        return cls(column, _start(css, label), muted and f"{_start([*css, *none], label)}{muted}", shown)

    def render(self, context: Context, row: object) -> str:
        value = self.column.value(row)
        if self.empty_cell and (value is None or (not value and isinstance(value, str | dict | list))):
            return self.empty_cell
        return f"{self.start}{self._content(context, value)}</td>"

    def _content(self, context: Context, value: Any) -> str:
        if self.template is not None:
            with context.push(value=value):
                return str(self.template.render(context))
        if unit := self.column.unit:
            text = unit(value) if callable(unit) else unit
            return format_html('{} <span class="sub">{}</span>', amount_text(Decimal(str(value))), text)
        if isinstance(value, datetime):
            return ago(value)
        return conditional_escape(value) if value else format_html('<span class="muted">{}</span>', value)


def _start(css: Sequence[str], label: object) -> str:
    classes = format_html(' class="{}"', " ".join(css)) if css else ""
    named = format_html(' data-label="{}"', label) if label else ""
    return f"<td{classes}{named}>"
