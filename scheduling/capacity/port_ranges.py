"""Formatting of port numbers as ranges."""

from __future__ import annotations

from collections.abc import Sequence


def ranges(numbers: Sequence[int], *, most: int | None = None) -> str:
    """Format sorted numbers as `2000–2003, 2010`; with more ranges than `most`, the first ones and `…`."""
    texts: list[str] = []
    start = None
    for index, number in enumerate(numbers):
        start = number if start is None else start
        if index + 1 == len(numbers) or numbers[index + 1] != number + 1:
            texts.append(str(start) if start == number else f"{start}–{number}")
            start = None
    return f"{', '.join(texts[:most])}{' …' if len(texts) > len(texts[:most]) else ''}"
