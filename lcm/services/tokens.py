"""Create, rotate, revoke and find API tokens. Keys are shown once and stored as a hash."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.utils.translation import gettext as _

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput, StateConflict
from lcm.models import ApiToken, TokenKind, User
from lcm.models.base import ID_PATTERN
from lcm.models.records import POOL_SCOPE, SLOT_SCOPE
from lcm.services.changelog import log_change
from lcm.services.validation import clean_and_save, require_reason

PREFIX = "lcm_"
MAX_LIFETIME = timedelta(days=730)
LAST_USED_INTERVAL = timedelta(minutes=1)
_SCOPE = re.compile(r"^[a-z]+:[a-z0-9][a-z0-9-]*$")
_SLOT = re.compile(f"{SLOT_SCOPE}{ID_PATTERN}")


def create_token(
    *,
    name: str,
    kind: TokenKind,
    user: User | None = None,
    scopes: Sequence[str] = (),
    expires_at: datetime,
    actor: Actor,
    now: datetime,
) -> tuple[ApiToken, str]:
    """Create a token; return it with its key, which LCM does not store."""
    _check(kind=kind, user=user, scopes=scopes, expires_at=expires_at, now=now)
    _check_superuser(user, actor)
    key = PREFIX + secrets.token_urlsafe(32)
    token = ApiToken(
        name=name,
        kind=kind,
        user=user,
        scopes=list(scopes),
        hash=hash_key(key),
        hint=key[:9],
        created_at=now,
        expires_at=expires_at,
    )
    with transaction.atomic():
        clean_and_save(token)
        log_change(
            token,
            actor=actor,
            event="token.created",
            message=f"token {token} created",
            after={"kind": kind, "scopes": list(scopes), "expires_at": expires_at},
            now=now,
        )
    return token, key


def rotate_token(*, token: ApiToken, reason: str, actor: Actor, now: datetime) -> tuple[ApiToken, str]:
    """Replace a token by a new one with the same name, scopes and lifetime; revoke the old key."""
    require_reason(reason)
    lifetime = token.expires_at - token.created_at
    with transaction.atomic():
        _revoke(token, message=f"token {token} rotated: old key revoked", reason=reason, actor=actor, now=now)
        return create_token(
            name=token.name,
            kind=TokenKind(token.kind),
            user=token.user,
            scopes=token.scopes,
            expires_at=now + lifetime,
            actor=actor,
            now=now,
        )


def revoke_token(*, token: ApiToken, reason: str, actor: Actor, now: datetime) -> ApiToken:
    """Revoke a token now."""
    require_reason(reason)
    return _revoke(token, message=f"token {token} revoked", reason=reason, actor=actor, now=now)


# SQL, because every API request runs it, and building the query would take longer than running it.
_VALID_TOKEN = f"""
    SELECT * FROM {ApiToken._meta.db_table} WHERE hash = %s AND revoked_at IS NULL AND expires_at > %s
"""  # noqa: S608


def find_token(*, key: str, now: datetime) -> ApiToken | None:
    """Return the valid token with this key and record its use; None if there is none."""
    token = next(iter(ApiToken.objects.raw(_VALID_TOKEN, [hash_key(key), now])), None)
    if token is None or (token.user and not token.user.is_active):
        return None
    if token.last_used_at is None or token.last_used_at < now - LAST_USED_INTERVAL:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


def hash_key(key: str) -> str:
    """Return the SHA-256 of a key. Keys are long and random, so a slow password hash adds nothing."""
    return hashlib.sha256(key.encode()).hexdigest()


def _revoke(token: ApiToken, *, message: str, reason: str, actor: Actor, now: datetime) -> ApiToken:
    with transaction.atomic():
        moved = ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=now)
        if not moved:
            raise StateConflict(_("The token %(token)s has been revoked already.") % {"token": token})
        token.revoked_at = now
        log_change(token, actor=actor, event="token.revoked", message=message, reason=reason, now=now)
    return token


def _check(
    *, kind: TokenKind, user: User | None, scopes: Sequence[str], expires_at: datetime, now: datetime
) -> None:
    errors: dict[str, str] = {}
    if kind == TokenKind.PERSON and user is None:
        errors["user"] = _("A personal token needs a user.")
    if kind == TokenKind.CONTROLLER and user is not None:
        errors["user"] = _("A controller token cannot belong to a user.")
    if kind == TokenKind.CONTROLLER and not scopes:
        errors["scopes"] = _("Enter the scopes of the controller, for example “pool:cml-eu”.")
    if kind == TokenKind.PERSON and scopes:
        errors["scopes"] = _("A personal token has the role of its user. Only controller tokens have scopes.")
    bad = [scope for scope in scopes if not _SCOPE.fullmatch(scope)]
    if bad:
        errors["scopes"] = _("“%(scope)s” is not a scope. Enter “pool:NAME”.") % {"scope": bad[0]}
    elif any(scope.startswith(SLOT_SCOPE) for scope in scopes) and not _names_one_slot(scopes):
        errors["scopes"] = _(
            "The scope “slot:ID” needs the ID of one slot, one scope “pool:NAME” and no other scope."
        )
    if not now < expires_at <= now + MAX_LIFETIME:
        errors["expires_at"] = _("The expiry must be between now and %(days)s days from now.") % {
            "days": MAX_LIFETIME.days
        }
    if errors:
        raise InvalidInput(errors)


def _check_superuser(user: User | None, actor: Actor) -> None:
    """Raise if someone else would get a superuser's permissions with the key."""
    if user is None or not user.is_superuser or actor.user_id is None:
        return
    if not User.objects.filter(pk=actor.user_id, is_superuser=True).exists():
        raise StateConflict(_("Only superusers can create and rotate tokens of superusers."))


def _names_one_slot(scopes: Sequence[str]) -> bool:
    pools = [scope for scope in scopes if scope.startswith(POOL_SCOPE)]
    slots = [scope for scope in scopes if _SLOT.fullmatch(scope)]
    return len(scopes) == 2 and len(pools) == 1 and len(slots) == 1
