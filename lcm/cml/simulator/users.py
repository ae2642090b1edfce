"""Users and tokens of a simulated controller."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from lcm.cml.simulator.http_messages import ApiError
from lcm.cml.simulator.seeded_random import random_uuid

ADMIN = "admin"


@dataclass(frozen=True)
class SimulatedUser:
    """A user. The user named admin, or the only user, sees all labs."""

    name: str
    id: str
    is_admin: bool


@dataclass
class Users:
    """Known passwords and issued tokens."""

    passwords: Mapping[str, str]
    token_seconds: float
    seed: int
    tokens: dict[str, tuple[str, float]] = field(default_factory=dict)

    def user(self, name: str) -> SimulatedUser:
        return SimulatedUser(
            name, random_uuid(self.seed, "user", name), name == ADMIN or len(self.passwords) == 1
        )

    def log_in(self, credentials: object, now: float) -> str:
        """Return a token for valid credentials. Otherwise raise 403, as CML does."""
        values = credentials if isinstance(credentials, dict) else {}
        name, password = values.get("username"), values.get("password")
        expected = self.passwords.get(name) if isinstance(name, str) else None
        valid = expected is not None and isinstance(password, str)
        if not valid or not hmac.compare_digest(str(password).encode(), str(expected).encode()):
            raise ApiError(403, "Authentication failed!")
        self.tokens = {token: held for token, held in self.tokens.items() if held[1] > now}
        token = ".".join(secrets.token_urlsafe(size) for size in (12, 48, 24))
        self.tokens[token] = (str(name), now + self.token_seconds)
        return token

    def authenticate(self, token: str, now: float) -> SimulatedUser:
        """Return the user of a token. Raise 401 if it is missing or expired."""
        if not token:
            raise ApiError(401, "Not authenticated: 401 Unauthorized: No authorization token provided.")
        name, until = self.tokens.get(token, ("", 0.0))
        if not name or until <= now:
            raise ApiError(401, "Not authenticated: 401 Unauthorized: Token has expired or is not valid.")
        return self.user(name)

    def forget(self, token: str) -> None:
        self.tokens.pop(token, None)
