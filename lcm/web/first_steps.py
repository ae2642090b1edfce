"""The checklist that leads from an empty installation to the first session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings

from lcm.extensions import Extension
from lcm.models import LabletSession

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True)
class FirstStep:
    """A step: whether it is done, its form, and its page in the documentation."""

    order: int
    title: StrOrPromise
    text: StrOrPromise
    is_done: Callable[[], bool]
    url: Callable[[], str]
    help_page: str


@dataclass(frozen=True)
class ShownStep:
    step: FirstStep
    is_done: bool
    is_next: bool


def first_steps() -> list[ShownStep]:
    """Return the steps until the first session is requested; the demo has none."""
    if settings.DEMO or LabletSession.objects.exists():
        return []
    steps = sorted(Extension.installed().first_steps, key=lambda step: step.order)
    shown: list[ShownStep] = []
    for step in steps:
        is_done = step.is_done()
        is_next = not is_done and all(each.is_done for each in shown)
        shown.append(ShownStep(step, is_done, is_next))
    return shown
