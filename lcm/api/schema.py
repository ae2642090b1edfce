"""What all calls have in common in the OpenAPI document: errors and the idempotency key."""

from __future__ import annotations

from typing import Any, Literal

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from lcm.api.idempotency import HEADER


class ErrorSerializer(serializers.Serializer[Any]):
    """The form of every error."""

    code = serializers.CharField()
    message = serializers.CharField()
    details = serializers.DictField()


class LcmSchema(AutoSchema):
    """Adds the error answers and, to every POST, the Idempotency-Key header."""

    errors = {"400": "Wrong input", "401": "Not logged in", "403": "Not allowed", "404": "Not found"}
    post_errors = {
        "409": "Does not fit the state",
        "422": "Cannot mean what it says",
        "429": "Too many requests",
    }

    def get_override_parameters(self) -> list[Any]:
        if self.method != "POST":
            return []
        return [
            OpenApiParameter(
                HEADER, str, OpenApiParameter.HEADER, description="The same key is answered once."
            )
        ]

    def _get_response_bodies(self, direction: Literal["request", "response"] = "response") -> Any:
        bodies = super()._get_response_bodies(direction)
        changes = self.method in ("POST", "PATCH", "PUT", "DELETE")
        for code, text in (self.errors | (self.post_errors if changes else {})).items():
            error = self._get_response_for_code(ErrorSerializer, code)  # type: ignore[no-untyped-call]
            bodies.setdefault(code, error | {"description": text})
        return bodies


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "lcm.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A person's or a controller's token."}


class LoginScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "lcm.api.authentication.PersonSessionAuthentication"
    name = "login"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}
