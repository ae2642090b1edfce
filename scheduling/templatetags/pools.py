"""Template filters for the display names of runtimes and systems."""

from __future__ import annotations

from django import template

from scheduling.pages.supply import display_name

register = template.Library()
register.filter(display_name)
