"""The people and addresses that events are sent to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db.models import Q

from lcm.domain.roles import GROUPS, Role, role_of
from lcm.models import ChangeLog, Channel, EventRule, User, Watch

# Prefix of a recipient that names a role; user names have no colon.
ROLE_PREFIX = "role:"


@dataclass(frozen=True)
class Recipient:
    """A person, or an e-mail address without an account."""

    person: User | None
    address: str = ""


def role_named(recipient: str) -> Role | None:
    """Return the role of a recipient such as `role:Admin`; None if it is not a role."""
    if not recipient.startswith(ROLE_PREFIX):
        return None
    return GROUPS.get(recipient.removeprefix(ROLE_PREFIX).capitalize())


def is_address(recipient: str) -> bool:
    try:
        validate_email(recipient)
    except ValidationError:
        return False
    return True


class People:
    """The open accounts among the people that some events may notify, read in two queries."""

    def __init__(
        self, *, names: Collection[str] = (), keys: Collection[UUID] = (), roles: Collection[Role] = ()
    ) -> None:
        self.by_name: dict[str, User] = {}
        self.by_key: dict[UUID, User] = {}
        # Names of accounts that were closed. A name can look like an address.
        self.closed: set[str] = set()
        if not (names or keys or roles):
            return
        members = User.groups.through._default_manager.filter(
            group__name__in=[role.label for role in roles]
        ).values("user")
        wanted = Q(username__in=names) | Q(pk__in=keys)
        if roles:
            wanted |= Q(pk__in=members)
        if Role.ADMIN in roles:
            wanted |= Q(is_superuser=True)
        for person in User.objects.filter(wanted).order_by("username").prefetch_related("groups"):
            if not person.is_active:
                self.closed.add(person.username)
                continue
            self.by_name[person.username] = self.by_key[person.pk] = person

    def of_rule(self, rule: EventRule) -> list[Recipient]:
        """Return the recipients of a rule; people without a role have no inbox."""
        found: dict[object, Recipient] = {}
        for text in rule.recipients:
            for recipient in self._named(text):
                person = recipient.person
                if rule.channel == Channel.EMAIL or (person and role_of(person)):
                    found.setdefault(person.pk if person else recipient.address, recipient)
        return list(found.values())

    def _named(self, text: str) -> Iterable[Recipient]:
        if role := role_named(text):
            people = [person for person in self.by_name.values() if role_of(person) == role]
            return [Recipient(person, person.email) for person in people]
        if person := self.by_name.get(text):
            return [Recipient(person, person.email)]
        return [Recipient(None, text)] if text not in self.closed and is_address(text) else []


def watchers_of(changes: Sequence[ChangeLog]) -> dict[tuple[str, str], list[UUID]]:
    """Return the people who watch the objects of events, by object."""
    found: dict[tuple[str, str], list[UUID]] = {}
    watches = Watch.objects.filter(object_id__in={change.object_id for change in changes}).order_by()
    for object_type, object_id, user in watches.values_list("object_type", "object_id", "user"):
        found.setdefault((object_type, object_id), []).append(user)
    return found
