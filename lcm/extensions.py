"""Entries that each app adds to shared pages, API fields, services and metrics.

An app declares one `Extension` and names it in its AppConfig: `extension = "scheduling.extension.EXTENSION"`.
`Extension.installed()` returns the extensions of all installed apps as one value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from datetime import datetime
    from decimal import Decimal

    from django.utils.safestring import SafeString
    from prometheus_client.core import Metric

    from lcm.events.catalog import EventType
    from lcm.events.effects import (
        DefinitionEffect,
        HeartbeatEffect,
        SessionEffect,
        StopEffect,
        TransitionEffect,
    )
    from lcm.models import LabletDefinition, LabletSession
    from lcm.periodic import PeriodicTaskSpec
    from lcm.selectors.controller_sessions import Spread
    from lcm.services.jobs import StepFunction
    from lcm.web.added_filters import AddedFilter
    from lcm.web.attention import AttentionReader
    from lcm.web.bulk_actions import BulkOperation
    from lcm.web.first_steps import FirstStep
    from lcm.web.list_page import ListAddition
    from lcm.web.navigation import NavEntry
    from lcm.web.object_links import ObjectKind
    from lcm.web.overview import LazyPanel, OverviewPanel
    from lcm.web.panels import Panel
    from lcm.web.search import Finder
    from lcm.web.session_location import SessionLocation


@dataclass(frozen=True, kw_only=True)
class Extension:
    """The entries of one app, in the order of INSTALLED_APPS and then in the order listed here."""

    # Pages
    navigation: Sequence[NavEntry] = ()
    # Further URL prefixes on which the entry with this key is current.
    navigation_prefixes: Mapping[str, str] = field(default_factory=dict)
    panels: Sequence[Panel] = ()
    overview: Sequence[OverviewPanel | LazyPanel] = ()
    # The checklist of an empty installation.
    first_steps: Sequence[FirstStep] = ()
    attention: Sequence[AttentionReader] = ()
    finders: Sequence[Finder] = ()
    lists: Sequence[ListAddition] = ()
    filters: Sequence[AddedFilter] = ()
    bulk_actions: Sequence[BulkOperation] = ()
    # Kinds of objects in the change log, by model name.
    objects: Mapping[str, ObjectKind] = field(default_factory=dict)
    # Names that match typed text, by kind of input.
    suggestions: Mapping[str, Callable[[str], list[str]]] = field(default_factory=dict)
    # Pools that the token of a controller can be limited to.
    token_pools: Sequence[Callable[[], Sequence[str]]] = ()
    # The expected result of a request, shown in its form; the session is not saved.
    request_previews: Sequence[Callable[[LabletSession, datetime], SafeString]] = ()
    # Warnings about new requirements of a definition.
    requirement_warnings: Sequence[Callable[[LabletDefinition, Mapping[str, Decimal]], str]] = ()
    session_location: Sequence[Callable[[LabletSession], SessionLocation | None]] = ()

    # The page that follows the revert of a definition; an empty URL for none.
    after_revert: Sequence[Callable[[LabletDefinition], str]] = ()

    # Types of the event catalogue.
    events: Sequence[EventType] = ()

    # API
    # Fields of one session, and fields of the sessions that controllers receive.
    session_details: Sequence[Callable[[LabletSession], dict[str, Any]]] = ()
    controller_fields: Mapping[str, Callable[[Sequence[UUID]], Mapping[UUID, Any]]] = field(
        default_factory=dict
    )
    # Open requests on running sessions, by name: session id to time of the request.
    open_requests: Mapping[str, Callable[[Sequence[UUID]], Mapping[UUID, datetime]]] = field(
        default_factory=dict
    )
    # Nodes by slot, for sessions that may span several slots.
    nodes_by_slot: Sequence[Callable[[Sequence[UUID]], Mapping[UUID, Spread]]] = ()
    # Sessions that are only on this slot; then the given sessions that are or were on this slot.
    sessions_on_slot: Sequence[Callable[[UUID], Collection[UUID]]] = ()
    sessions_ever_on_slot: Sequence[Callable[[UUID, Sequence[UUID]], Collection[UUID]]] = ()

    # Effects of a change in other apps; they run in its transaction.
    session_created: Sequence[SessionEffect] = ()
    session_priority_changed: Sequence[SessionEffect] = ()
    sessions_moved: Sequence[TransitionEffect] = ()
    definition_created: Sequence[DefinitionEffect] = ()
    definition_revised: Sequence[DefinitionEffect] = ()
    process_heartbeat: Sequence[HeartbeatEffect] = ()
    process_stopped: Sequence[StopEffect] = ()

    # Background work
    jobs: Mapping[str, StepFunction] = field(default_factory=dict)
    periodic: Sequence[Callable[[], Iterable[PeriodicTaskSpec]]] = ()
    # Functions that read metrics from the database at each scrape.
    metrics: Sequence[Callable[[], Iterable[Metric]]] = ()

    @classmethod
    def installed(cls) -> Self:
        """Return the entries of all installed apps."""
        kind: Any = cls
        found: Self = _installed(kind)
        return found


def declared() -> list[Extension]:
    """Return the extension of each installed app that declares one."""
    paths = [getattr(config, "extension", "") for config in apps.get_app_configs()]
    return [import_string(path) for path in paths if path]


@cache
def _installed(kind: type[Extension]) -> Any:
    found = [kind(), *(each for each in declared() if isinstance(each, kind))]
    return kind(**{each.name: _joined([getattr(one, each.name) for one in found]) for each in fields(kind)})


def _joined(values: list[Any]) -> Any:
    if not any(isinstance(each, Mapping) for each in values):
        return tuple(chain.from_iterable(values))
    keys = list(chain.from_iterable(values))
    if len(set(keys)) < len(keys):
        raise ImproperlyConfigured(f"Two apps declare the same key: {', '.join(sorted(keys))}.")
    return {key: value for each in values for key, value in each.items()}
