"""Explanations of LCM's own terms, shown as tooltips; docs/concepts.md has the full glossary."""

from __future__ import annotations

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

TERMS = {
    "epoch": _("One version of the topology of a definition. Observations of older epochs do not count."),
    "lease": _("A session's hold on a slot. A slot has a limited number of leases."),
    "pool": _("A type of worker with its runtime, its size and its number of slots."),
    "slot": _("A place for one worker in a pool."),
    "tick": _("One scheduling pass over a pool: it places sessions, launches slots and drains idle slots."),
}


def term(name: str, label: str) -> SafeString:
    """Render a label with the explanation of a term on hover."""
    return format_html('<span class="term" title="{}">{}</span>', TERMS[name], label)
