"""What can go wrong, said once: pages, API and tasks show the same sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# When a client may try again after a 503.
RETRY_SECONDS = 5


class LcmError(Exception):
    """A refusal with a sentence for people and details for programs."""

    code = "error"
    status = 400

    def __init__(self, message: str, *, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details or {})


class InvalidInput(LcmError):
    """Values that cannot be taken; `fields` says which and why."""

    code = "invalid"

    def __init__(self, fields: Mapping[str, str | Sequence[str]], message: str = "") -> None:
        self.fields = {
            key: [value] if isinstance(value, str) else list(value) for key, value in fields.items()
        }
        first = next((texts[0] for texts in self.fields.values() if texts), "The input cannot be taken.")
        super().__init__(message or first, details=self.fields)


class StateConflict(LcmError):
    """What was asked does not fit the state the object is in now."""

    code = "state_conflict"
    status = 409


class ReferenceGone(StateConflict):
    """A foreign key failed: another request deleted a row at the same time."""

    def __init__(self) -> None:
        super().__init__("Another request deleted an object that this request uses. Check it and try again.")


class InUse(LcmError):
    """Something else refers to what was to be deleted."""

    code = "in_use"
    status = 409


class NotFound(LcmError):
    """It is not there, or not any more."""

    code = "not_found"
    status = 404


class Gone(LcmError):
    """What is asked for was there once, and is forgotten."""

    code = "gone"
    status = 410


class Unavailable(LcmError):
    """A part of LCM that this needs does not answer now."""

    code = "unavailable"
    status = 503


class DatabaseUnavailable(Unavailable):
    """The database does not answer, refuses connections or is locked."""

    def __init__(self) -> None:
        super().__init__("The database does not answer. Try again in a few seconds.")


class StalePreview(LcmError):
    """What was shown before is not what is there now; `changed` says what differs."""

    code = "stale_preview"
    status = 412


class Unprocessable(LcmError):
    """Well-formed, but it cannot mean what it says."""

    code = "unprocessable"
    status = 422


class IdempotencyKeyReused(Unprocessable):
    """An Idempotency-Key that stands for something else already."""

    code = "key_reused"
