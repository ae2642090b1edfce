"""What a YAML scalar means: the plain kinds only; the rest is kept as written and refused where it counts."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import yaml

from lcm.domain.storable_text import find_unstorable

MAX_TYPED_LENGTH = 64
SHOWN_LENGTH = 40

_resolve: Callable[..., str] = yaml.resolver.Resolver().resolve
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FRACTION = re.compile(r"[-+]?[0-9]+\.[0-9]*([eE][-+]?[0-9]+)?")


@dataclass(frozen=True)
class UnsupportedScalar:
    """A scalar that YAML 1.1 reads as neither text nor a plain number: a date, 0x1F, 1:30, .nan."""

    text: str


Scalar = None | bool | int | float | str | UnsupportedScalar


def read_plain(text: str) -> Scalar:
    """The value of an unquoted scalar, read as CML's YAML 1.1 reader would."""
    if len(text) > MAX_TYPED_LENGTH:
        return text
    kind = _resolve(yaml.ScalarNode, text, (True, False)).rpartition(":")[2]
    if kind == "str":
        return text
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in {"yes", "true", "on"}
    return _read_number(kind, text)


def _read_number(kind: str, text: str) -> int | float | UnsupportedScalar:
    """A decimal number; any other notation stays as it was written."""
    if kind == "int" and _WHOLE.fullmatch(text):
        return int(text)
    if kind == "float" and _FRACTION.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return UnsupportedScalar(text)


def as_text(value: object) -> str:
    """A scalar as the reader wrote it, near enough."""
    if isinstance(value, UnsupportedScalar):
        return value.text
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def display_value(value: object) -> str:
    """A value as an error message shows it: short."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = as_text(value)
    if len(text) > SHOWN_LENGTH:
        text = f"{text[:SHOWN_LENGTH]}…"
    return f'"{text}"' if isinstance(value, str) else text


def is_storable(text: str) -> bool:
    """Whether a database can hold the text: no NUL and no half of a surrogate pair."""
    return find_unstorable(text) is None
