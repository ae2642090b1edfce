"""Authentication of API requests: a person by session or token, a controller by token."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.request import Request

from lcm.domain.actors import Actor
from lcm.models import ApiToken, TokenKind, User
from lcm.services.tokens import find_token
from lcm.web.server.rate_limit import record_failure, seconds_until_retry


@dataclass(frozen=True)
class ControllerPrincipal:
    """The principal of a controller's token; not a person, and limited to its scopes."""

    token: ApiToken
    is_authenticated = True
    is_active = True
    is_anonymous = False

    @property
    def pk(self) -> str:
        return f"controller-{self.token.pk}"


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer lcm_…`"""

    keyword = b"bearer"

    def authenticate(self, request: Request) -> tuple[User | ControllerPrincipal, ApiToken] | None:
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() != self.keyword:
            return None
        if len(parts) != 2:
            raise AuthenticationFailed(_("Send exactly one token: “Authorization: Bearer lcm_…”."))
        token = find_token(key=parts[1].decode(errors="replace"), now=timezone.now())
        if token is None:
            wait = seconds_until_retry(request)
            record_failure(request)
            if wait is not None:
                raise Throttled(wait=wait)
            raise AuthenticationFailed(_("This token is unknown, expired or revoked."))
        if token.kind == TokenKind.CONTROLLER:
            return ControllerPrincipal(token), token
        assert token.user is not None
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="lcm"'


def token_of_controller(request: Request) -> ApiToken | None:
    """Return the token of the controller that makes the request; None for a person."""
    principal: object = request.user
    return principal.token if isinstance(principal, ControllerPrincipal) else None


def controller_token(request: Request) -> ApiToken:
    """Return the token of a request that only controllers may make."""
    token = token_of_controller(request)
    assert token is not None
    return token


def actor_of(request: Request) -> Actor:
    """Return the actor of an API request, for services and the change log."""
    if token := token_of_controller(request):
        return Actor.controller(token.name, token.pk)
    assert isinstance(request.user, User)
    return Actor.person(request.user, token_id=request.auth.pk if request.auth else None)


def principal_key(request: Request) -> str:
    """Return a short key of the caller for throttling and idempotency."""
    return str(request.user.pk)
