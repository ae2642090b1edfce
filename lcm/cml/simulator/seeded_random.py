"""Deterministic pseudo-random values from a seed and names."""

from __future__ import annotations

from hashlib import blake2b
from uuid import UUID

STEP_SECONDS = 5.0


def random_fraction(*names: object) -> float:
    """Return a number from 0 up to, but not including, 1."""
    digest = blake2b("\n".join(map(str, names)).encode(), digest_size=6).digest()
    return int.from_bytes(digest, "big") / 2**48


def random_between(low: float, high: float, *names: object) -> float:
    """Return a number in a range."""
    return low + (high - low) * random_fraction(*names)


def wave(seconds: float, *names: object) -> float:
    """Return a number from -1 to 1 that changes smoothly over time."""
    step, remainder = divmod(seconds, STEP_SECONDS)
    before, after = random_fraction(*names, int(step)), random_fraction(*names, int(step) + 1)
    return 2 * (before + (after - before) * remainder / STEP_SECONDS) - 1


def random_uuid(*names: object) -> str:
    """Return an id in the form of a random UUID."""
    digest = blake2b("\n".join(map(str, names)).encode(), digest_size=16).digest()
    return str(UUID(bytes=digest, version=4))


def random_mac(*names: object) -> str:
    """Return a MAC address with the vendor prefix that CML uses."""
    digest = blake2b("\n".join(map(str, names)).encode(), digest_size=3).digest()
    return ":".join(["52", "54", "00", *(f"{byte:02x}" for byte in digest)])
