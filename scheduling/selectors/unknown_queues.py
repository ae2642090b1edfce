"""Queue names in scheduler documents that match no domain, project or user."""

from __future__ import annotations

from django.utils.translation import gettext as _

from lcm.models import Project, User
from lcm.models.people import Domain
from scheduling.placement.framework.configuration import InvalidConfiguration, read_configuration
from scheduling.selectors.snapshots import NO_SESSION_QUEUE


def unknown_queues(scheduler: str) -> list[str]:
    """Return queues with a limit that match no domain, project or user."""
    try:
        choices = read_configuration(scheduler).choices
    except InvalidConfiguration:
        return []
    limits = (choice.arguments.get("limits") for choice in choices if choice.name == "quota")
    named = {str(queue) for by_queue in limits if by_queue for queue in by_queue}
    if not named:
        return []
    known = {NO_SESSION_QUEUE, *Domain.objects.filter(name__in=named).values_list("name", flat=True)}
    paths = [project.path for project in Project.objects.select_related("domain")]
    user_names = {name.rsplit("/", 1)[-1] for name in named}
    people = set(User.objects.filter(username__in=user_names).values_list("username", flat=True))
    known |= {*paths, *(f"{path}/{person}" for path in paths for person in people)}
    return sorted(named - known)


def unknown_queues_text(names: list[str]) -> str:
    """Return the warning for the message, the notice and the API; empty if all are known."""
    if not names:
        return ""
    if len(names) == 1:
        return _("There is no queue “%(name)s”: its limit has no effect.") % {"name": names[0]}
    listed = ", ".join(f"“{name}”" for name in names)
    return _("There are no queues %(names)s: their limits have no effect.") % {"names": listed}
