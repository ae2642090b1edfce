"""Parts of the OpenAPI document that all operations share."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension, OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from lcm.api.idempotency import HEADER, MAX_KEY


class ErrorSerializer(serializers.Serializer[object]):
    """The format of every error."""

    code = serializers.CharField()
    message = serializers.CharField()
    details = serializers.DictField()


ERRORS = {
    "400": "Invalid input",
    "401": "Not authenticated",
    "403": "Not allowed",
    "404": "Not found",
    "429": "Too many requests",
}
CHANGE_ERRORS = {
    "409": "Conflict with the current state",
    "413": "Request body too large",
    "415": "Request body is not JSON",
    "422": "Unprocessable content",
}


class LcmSchema(AutoSchema):
    """Adds the Idempotency-Key header to every POST."""

    def get_override_parameters(self) -> list[Any]:
        if self.method != "POST":
            return []
        return [
            OpenApiParameter(
                HEADER,
                {"type": "string", "maxLength": MAX_KEY},
                OpenApiParameter.HEADER,
                description="Requests with the same key are executed once.",
            )
        ]


def add_error_responses(result: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
    """Document the errors that every operation may return; a hook of drf-spectacular."""
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    for path in result["paths"].values():
        for method, operation in path.items():
            errors = ERRORS if method == "get" else ERRORS | CHANGE_ERRORS
            for code, text in errors.items():
                operation["responses"].setdefault(code, {"content": content, "description": text})
    return result


# Name and type: the filter `since` of the change log is a time, which is ignored if empty.
REFUSED_WHEN_EMPTY = {("revision", "integer"), ("since", "integer"), ("wait", "number")}


def allow_empty_parameters(result: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
    """Document which query parameters are ignored if empty; a hook of drf-spectacular."""
    for path in result["paths"].values():
        for operation in path.values():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "query" and _is_ignored_when_empty(parameter):
                    parameter["allowEmptyValue"] = True
    return result


def _is_ignored_when_empty(parameter: dict[str, Any]) -> bool:
    """Return whether an empty value is ignored; each value of a repeatable parameter is checked instead."""
    kind = parameter["schema"].get("type")
    refused = kind == "array" or (parameter["name"], kind) in REFUSED_WHEN_EMPTY
    return not (parameter.get("required") or refused)


def close_request_bodies(result: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
    """Document that unknown keys in request bodies are rejected; a hook of drf-spectacular."""
    schemas = result["components"]["schemas"]
    waiting = [
        each["requestBody"]
        for path in result["paths"].values()
        for each in path.values()
        if "requestBody" in each
    ]
    seen: set[str] = set()
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            waiting += part.values()
            name = str(part.get("$ref", "")).rpartition("/")[2]
            if name and name not in seen:
                seen.add(name)
                waiting.append(schemas[name])
                if "properties" in schemas[name]:
                    schemas[name]["additionalProperties"] = False
    return result


class DecimalText(OpenApiSerializerFieldExtension):
    """A decimal number as text; the pattern of drf-spectacular also matches an empty text."""

    target_class = "rest_framework.fields.DecimalField"
    match_subclasses = True

    def map_serializer_field(self, auto_schema: object, direction: object) -> dict[str, Any]:
        field = self.target
        sign = "" if field.min_value is not None and field.min_value >= 0 else "-?"
        whole = field.max_digits - field.decimal_places
        number = rf"{sign}[0-9]{{1,{whole}}}(?:\.[0-9]{{1,{field.decimal_places}}})?"
        # DRF reads an empty text as null.
        pattern = f"^(?:{number})?$" if field.allow_null and direction == "request" else f"^{number}$"
        return {"type": "string", "format": "decimal", "pattern": pattern}


class DurationText(OpenApiSerializerFieldExtension):
    """A duration as text, in Django's format."""

    target_class = "rest_framework.fields.DurationField"

    def map_serializer_field(self, auto_schema: object, direction: object) -> dict[str, Any]:
        pattern = r"^(?:[0-9]{1,3} )?[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?$"
        return {"type": "string", "pattern": pattern, "example": "1 08:00:00"}


class TokenScheme(OpenApiAuthenticationExtension):
    target_class = "lcm.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A person's or a controller's token."}


class LoginScheme(OpenApiAuthenticationExtension):
    target_class = "rest_framework.authentication.SessionAuthentication"
    name = "login"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}
