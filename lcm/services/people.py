"""Profiles, passwords and roles of people."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput, StateConflict
from lcm.domain.roles import GROUPS, Role, role_of
from lcm.models import User
from lcm.services.changelog import apply_changes, log_change
from lcm.services.validation import clean_model, require_reason

PROFILE_FIELDS = ("first_name", "last_name", "email", "time_zone", "theme")


def update_profile(*, user: User, actor: Actor, **changes: Any) -> User:
    """Change the profile fields that people may edit themselves."""
    unknown = set(changes) - set(PROFILE_FIELDS)
    if unknown:
        raise ValueError(f"not profile fields: {', '.join(sorted(unknown))}")
    with transaction.atomic():
        old, new = apply_changes(user, changes)
        clean_model(user)
        if new:
            user.save(update_fields=list(new))
            message = f"profile of {user} changed: {', '.join(name.replace('_', ' ') for name in new)}"
            log_change(
                user, actor=actor, event="person.profile_changed", message=message, before=old, after=new
            )
    return user


def change_password(*, user: User, present: str, new: str, actor: Actor) -> None:
    """Change a password; the person has to enter the current one."""
    if not user.check_password(present):
        raise InvalidInput({"present": _("This is not your current password.")})
    try:
        validate_password(new, user)
    except ValidationError as error:
        raise InvalidInput({"new": " ".join(error.messages)}) from error
    with transaction.atomic():
        user.set_password(new)
        user.save(update_fields=["password"])
        message = f"password of {user} changed"
        log_change(user, actor=actor, event="person.password_changed", message=message)


def set_role(*, user: User, role: Role, is_active: bool | None = None, reason: str, by: User) -> User:
    """Set a person's role and open or close the account, from the person's next request on.

    `is_active` None: the account stays open or closed.
    """
    require_reason(reason)
    with transaction.atomic():
        user.refresh_from_db(from_queryset=User.objects.select_for_update())
        if refusal := role_refusal(user=user, by=by):
            raise StateConflict(refusal)
        before = {"role": role_of(user).label, "is_active": user.is_active}
        other_groups = [group for group in user.groups.all() if group.name not in GROUPS]
        role_groups = [Group.objects.get_or_create(name=role.label)[0]] if role else []
        user.groups.set([*other_groups, *role_groups])
        is_active = user.is_active if is_active is None else is_active
        user.is_active = is_active
        user.save(update_fields=["is_active"])
        after = {"role": role.label, "is_active": is_active}
        # All roles may read messages; only Admins see the values.
        message = f"role of {user} changed" if is_active else f"the account of {user} is closed"
        if before != after:
            log_change(
                user, actor=Actor.person(by), event="person.role_changed", message=message, reason=reason,
                before=before, after=after,
            )  # fmt: skip
    return user


def role_refusal(*, user: User, by: User) -> str:
    """Return why `by` may not change this person's role; empty if allowed."""
    if user.pk == by.pk:
        return _("You cannot change your own role. Ask another Admin.")
    if user.is_superuser and not by.is_superuser:
        return _("Only superusers can change a superuser's account.")
    return ""
