"""A progress bar for commands, on a terminal only."""

from __future__ import annotations

from types import TracebackType
from typing import IO, Any

WIDTH = 30


class Progress:
    """`with Progress(10, "day", stream) as progress: progress.step()`."""

    def __init__(self, total: int, noun: str, stream: Any) -> None:
        self.total, self.noun, self.done = total, noun, 0
        self.stream: IO[str] = getattr(stream, "_out", stream)
        self.shown = bool(getattr(self.stream, "isatty", lambda: False)())

    def step(self, count: int = 1) -> None:
        self.done += count
        self._show()

    def __enter__(self) -> Progress:
        self._show()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.shown:
            self.stream.write("\n")

    def _show(self) -> None:
        if self.shown:
            full = round(WIDTH * self.done / self.total) if self.total else WIDTH
            bar = "█" * full + "░" * (WIDTH - full)
            self.stream.write(f"\r{bar} {self.done:,} of {self.total:,} {self.noun}s")
            self.stream.flush()
