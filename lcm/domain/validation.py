"""Value types for pydantic models, and pydantic's errors as paths and words. Plain Python.

A value type says what a value must be, in the words of the error. A model reports all its problems at once.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BeforeValidator, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic_core import CoreSchema, PydanticCustomError, PydanticUseDefault, core_schema

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

MAX_WHOLE = 2**53
MAX_DIGITS = 400  # characters of a decimal, enough for any float
NO_NUL = r"^[^\x00]*$"  # pydantic itself rejects lone surrogates
MAX_SHOWN = 60  # characters of a wrong value or name in an error
ValuePath = tuple[int | str, ...]
KEY = "[key]"  # pydantic's mark of a problem with a name, not with its value


@dataclass(frozen=True, eq=False)
class Must:
    """Annotation: what a value must be. pydantic checks `schema`; JSON schema describes it as `json`."""

    be: str
    schema: CoreSchema | None = None
    json: Mapping[str, Any] | None = None

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return self.core(self.schema or handler(source))

    def core(self, schema: CoreSchema) -> CoreSchema:
        """Return a schema whose error is that of this type."""
        return core_schema.custom_error_schema(
            schema,
            custom_error_type="must_be",
            custom_error_message="must be {be}",
            custom_error_context={"be": self.be},
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return handler(schema) if self.json is None else dict(self.json)


def whole_number(low: int = 0, high: int = MAX_WHOLE, be: str = "") -> Must:
    """Return the type of whole numbers; a float counts if it is exact."""
    integer = core_schema.int_schema(strict=True, ge=low, le=high)
    # An integer beyond the limits must not become a float within them.
    limited = core_schema.float_schema(multiple_of=1, ge=low, le=high)
    exact = core_schema.chain_schema([core_schema.is_instance_schema(float), limited])
    as_integer = core_schema.no_info_after_validator_function(int, exact)
    schema = core_schema.union_schema([integer, as_integer], mode="left_to_right")
    has_limit = high != MAX_WHOLE
    limits = {"minimum": low} | ({"maximum": high} if has_limit else {})
    be = be or f"a whole number from {low:,}{f' to {high:,}' if has_limit else ''}"
    return Must(be, schema, {"type": "integer", **limits})


def number_schema(**limits: Any) -> CoreSchema:
    """Return the schema of integers and floats within limits; integers stay integers."""
    whole = core_schema.int_schema(strict=True, **limits)
    fraction = core_schema.float_schema(strict=True, allow_inf_nan=False, **limits)
    return core_schema.union_schema([whole, fraction], mode="left_to_right")


def decimal(high: float, be: str) -> Must:
    """Return the type of numbers from 0 that may be written as text; no digit is lost."""

    def check_length(value: object) -> object:
        if isinstance(value, str) and len(value) > MAX_DIGITS:
            raise ValueError("the text is too long")
        return value

    number = core_schema.decimal_schema(ge=Decimal(0), le=Decimal(high))
    schema = core_schema.no_info_before_validator_function(check_length, number)
    limits = {"type": "number", "minimum": 0, "maximum": high}
    return Must(be, schema, {"oneOf": [limits, {"type": "string", "format": "decimal"}]})


def text(be: str, *, low: int = 0, high: int) -> Must:
    """Return the type of texts that a database can store."""
    schema = core_schema.str_schema(strict=True, min_length=low, max_length=high, pattern=NO_NUL)
    return Must(be, schema, {"type": "string", "maxLength": high})


FLAG = Must("true or false", core_schema.bool_schema(strict=True))


def texts(be: str, item: Must, high: int) -> Must:
    """Return the type of lists of texts; a wrong item makes the list wrong."""
    schema = core_schema.tuple_variable_schema(item.schema, max_length=high)
    return Must(be, schema, {"type": "array", "items": item.json})


class NullIsDefault:
    """Annotation: null reads as the default of the field."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "nullable": True}

    @staticmethod
    def _check(value: object) -> object:
        if value is None:
            raise PydanticUseDefault
        return value


@dataclass(frozen=True, eq=False)
class Reads:
    """Annotation: a schema of pydantic whose errors already have LCM's words."""

    schema: CoreSchema
    json: Mapping[str, Any]

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return self.schema

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return dict(self.json)


def read_by(function: Callable[[Any], Any], json: Mapping[str, Any]) -> Reads:
    """Return the type of values that a function reads; it raises one of the errors below."""
    return Reads(core_schema.no_info_plain_validator_function(function), json)


def must_be(be: str) -> PydanticCustomError:
    """Return the error of a value that is something else: “a list of texts”."""
    return PydanticCustomError("must_be", "must be {be}", {"be": be})


def refused(predicate: str) -> PydanticCustomError:
    """Return an error whose sentence starts with the path: “must have at least one entry.”"""
    return PydanticCustomError("refused", "{be}", {"be": predicate})


def sentence(text: str) -> PydanticCustomError:
    """Return an error with a sentence of its own."""
    return PydanticCustomError("sentence", "{be}", {"be": text})


def at_most(high: int, kind: type[list[Any]] | type[dict[Any, Any]], be: str) -> BeforeValidator:
    """Return an annotation that limits a container. Values in it report their own problems."""

    def check(value: object) -> object:
        if not isinstance(value, kind) or len(value) > high:
            raise must_be(be)
        return value

    return BeforeValidator(check)


@dataclass(frozen=True)
class Problem:
    """A wrong value: its path, what it must be, and the value. A missing or unknown field has no value."""

    path: ValuePath
    kind: Literal["must be", "missing", "unknown", "refused", "sentence"]
    be: str = ""
    value: Any = None


MISSING = frozenset({"missing", "missing_argument", "missing_keyword_only_argument"})
# Words for types of pydantic itself.
WORDS = {
    "dataclass_type": "an object of names and values",
    **dict.fromkeys(("int_type", "int_parsing", "float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object",
}
UNKNOWN = frozenset({"extra_forbidden", "unexpected_keyword_argument"})


def problems_of(error: ValidationError, *, most: int = 1_000) -> list[Problem]:
    """Return the first problems of an invalid value."""
    return [_problem(each) for each in error.errors(include_url=False)[:most]]


def _problem(details: ErrorDetails) -> Problem:
    kind, path = details["type"], details["loc"]
    if kind in MISSING:
        return Problem(path, "missing")
    if kind in UNKNOWN:
        return Problem(path, "unknown")
    own_words = details.get("ctx", {}).get("be", "")
    if kind == "refused":
        return Problem(path, "refused", own_words)
    if kind == "sentence":
        return Problem(path, "sentence", own_words)
    be = own_words or WORDS.get(kind) or details["msg"].removeprefix("Input should be ")
    return Problem(path, "must be", be, details["input"])


# Problems of posted bodies: a dotted path and a predicate each.


def predicates(error: ValidationError, what: str) -> dict[str, str]:
    """Return what is wrong with a posted value, by path: “must be true or false, not 7.”"""
    return {_dotted(each.path): _predicate(each, what) for each in problems_of(error)}


def _dotted(path: ValuePath) -> str:
    return ".".join(str(part)[:MAX_SHOWN] for part in path if part != KEY)


def _predicate(problem: Problem, what: str) -> str:
    if problem.kind == "unknown":
        return f"is not a field of {what}."
    if problem.kind in ("refused", "sentence"):
        return problem.be
    if problem.kind == "missing" or (problem.value is None and problem.path):
        return "is missing."
    if problem.path[-1:] == (KEY,):
        return f"must have {problem.be}."
    is_scalar = isinstance(problem.value, str | float | int)
    shown = json.dumps(problem.value, ensure_ascii=False) if is_scalar else ""
    return f"must be {problem.be}{f', not {shown}' if 0 < len(shown) <= MAX_SHOWN else ''}."


# Problems of settings and documents: a path with brackets and a sentence each.


def sentences(error: ValidationError, known: Callable[[ValuePath], Iterable[str]]) -> dict[str, str]:
    """Return a sentence for each problem, by path: “rows[2].name”. `known` names the fields at a path."""
    return {_bracketed(each.path): _sentence(each, known) for each in problems_of(error)}


def _bracketed(path: ValuePath) -> str:
    text = ""
    for part in path:
        if part != KEY:
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _sentence(problem: Problem, known: Callable[[ValuePath], Iterable[str]]) -> str:
    path = _bracketed(problem.path)
    if problem.kind == "missing":
        return f"“{path}” is required."
    if problem.kind == "unknown":
        name = str(problem.path[-1])
        return f"There is no setting “{name}”{suggestion(name, known(problem.path[:-1]))}"
    if problem.kind == "refused":
        return f"“{path}” {problem.be}"
    if problem.kind == "sentence":
        return problem.be
    shown = json.dumps(problem.value, ensure_ascii=False, default=str)
    shown = shown if len(shown) <= MAX_SHOWN else f"{shown[: MAX_SHOWN - 1]}…"
    return f"{f'“{path}”' if path else 'The settings'} must be {problem.be}, but is {shown}."


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return “; did you mean …?” if a choice is close, otherwise the choices."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, 1, 0.7)
    return f"; did you mean “{close[0]}”?" if close else f". There are: {', '.join(names) or 'none'}."
