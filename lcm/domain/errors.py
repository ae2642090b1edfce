"""Errors of services. Pages, API and tasks show the same message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Retry-After of a 503 response.
RETRY_SECONDS = 5


class LcmError(Exception):
    """Base class: a message for people and details for programs."""

    code = "error"
    status = 400

    def __init__(self, message: str, *, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details or {})


class InvalidInput(LcmError):
    """Input is invalid; `fields` maps each invalid field to its messages."""

    code = "invalid"

    def __init__(self, fields: Mapping[str, str | Sequence[str]], message: str = "") -> None:
        self.fields = {
            key: [value] if isinstance(value, str) else list(value) for key, value in fields.items()
        }
        first = next((texts[0] for texts in self.fields.values() if texts), "The input is invalid.")
        super().__init__(message or first, details=self.fields)


class StateConflict(LcmError):
    """The object's current state does not allow the request."""

    code = "state_conflict"
    status = 409


class ReferenceGone(StateConflict):
    """A foreign key failed: another request deleted a row at the same time."""

    def __init__(self) -> None:
        super().__init__("Another request deleted an object that this request uses. Check it and try again.")


class InUse(LcmError):
    """Other objects refer to the object to delete."""

    code = "in_use"
    status = 409


class NotFound(LcmError):
    """The object does not exist, or no longer exists."""

    code = "not_found"
    status = 404


class Gone(LcmError):
    """The requested data existed and was removed."""

    code = "gone"
    status = 410


class WatchNotRouted(LcmError):
    """A watch request reached a web process through a TLS proxy."""

    code = "watch_not_routed"
    status = 421

    def __init__(self) -> None:
        super().__init__(
            "The proxy must route /api/internal/watch to the watch process (WATCH_BIND). "
            "Otherwise set WATCH_URL to the public URL of the watch process."
        )


class Unavailable(LcmError):
    """A service that the request needs is down."""

    code = "unavailable"
    status = 503


class DatabaseUnavailable(Unavailable):
    """The database does not respond, refuses connections or is locked."""

    def __init__(self) -> None:
        super().__init__("The database does not respond. Try again in a few seconds.")


class StalePreview(LcmError):
    """The data changed after the preview was shown; `changed` in the details lists the differences."""

    code = "stale_preview"
    status = 412


class Unprocessable(LcmError):
    """The request is well-formed but contradicts itself."""

    code = "unprocessable"
    status = 422


class IdempotencyKeyReused(Unprocessable):
    """The Idempotency-Key was used for a different request."""

    code = "idempotency_key_reused"
