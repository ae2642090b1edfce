"""Template tags and filters for statuses, times, amounts and form fields."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

from django import forms, template
from django.utils import timezone
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext, pgettext
from django.utils.translation import gettext_lazy as _
from heroicons.templatetags.heroicons import heroicon_outline

from lcm.cml.topology.requirements import MB_PER_GB
from lcm.domain.lifecycle import SessionStatus
from lcm.domain.roles import role_of
from lcm.selectors.inbox import is_watching
from lcm.web.help import help_url
from lcm.web.object_links import object_name
from lcm.web.panels import panels_of
from lcm.web.terms import term
from lcm.web.wording import (
    age_text,
    ago_text,
    amount_text,
    clock_digits,
    clock_text,
    count_text,
    duration_text,
    plural_number,
)
from lcm.web.zones import with_zone

register = template.Library()
register.simple_tag(help_url)

# First words of change messages that get a capital; any other first word may be a name.
CAPITALIZED_WORDS = {
    "another", "cordon", "definition", "delivery", "domain", "drain", "fair-share", "interruption", "job",
    "labels", "leaked", "notifications", "password", "priority", "profile", "pool", "project",
    "reservation", "role", "rule", "session", "slot", "the", "token", "view", "webhook", "weight", "weights",
}  # fmt: skip

# Label, shape and colour of each status; the shapes are in components/shapes.html.
STATUS_STYLES: dict[str, tuple[str, str]] = {
    SessionStatus.PENDING: ("clock", "idle"),
    SessionStatus.SCHEDULED: ("ring", "busy"),
    SessionStatus.INSTANTIATING: ("half", "busy"),
    SessionStatus.READY: ("dot", "ok"),
    SessionStatus.RUNNING: ("dot", "ok"),
    SessionStatus.COLLECTING: ("half", "busy"),
    SessionStatus.STOPPING: ("half", "idle"),
    SessionStatus.TERMINATED: ("sq", "idle"),
    SessionStatus.CANCELLED: ("x", "idle"),
    SessionStatus.EXPIRED: ("dash", "idle"),
    SessionStatus.FAILED: ("oct", "bad"),
    "draft": ("dash", "idle"),
    "active": ("dot", "ok"),
    "deprecated": ("sq", "idle"),
    "pending": ("clock", "idle"),
    "delivered": ("check", "ok"),
    "dropped": ("dash", "idle"),
    "failing": ("tri", "warn"),
    "disabled": ("oct", "bad"),
    "valid": ("dot", "ok"),
    "expired": ("dash", "warn"),
    "revoked": ("x", "idle"),
    "watching": ("half", "busy"),
    "verified": ("check", "ok"),
    "regressed": ("oct", "bad"),
    "superseded": ("sq", "idle"),
    "under_provisioned": ("up", "bad"),
    "over_provisioned": ("down", "warn"),
    "right_sized": ("check", "ok"),
    "not_enough_data": ("dash", "idle"),
    "acknowledged": ("check", "idle"),
    "resolved": ("sq", "idle"),
    "conflict": ("oct", "bad"),
    "changed": ("diamond", "warn"),
    "missing": ("ring", "warn"),
    "extra": ("tri", "warn"),
    "match": ("check", "ok"),
    "completed": ("check", "ok"),
    "timed_out": ("tri", "warn"),
    "ALLOCATED": ("ring", "busy"),
    # Nodes in CML.
    "BOOTED": ("dot", "ok"),
    "STARTED": ("half", "busy"),
    "QUEUED": ("clock", "busy"),
    "STOPPED": ("sq", "idle"),
    "DEFINED_ON_CORE": ("dash", "idle"),
    "DISCONNECTED": ("oct", "bad"),
    "EMPTY": ("dash", "idle"),
    "LAUNCHING": ("ring", "busy"),
    "BOOTING": ("half", "busy"),
    "BINDING": ("half", "busy"),
    "DRAINING": ("tri", "warn"),
    "TERMINATING": ("half", "idle"),
    "ERROR": ("oct", "bad"),
    "CORDONED": ("diamond", "warn"),
    "RELEASED": ("sq", "idle"),
    "open": ("ring", "busy"),
    "launched": ("check", "ok"),
    "refused": ("tri", "warn"),
    "rejected": ("oct", "bad"),
    "failed": ("oct", "bad"),
    "lost": ("tri", "warn"),
    "enabled": ("dot", "ok"),
    "off": ("sq", "idle"),
    "stopped": ("oct", "bad"),
    "backing off": ("clock", "warn"),
    "healthy": ("dot", "ok"),
    "running": ("half", "busy"),
    "late": ("clock", "warn"),
    "never ran": ("dash", "warn"),
    "serving": ("dot", "ok"),
    "standing by": ("half", "idle"),
    "silent": ("oct", "bad"),
    "unserved": ("dash", "idle"),
    "equal": ("check", "ok"),
    "different": ("tri", "bad"),
    "placed": ("check", "ok"),
    "waiting": ("clock", "idle"),
    "held": ("half", "busy"),
    "impossible": ("oct", "bad"),
    "ok": ("dot", "ok"),
    "partial": ("half", "warn"),
    "stale": ("clock", "warn"),
    "absent": ("dash", "idle"),
    "not configured": ("dash", "idle"),
    "queued": ("clock", "idle"),
    "done": ("check", "ok"),
    "success": ("check", "ok"),
    "unread": ("dot", "busy"),
    "read": ("check", "idle"),
    "info": ("dot", "busy"),
    "warning": ("tri", "warn"),
    "critical": ("oct", "bad"),
    "error": ("oct", "bad"),
}

# Words of statuses that are not choices of a model.
STATUS_WORDS = {
    "valid": _("Valid"),
    "expired": _("Expired"),
    "revoked": _("Revoked"),
    "enabled": _("Enabled"),
    "failing": _("Failing"),
    "disabled": _("Disabled"),
    "off": _("Off"),
    "unread": _("Unread"),
    "read": _("Read"),
    "stopped": _("Stopped"),
    "backing off": _("Backing off"),
    "refused": _("Refused"),
    "healthy": _("Healthy"),
    "running": _("Running"),
    "late": _("Late"),
    "never ran": _("Never ran"),
    "failed": _("Failed"),
    "serving": _("Serving"),
    "standing by": _("On standby"),
    "silent": _("Silent"),
    "unserved": _("Unserved"),
    "match": _("Match"),
    "changed": _("Changed"),
    "missing": _("Missing"),
    "extra": _("Extra"),
    "conflict": _("Conflict"),
    "info": _("Info"),
    "warning": _("Warning"),
    "critical": _("Critical"),
}


@register.simple_tag
@lru_cache(maxsize=500)
def icon(name: str, *, size: int = 16, stroke_width: float = 2) -> SafeString:
    """Return the SVG of an outlined icon, cached because heroicons copies its tree on every call."""
    return mark_safe(heroicon_outline(name, size=size, stroke_width=stroke_width))  # noqa: S308


@register.simple_tag
@lru_cache(maxsize=500)
def shape(name: str) -> SafeString:
    """Render a status shape, hidden from screen readers because the label beside it carries the meaning."""
    return format_html('<svg aria-hidden="true"><use href="#s-{}"/></svg>', name)


register.filter("object_name", object_name)
register.simple_tag(term)


@register.simple_tag
def shape_of(status: str) -> SafeString:
    return shape(STATUS_STYLES.get(status, ("dot", "idle"))[0])


@register.filter
def tone(status: str) -> str:
    return f"tone-{STATUS_STYLES.get(status, ('', 'idle'))[1]}"


@register.simple_tag
def status(value: str, word: str = "", kind: str = "status") -> SafeString:
    """Render a status for a table row (`status`) or beside a title (`badge`)."""
    text = word or STATUS_WORDS.get(value) or humanize_name(value).capitalize()
    return format_html('<span class="{} {}">{}{}</span>', kind, tone(value), shape_of(value), text)


@register.inclusion_tag("components/panels.html", takes_context=True)
def panels(context: template.Context, page: str, shown: Any) -> dict[str, Any]:
    """Render the panels of apps for the page of this object."""
    request, is_refresh = context["request"], bool(context.get("is_refresh"))
    found = [
        (panel, panel.content(request, shown, is_refresh=is_refresh))
        for panel in panels_of(page, shown, role_of(request.user))
    ]
    return {"panels": found, "pk": shown.pk}


@register.inclusion_tag("components/watch.html", takes_context=True)
def watch_button(context: template.Context, object_type: str, pk: object) -> dict[str, Any]:
    """Render the button to watch an object or to stop watching it."""
    return {
        "object_type": object_type,
        "pk": pk,
        "is_watching": is_watching(context["request"].user, object_type, pk),
        "csrf_token": context["csrf_token"],
    }


@register.filter
def ago(moment: datetime | None) -> SafeString:
    """Render a relative time such as `2 min ago`, with the exact time on hover."""
    if moment is None:
        return format_html('<span class="muted">{}</span>', gettext("never"))
    return _time(moment, ago_text(moment - timezone.now()))


@register.simple_tag
def updated(moment: datetime, *, every: int | str = "") -> SafeString:
    """Render when a live part was updated; JavaScript keeps the age current and marks stale parts.

    `every` is the polling interval in seconds, for labels outside the polled part.
    """
    local = timezone.localtime(moment)
    return format_html(
        '<span class="updated">{}<time data-updated="{}" datetime="{}" title="{}">{}</time></span>',
        shape("dot"),
        every,
        moment.isoformat(),
        f"{local:%Y-%m-%d %H:%M:%S} {local.tzname()}",
        gettext("as of %(time)s") % {"time": f"{local:%H:%M:%S}"},
    )


@register.filter
def age(moment: datetime, now: datetime) -> SafeString:
    """Render how long a state has lasted, with its start on hover."""
    local = timezone.localtime(moment)
    exact = gettext("since %(time)s") % {"time": f"{local:%Y-%m-%d %H:%M:%S} {local.tzname()}"}
    text = age_text(max(now - moment, timedelta(0)))
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact, text)


@register.filter
def clock(moment: datetime | None, to: str = "minutes") -> SafeString:
    """Render a time of day to the minute or to the `seconds`, with the date unless it is today."""
    if moment is None:
        return format_html('<span class="muted">{}</span>', gettext("not set"))
    return _time(moment, clock_text(moment, seconds=to == "seconds"))


@register.simple_tag
def timeslot(starts_at: datetime, ends_at: datetime) -> SafeString:
    """Render `08:00 to 09:00` or `02 Jan 2035 08:00 to 09:00`; a shared date or zone appears once."""
    begin, end = timezone.localtime(starts_at), timezone.localtime(ends_at)
    first = _time(starts_at, clock_digits(starts_at))
    if begin.date() == end.date():
        return format_html(
            '<span class="nowrap">{} {} {}</span>',
            first,
            pgettext("between two times", "to"),
            _time(ends_at, with_zone(f"{end:%H:%M}", end)),
        )
    return format_html(
        '<span class="nowrap">{} {}</span> <span class="nowrap">{}</span>',
        first,
        pgettext("between two times", "to"),
        clock(ends_at),
    )


def _time(moment: datetime, text: str) -> SafeString:
    local = timezone.localtime(moment)
    exact = f"{local:%Y-%m-%d %H:%M:%S} {local.tzname()}"
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact, text)


@register.filter
def moment(at: datetime) -> SafeString:
    """Render the exact time: date, seconds and time zone."""
    local = timezone.localtime(at)
    text = f"{local:%Y-%m-%d %H:%M:%S} {local.tzname()}"
    return format_html('<time datetime="{}">{}</time>', at.isoformat(), text)


@register.filter
def duration(length: timedelta | None) -> str:
    return duration_text(length) if length is not None else ""


@register.filter
def step_duration(length: timedelta | None) -> str:
    """Render the duration of a step; less than a second is shown as `under 1 s`."""
    return gettext("under 1 s") if length is not None and length < timedelta(seconds=1) else duration(length)


@register.filter
def seconds(count: int) -> str:
    """Render a duration given in seconds: `15 min`."""
    return duration_text(timedelta(seconds=count))


@register.filter
def amount(value: Decimal | float | str | None) -> str:
    """Render a number without trailing zeros; None is shown as unknown, not as zero."""
    return gettext("unknown") if value is None else amount_text(Decimal(str(value)))


@register.filter
def gigabytes(megabytes: int | str) -> str:
    """Convert megabytes to gigabytes, the unit that pages use."""
    return amount_text(Decimal(megabytes) / MB_PER_GB)


@register.filter
def humanize_name(name: str) -> str:
    """Render an identifier as words."""
    return str(name).replace("_", " ").replace(".", " ")


@register.filter
def sentence_case(text: str) -> str:
    """Capitalise the text unless it begins with a name: `Pool created`, but `cml-eu-01 drains`."""
    first = text.partition(" ")[0].rstrip(",:;")
    return text[:1].upper() + text[1:] if first in CAPITALIZED_WORDS else text


@register.filter
def lead(text: str) -> SafeString:
    """Render `**…**` as strong and escape the rest."""
    parts = re.split(r"\*\*(.+?)\*\*", text)
    shown = [
        format_html("<strong>{}</strong>", part) if i % 2 else conditional_escape(part)
        for i, part in enumerate(parts)
    ]
    return mark_safe("".join(shown))  # noqa: S308  (both kinds of part are escaped above)


@register.filter
def initials(user: Any) -> str:
    names = re.split(r"[\s._-]+", user.display_name)
    return "".join(word[0] for word in names[:2] if word).upper()


@register.filter
def plural(count: int, forms: str) -> str:
    """Render a count with its noun: `{{ n|plural:"node,nodes" }}` → “1 node”, “3 nodes”."""
    return count_text(count, *forms.split(","))


@register.filter
def is_checkbox(bound: Any) -> bool:
    return isinstance(bound.field.widget, forms.CheckboxInput)


@register.filter
def is_choice_group(bound: Any) -> bool:
    """Return whether the field is a group of radio buttons or check boxes."""
    return isinstance(bound.field.widget, forms.RadioSelect | forms.CheckboxSelectMultiple)


@register.filter
def choices_of(bound: Any) -> list[tuple[str, Any, bool]]:
    """Return value, label and state of each choice; Django renders a template per choice."""
    value = bound.value()
    chosen = {str(each) for each in (value if isinstance(value, list | tuple) else [value])}
    return [(str(key), label, str(key) in chosen) for key, label in bound.field.choices]


@register.filter
def is_radio(bound: Any) -> bool:
    return getattr(bound.field.widget, "input_type", "") == "radio"


@register.filter
def cores(value: Decimal | str | None) -> str:
    """Return the unit for a number of cores; empty for an unknown number."""
    if value is None:
        return ""
    return ngettext("core", "cores", plural_number(Decimal(str(value))))


@register.filter
def percent(part: float) -> str:
    """Render a share as `44.4 %`."""
    return f"{part * 100:.1f} %"
