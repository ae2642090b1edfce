"""Idempotency-Key: a POST with the same key is executed once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder
from rest_framework.views import APIView

from lcm.api.authentication import principal_key
from lcm.domain.errors import IdempotencyKeyReused, InvalidInput
from lcm.models import IdempotentResponse

HEADER = "Idempotency-Key"
MAX_KEY = 200


class IdempotentPostMixin(APIView):
    """Mixin for API views: wraps `post` if the request carries a key."""

    shown_once: tuple[str, ...] = ()  # secrets in a response, which are not stored for replays

    def initial(self, request: Request, *args: object, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        key = request.headers.get(HEADER, "")
        handler = getattr(self, "post", None)
        if request.method == "POST" and key and handler:
            self.post = lambda request, *args, **kwargs: respond_once(
                key, request, lambda: handler(request, *args, **kwargs), shown_once=self.shown_once
            )


def respond_once(
    key: str, request: Request, execute: Callable[[], Response], *, shown_once: Sequence[str] = ()
) -> Response:
    """Return the stored response for this key, or execute the request and store its response atomically.

    An error changes nothing and is not stored: the same request may succeed later.
    """
    if len(key) > MAX_KEY:
        raise InvalidInput({HEADER: _("The key must not exceed %(max)s characters.") % {"max": MAX_KEY}})
    principal, fingerprint = principal_key(request), _fingerprint(request)
    if stored := _stored(principal, key):
        return _replay(stored, fingerprint)
    try:
        with transaction.atomic():
            # A second request with this key blocks here until the first one commits.
            row = IdempotentResponse.objects.create(principal=principal, key=key, fingerprint=fingerprint)
            response = execute()
            row.status, row.body = response.status_code, _plain(response.data, shown_once)
            row.save(update_fields=["status", "body"])
            return response
    except IntegrityError:
        if stored := _stored(principal, key):
            return _replay(stored, fingerprint)
        raise


def _stored(principal: str, key: str) -> IdempotentResponse | None:
    return IdempotentResponse.objects.filter(principal=principal, key=key).first()


def _replay(stored: IdempotentResponse, fingerprint: str) -> Response:
    if stored.fingerprint != fingerprint:
        raise IdempotencyKeyReused(
            _("This %(header)s was used for another request. Use a new key.") % {"header": HEADER}
        )
    return Response(stored.body, status=stored.status, headers={"Idempotency-Replayed": "true"})


def _fingerprint(request: Request) -> str:
    canonical = json.dumps(
        [request.method, request.path, request.data], sort_keys=True, cls=DjangoJSONEncoder
    )
    return hashlib.sha256(canonical.encode()).hexdigest()


def _plain(data: Any, secrets: Sequence[str]) -> Any:
    hidden = {name: None for name in secrets if isinstance(data, dict) and name in data}
    public = {**data, **hidden} if hidden else data
    # DRF's encoder, as the renderer uses it: Django's encoder would truncate times to milliseconds.
    return json.loads(json.dumps(public, cls=JSONEncoder))
