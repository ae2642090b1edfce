"""YAML scalars: text, plain numbers, booleans and null. Other notations are kept as written."""

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
    """Return the value of an unquoted scalar, as CML's YAML 1.1 parser would."""
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
    """Return a decimal number. Any other notation stays as written."""
    if kind == "int" and _WHOLE.fullmatch(text):
        return int(text)
    if kind == "float" and _FRACTION.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return UnsupportedScalar(text)


def as_text(value: object) -> str:
    """Return a scalar roughly as written in the file."""
    if isinstance(value, UnsupportedScalar):
        return value.text
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def display_value(value: object) -> str:
    """Return a value in short form for an error message."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = as_text(value)
    if len(text) > SHOWN_LENGTH:
        text = f"{text[:SHOWN_LENGTH]}…"
    return f'"{text}"' if isinstance(value, str) else text


def is_storable(text: str) -> bool:
    """Return whether a database can store the text: no NUL and no unpaired surrogate."""
    return find_unstorable(text) is None
