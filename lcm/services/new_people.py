"""Creation of people: one by an Admin, or many from a list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models.functions import Lower
from django.utils.translation import gettext as _

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput, StateConflict
from lcm.domain.roles import Role
from lcm.domain.storable_text import UNSTORABLE, find_unstorable, remove_unstorable
from lcm.models import ChangeLog, Membership, Project, User
from lcm.services.changelog import build_entry, log_changes
from lcm.services.password_links import PasswordLink, password_link

FIELDS = ("username", "first_name", "last_name", "email")


@dataclass(frozen=True)
class NewPerson:
    """A person to create."""

    username: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    role: Role = Role.NONE
    projects: tuple[Project, ...] = ()

    def __post_init__(self) -> None:
        # The sign-in form normalizes what a person enters, too.
        object.__setattr__(self, "username", User.normalize_username(self.username))

    def account(self, now: datetime) -> User:
        """Return an unsaved account without a password."""
        user = User(**{name: getattr(self, name) for name in FIELDS}, date_joined=now)
        user.set_unusable_password()
        return user


def people_problems(people: Sequence[NewPerson]) -> list[dict[str, list[str]]]:
    """Return the errors of each person by field, with one query for all; an empty dict if there are none."""
    names = Counter(person.username.lower() for person in people)
    storable = [remove_unstorable(name) for name in names]
    taken = set(
        User.objects.annotate(name=Lower("username")).filter(name__in=storable).values_list("name", flat=True)
    )
    return [_problems(person, names, taken) for person in people]


def _problems(person: NewPerson, names: Mapping[str, int], taken: set[str]) -> dict[str, list[str]]:
    values = {name: getattr(person, name) for name in FIELDS}
    if unstorable := find_unstorable(values):
        return {unstorable: [UNSTORABLE]}
    try:
        User(**values).full_clean({"password"}, validate_unique=False, validate_constraints=False)
    except ValidationError as error:
        return dict(error.message_dict)
    name = person.username.lower()
    if name in taken:
        return {"username": [_("There is already a person with the user name “%(name)s”.") % {"name": name}]}
    if names[name] > 1:
        return {"username": [_("The user name “%(name)s” occurs more than once.") % {"name": name}]}
    return {}


def create_people(*, people: Sequence[NewPerson], actor: Actor, now: datetime) -> list[PasswordLink]:
    """Create all people or none; return a link for each of them to set a password."""
    for problems in people_problems(people):
        if problems:
            raise InvalidInput(problems)
    users = [person.account(now) for person in people]
    try:
        with transaction.atomic():
            User.objects.bulk_create(users)
            _assign_roles(people, users)
            _join_projects(people, users, now)
            links = [password_link(user, now=now) for user in users]
            log_changes(_entries(people, links, actor, now))
    except IntegrityError as error:
        message = _("Another request has just created one of these people or deleted one of the projects.")
        raise StateConflict(message) from error
    return links


def _assign_roles(people: Sequence[NewPerson], users: Sequence[User]) -> None:
    roles = {person.role for person in people if person.role}
    groups = {role: Group.objects.get_or_create(name=role.label)[0] for role in roles}
    through = User.groups.through._default_manager
    through.bulk_create(
        User.groups.through(user=user, group=groups[person.role])
        for person, user in zip(people, users, strict=True)
        if person.role
    )


def _join_projects(people: Sequence[NewPerson], users: Sequence[User], now: datetime) -> None:
    Membership.objects.bulk_create(
        Membership(project=project, user=user, joined_at=now)
        for person, user in zip(people, users, strict=True)
        for project in person.projects
    )


def _entries(
    people: Sequence[NewPerson], links: Sequence[PasswordLink], actor: Actor, now: datetime
) -> list[ChangeLog]:
    entries = []
    who: dict[str, Any] = {"actor": actor, "now": now}
    for person, link in zip(people, links, strict=True):
        user = link.user
        after = {
            **{name: getattr(person, name) for name in FIELDS},
            "role": person.role.label,
            "projects": [project.path for project in person.projects],
        }
        message = f"account of {user} created"
        entries.append(build_entry(user, event="person.created", message=message, after=after, **who))
        for project in person.projects:
            message, member = f"{user} joined {project.path}", {"user": user.username}
            entries.append(
                build_entry(project, event="project.member_added", message=message, after=member, **who)
            )
        entries.append(link.entry(**who))
    return entries
