"""Types of settings: the kind in the reference, the parser and the minimum."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Any

from lcm.domain.validation import Reads, must_be, read_by, refused

_FLAGS = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}


def _flag(text: str) -> bool:
    if text.lower() not in _FLAGS:
        raise ValueError(text)
    return _FLAGS[text.lower()]


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _seconds_by_name(text: str) -> dict[str, float]:
    intervals = {}
    for item in _items(text):
        name, _, value = item.partition("=")
        intervals[name.strip()] = _finite(value)
        if not intervals[name.strip()] > 0:
            raise ValueError(item)
    return intervals


SECONDS = {"sec": 1, "min": 60, "hour": 3600, "day": 86400}


@lru_cache(maxsize=64)
def parse_rate(text: str) -> tuple[int, int]:
    """`600/min` → 600 calls in 60 seconds."""
    number, _, period = text.partition("/")
    if not number.isdecimal() or int(number) < 1 or period not in SECONDS:
        raise ValueError(f"“{text}” is not a rate; write for example 600/min")
    return int(number), SECONDS[period]


def _rate(text: str) -> str:
    parse_rate(text)
    return text


def _kind(kind: str, parse: Callable[[str], Any], minimum: float | None = None) -> Reads:
    """Return the type of a setting: its kind in the reference, its parser and its minimum."""

    def read(text: str) -> Any:
        try:
            value = parse(text)
        except ValueError:
            raise must_be(f"a {kind}") from None
        if minimum is not None and not value >= minimum:
            raise refused(f"is {text}, but must be at least {minimum:g}")
        return value

    return read_by(read, {"type": kind})


def whole(minimum: float | None = None) -> Reads:
    return _kind("whole number", int, minimum)


def seconds(minimum: float | None = None) -> Reads:
    return _kind("seconds", _finite, minimum)


def choice(*choices: str) -> Reads:
    def read(text: str) -> str:
        if text not in choices:
            raise must_be(f"one of {', '.join(choices)}")
        return text

    return read_by(read, {"type": "text"})


Text = Annotated[str, _kind("text", str)]
Flag = Annotated[bool, _kind("flag", _flag)]
Rate = Annotated[str, _kind("rate", _rate)]
Items = Annotated[list[str], _kind("list", _items)]
Networks = Annotated[
    list[IPv4Network | IPv6Network],
    _kind("list of networks", lambda text: [ip_network(item, strict=False) for item in _items(text)]),
]
Intervals = Annotated[dict[str, float], _kind("list of intervals", _seconds_by_name)]
