"""The format of all API errors: {code, message, details}."""

from __future__ import annotations

import logging
import math
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import set_rollback

from lcm.domain.errors import RETRY_SECONDS, DatabaseUnavailable, LcmError, ReferenceGone
from lcm.web.error_pages import DATABASE_ERRORS, is_failed_foreign_key

logger = logging.getLogger(__name__)


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's hook: convert LCM's and DRF's exceptions to the same format."""
    if isinstance(error, DATABASE_ERRORS):
        logger.error("database_error", exc_info=error)
        error = DatabaseUnavailable()
    elif is_failed_foreign_key(error):
        logger.warning("foreign_key_failed", exc_info=error)
        error = ReferenceGone()
    response = _error_response(error)
    if response is not None:
        set_rollback()
    return response


def _error_response(error: Exception) -> Response | None:
    match error:
        case LcmError():
            response = body(error.status, error.code, error.message, error.details)
            if error.status == status.HTTP_503_SERVICE_UNAVAILABLE:
                response["Retry-After"] = str(RETRY_SECONDS)
            return response
        case Http404():
            return body(status.HTTP_404_NOT_FOUND, "not_found", "Not found, or not accessible to you.")
        case PermissionDenied():
            return body(status.HTTP_403_FORBIDDEN, "permission_denied", str(error) or "This is not allowed.")
        case RequestDataTooBig():
            limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 2**20
            return body(413, "too_large", f"The request body must not exceed {limit} MB.")
        case exceptions.ValidationError():
            fields = _fields(error.detail)
            return body(error.status_code, "invalid", _first(fields), fields)
        case exceptions.Throttled():
            seconds = max(1, math.ceil(getattr(error, "wait", None) or 1))
            response = body(error.status_code, "throttled", f"Too many requests; try again in {seconds} s.")
            response["Retry-After"] = str(seconds)
            return response
        case exceptions.APIException():
            response = body(error.status_code, str(error.get_codes()), str(error.detail))
            if isinstance(header := getattr(error, "auth_header", None), str):
                response["WWW-Authenticate"] = header
            return response
    return None


def body(code: int, name: str, message: str, details: object = None) -> Response:
    return Response({"code": name, "message": message, "details": details or {}}, status=code)


def _fields(detail: object) -> dict[str, Any]:
    if isinstance(detail, dict):
        return {("__all__" if key == "non_field_errors" else key): value for key, value in detail.items()}
    return {"__all__": detail}


def _first(detail: object) -> str:
    """Return the first message in nested field errors, with the name of its field."""
    if isinstance(detail, dict):
        for key, value in detail.items():
            text = _first(value)
            if text:
                return text if key == "__all__" or ":" in text else f"{key}: {text}"
        return "The input is not valid."
    if isinstance(detail, list):
        return next((text for text in map(_first, detail) if text), "")
    return str(detail)
