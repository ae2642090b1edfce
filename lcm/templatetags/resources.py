"""Template tags for amounts of resources."""

from __future__ import annotations

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from lcm.web.resources import LISTED, REQUIRED, ShownAmount, shown_amounts

register = template.Library()
KINDS = {"listed": LISTED, "required": REQUIRED}


@register.simple_tag
def amount_heads(kind: str = "listed") -> SafeString:
    """Render the header cells of the resources."""
    labels = ((each.label,) for each in (ShownAmount(resource, None) for resource in KINDS[kind]))
    return format_html_join("", '<th scope="col" class="num">{}</th>', labels)


@register.simple_tag
def amount_cells(row: object, kind: str = "listed", none: str = "") -> SafeString:
    """Render the cells of the resources; `none` is shown instead of 0."""
    return format_html_join(
        "",
        '<td class="num" data-label="{}">{}</td>',
        ((each.label, _cell(each, none)) for each in shown_amounts(row, KINDS[kind])),
    )


def _cell(shown: ShownAmount, none: str) -> SafeString:
    if none and not shown.value:
        return format_html('<span class="muted">{}</span>', none)
    return format_html('{} <span class="sub">{}</span>', shown.number, shown.unit)


@register.filter
def amounts_text(row: object) -> str:
    """Render amounts in a sentence: `16 cores, 64 GB memory, 500 GB storage`."""
    return ", ".join(each.named_text for each in shown_amounts(row))


@register.filter
def units_text(row: object) -> str:
    """Render amounts with their units only: `16 cores, 64 GB, 500 GB`."""
    return ", ".join(each.text for each in shown_amounts(row))
