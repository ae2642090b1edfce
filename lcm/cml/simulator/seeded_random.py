"""Numbers that look random and are the same for the same seed and name."""

from __future__ import annotations

from hashlib import blake2b
from uuid import UUID

STEP_SECONDS = 5.0


def random_fraction(*names: object) -> float:
    """A number from 0 up to 1."""
    digest = blake2b("\n".join(map(str, names)).encode(), digest_size=6).digest()
    return int.from_bytes(digest, "big") / 2**48


def random_between(low: float, high: float, *names: object) -> float:
    """A number in a range."""
    return low + (high - low) * random_fraction(*names)


def wave(seconds: float, *names: object) -> float:
    """A number from -1 to 1 that moves smoothly in time."""
    step, rest = divmod(seconds, STEP_SECONDS)
    before, after = random_fraction(*names, int(step)), random_fraction(*names, int(step) + 1)
    return 2 * (before + (after - before) * rest / STEP_SECONDS) - 1


def random_uuid(*names: object) -> str:
    """An id in the form of a random UUID."""
    digest = blake2b("\n".join(map(str, names)).encode(), digest_size=16).digest()
    return str(UUID(bytes=digest, version=4))


def random_mac(*names: object) -> str:
    """An address with the vendor part that CML uses."""
    digest = blake2b("\n".join(map(str, names)).encode(), digest_size=3).digest()
    return ":".join(["52", "54", "00", *(f"{byte:02x}" for byte in digest)])
