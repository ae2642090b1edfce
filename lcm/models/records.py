"""Change log, API tokens, idempotent responses and heartbeats."""

from __future__ import annotations

from typing import Any, NoReturn
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from lcm.domain.access import PROMETHEUS_SCOPE, ControllerScope
from lcm.models.base import IdModel
from lcm.models.people import User


class AppendOnlyQuerySet(models.QuerySet[Any]):
    """Rejects updates and deletes."""

    def update(self, **kwargs: Any) -> NoReturn:
        raise ValidationError(gettext("The change log cannot be changed."))

    def delete(self) -> NoReturn:
        raise ValidationError(gettext("The change log cannot be deleted."))


class ChangeLog(models.Model):
    """A change of an object: actor, time, values and reason."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(default=timezone.now)
    actor = models.CharField(max_length=150)
    # No foreign key constraint: entries outlive users and tokens.
    user = models.ForeignKey(
        User, on_delete=models.DO_NOTHING, null=True, db_constraint=False, db_index=False, related_name="+"
    )
    token_id = models.UUIDField(null=True)
    request_id = models.CharField(max_length=64, blank=True)
    object_type = models.CharField(max_length=40)
    object_id = models.CharField(max_length=40)
    object_label = models.CharField(max_length=200)
    event = models.CharField(max_length=40)
    message = models.CharField(max_length=500)
    reason = models.CharField(max_length=500, blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    # Null: not an event. False: LCM has not yet compared the event with rules and subscriptions.
    routed = models.BooleanField(null=True)

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        ordering = ["-at", "-id"]
        verbose_name = _("change")
        verbose_name_plural = _("change log")
        indexes = [
            models.Index(fields=["at", "id"], name="change_newest"),
            models.Index(fields=["object_id", "at"], name="change_of_object"),
            models.Index(fields=["user", "at"], condition=Q(user__isnull=False), name="change_by_user"),
            models.Index(fields=["object_type", "at", "id"], name="change_of_type"),
            models.Index(fields=["event", "at", "id"], name="change_of_event"),
            models.Index(fields=["id"], condition=Q(routed=False), name="change_not_routed"),
        ]

    def __str__(self) -> str:
        return self.message

    def save(self, *args: object, **kwargs: Any) -> None:
        if not self._state.adding:
            raise ValidationError(gettext("The change log cannot be changed."))
        super().save(*args, **{**kwargs, "force_insert": True})

    def delete(self, *args: object, **kwargs: Any) -> NoReturn:
        raise ValidationError(gettext("The change log cannot be deleted."))


# Prefix of a scope that names a pool.
POOL_SCOPE = "pool:"
# Prefix of the scope that limits a worker's token to its slot.
SLOT_SCOPE = "slot:"


class TokenKind(models.TextChoices):
    PERSON = "person", _("Person")
    CONTROLLER = "controller", _("Controller")


class ApiToken(IdModel):
    """An API token. LCM stores its hash only and shows the key once, on creation."""

    name = models.CharField(max_length=63)
    kind = models.CharField(max_length=10, choices=TokenKind)
    user = models.ForeignKey(User, on_delete=models.CASCADE, null=True, blank=True, related_name="tokens")
    scopes = models.JSONField(
        default=list, blank=True, help_text="Scopes of a controller, such as “pool:NAME”."
    )
    hash = models.CharField(max_length=64, unique=True, editable=False)
    hint = models.CharField(max_length=12, editable=False, help_text="The first characters of the key.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    expiry_announced_at = models.DateTimeField(
        null=True, editable=False, help_text="When LCM announced that the token expires soon."
    )
    # Set on a new token only, not stored.
    key: str

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = _("token")
        constraints = [
            models.UniqueConstraint(
                fields=["name"],
                condition=Q(revoked_at=None),
                name="token_name_in_use_once",
                violation_error_message=_("A token with this name already exists."),
            ),
            models.CheckConstraint(
                name="token_belongs_to_someone",
                condition=Q(kind=TokenKind.PERSON, user__isnull=False)
                | Q(kind=TokenKind.CONTROLLER, user=None),
            ),
        ]
        indexes = [
            models.Index(
                fields=["expires_at"],
                condition=Q(revoked_at=None, expiry_announced_at=None),
                name="token_by_expiry",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def pools(self) -> list[str]:
        """Return the names of the pools in the token's scopes."""
        return [scope.removeprefix(POOL_SCOPE) for scope in self.scopes if scope.startswith(POOL_SCOPE)]

    @property
    def scope(self) -> ControllerScope:
        """Return the objects that a controller with this token may read and change."""
        slots = [scope.removeprefix(SLOT_SCOPE) for scope in self.scopes if scope.startswith(SLOT_SCOPE)]
        return ControllerScope(tuple(self.pools), UUID(slots[0]) if slots else None)

    @property
    def scope_labels(self) -> list[str]:
        """Return the scopes in words: names of pools, “one slot” and “Prometheus targets”."""
        others = [scope for scope in self.scopes if not scope.startswith((POOL_SCOPE, SLOT_SCOPE))]
        slot = [gettext("one slot")] if self.scope.slot_id else []
        words = {PROMETHEUS_SCOPE: gettext("Prometheus targets")}
        return [
            *self.pools,
            *slot,
            *(words.get(each) or each.replace(":", " ").capitalize() for each in others),
        ]

    @property
    def state(self) -> str:
        if self.revoked_at:
            return "revoked"
        return "expired" if self.expires_at <= timezone.now() else "valid"


class IdempotentResponse(IdModel):
    """Stored response to a POST with an Idempotency-Key, replayed when the request is repeated."""

    principal = models.CharField(max_length=60)
    key = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(default=0)
    body = models.JSONField(null=True)
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["principal", "key"], name="idempotency_key_once")]

    def __str__(self) -> str:
        return self.key


class Heartbeat(models.Model):
    """Time of the last heartbeat of a component."""

    name = models.CharField(max_length=63, primary_key=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
