"""Fixtures of fair share."""

from tests.fairshare.conftest import no_broker, stage  # noqa: F401
