"""Create, edit and delete domains and projects, and manage their members."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeVar

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from lcm.domain.actors import Actor
from lcm.domain.errors import InUse
from lcm.domain.lifecycle import ACTIVE
from lcm.models import Domain, LabletSession, Membership, Project, User
from lcm.services.changelog import apply_changes, log_change, loggable_fields
from lcm.services.validation import clean_and_save, delete_if_unused, refuse_unknown, require_reason

Unit = TypeVar("Unit", Domain, Project)


def create_domain(*, name: str, description: str = "", actor: Actor, now: datetime | None = None) -> Domain:
    return _create(Domain(name=name, description=description), actor=actor, now=now)


def create_project(
    *, domain: Domain, name: str, description: str = "", actor: Actor, now: datetime | None = None
) -> Project:
    return _create(Project(domain=domain, name=name, description=description), actor=actor, now=now)


def update_domain(*, domain: Domain, actor: Actor, **changes: Any) -> Domain:
    return _update(domain, changes, actor=actor)


def update_project(*, project: Project, actor: Actor, **changes: Any) -> Project:
    return _update(project, changes, actor=actor)


def delete_domain(*, domain: Domain, reason: str, actor: Actor) -> None:
    _delete(domain, reason=reason, actor=actor)


def delete_project(*, project: Project, reason: str, actor: Actor) -> None:
    _delete(project, reason=reason, actor=actor)


def add_member(*, project: Project, user: User, actor: Actor, now: datetime | None = None) -> Membership:
    """Add a person to a project; do nothing if the person is a member already."""
    with transaction.atomic():
        membership, created = Membership.objects.get_or_create(project=project, user=user)
        if created:
            message = f"{user} joined {project.path}"
            after = {"user": user.username}
            log_change(
                project, actor=actor, event="project.member_added", message=message, after=after, now=now
            )
    return membership


def remove_member(*, project: Project, user: User, reason: str, actor: Actor) -> None:
    """Remove a person from a project; raise InUse if the person has an active session in it."""
    require_reason(reason)
    with transaction.atomic():
        removed = Membership.objects.filter(project=project, user=user).delete()[0]
        active = LabletSession.objects.filter(project=project, owner=user, status__in=ACTIVE).count()
        if active:
            message = ngettext(
                "%(user)s cannot leave %(project)s: %(count)s active session.",
                "%(user)s cannot leave %(project)s: %(count)s active sessions.",
                active,
            )
            raise InUse(message % {"user": user, "project": project.path, "count": active})
        if removed:
            log_change(
                project,
                actor=actor,
                event="project.member_removed",
                message=f"{user} left {project.path}",
                reason=reason,
                before={"user": user.username},
            )


def _create(unit: Unit, *, actor: Actor, now: datetime | None) -> Unit:
    unit.created_at = now or unit.created_at
    with transaction.atomic():
        clean_and_save(unit)
        kind = unit._meta.verbose_name
        log_change(
            unit,
            actor=actor,
            event=f"{unit._meta.model_name}.created",
            message=f"{kind} {unit} created",
            after=loggable_fields(unit),
            now=now,
        )
    return unit


def _update(unit: Unit, changes: dict[str, Any], *, actor: Actor) -> Unit:
    refuse_unknown(changes, ("name", "description"), _("This cannot be changed."))
    with transaction.atomic():
        old, new = apply_changes(unit, changes)
        if new:
            clean_and_save(unit, fields=[*changes, "updated_at"])
            kind = unit._meta.verbose_name
            message = f"{kind} {unit} edited"
            log_change(
                unit,
                actor=actor,
                event=f"{unit._meta.model_name}.edited",
                message=message,
                before=old,
                after=new,
            )
    return unit


def _delete(unit: Domain | Project, *, reason: str, actor: Actor) -> None:
    require_reason(reason)
    kind = unit._meta.verbose_name
    with transaction.atomic():
        log_change(
            unit,
            actor=actor,
            event=f"{unit._meta.model_name}.deleted",
            message=f"{kind} {unit} deleted",
            reason=reason,
            before=loggable_fields(unit),
        )
        delete_if_unused(unit)
