"""The clients' ledger: every request that LCM acknowledged with 2xx."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass
class Entry:
    """One acknowledged session; times are Unix times."""

    session_id: str
    acknowledged_at: float
    ends_at: float
    extensions: list[tuple[float, float]] = field(default_factory=list)
    cancel_sent: bool = False
    cancelled_at: float | None = None

    @property
    def promised_end(self) -> float:
        """Return the latest end that LCM acknowledged."""
        return max([self.ends_at, *(ends_at for _, ends_at in self.extensions)])


@dataclass
class Ledger:
    """Entries by session id, and the response to each request."""

    entries: dict[str, Entry] = field(default_factory=dict)
    responses: dict[str, int] = field(default_factory=dict)
    server_errors: list[str] = field(default_factory=list)
    slowest: dict[int, float] = field(default_factory=dict)

    def count(self, kind: str) -> None:
        self.responses[kind] = self.responses.get(kind, 0) + 1

    def time(self, status: int, seconds: float) -> None:
        """Record the duration of a response with this status."""
        self.slowest[status] = max(seconds, self.slowest.get(status, 0.0))

    def save(self, path: Path) -> None:
        path.write_text(json.dumps([asdict(entry) for entry in self.entries.values()], indent=1))
