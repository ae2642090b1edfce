"""Runtimes and systems of pools as people write them."""

from __future__ import annotations

from django import template

from scheduling.pages.supply import display_name

register = template.Library()
register.filter(display_name)
