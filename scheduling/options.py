"""Settings, arguments and rows of documents: JSON read into frozen dataclasses, with a sentence per problem.

A dataclass annotates its fields with the types below: `weight: Annotated[float, number(0, 100)] = 1`. The
docstring below a field says what it means. `read_options` validates the values with pydantic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar, TypeVar, get_args, get_type_hints

from pydantic import BeforeValidator, ConfigDict, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from lcm.domain.validation import Must, Reads, ValuePath, must_be, number_schema, read_by, refused, sentences

AnyOptions = TypeVar("AnyOptions")


@dataclass(frozen=True)
class Options:
    """Base class of settings. No other names are allowed."""

    __pydantic_config__: ClassVar = ConfigDict(
        extra="forbid", use_attribute_docstrings=True, arbitrary_types_allowed=True
    )


class InvalidOptions(Exception):
    """Invalid settings: the key (empty: the whole document) and a message each."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__(" ".join(problems.values()))
        self.problems = dict(problems)


def number(low: float, high: float) -> Must:
    """Return the type of numbers within bounds."""
    limits = {"minimum": low, "maximum": high}
    be = f"a number from {low:g} to {high:g}"
    return Must(be, number_schema(ge=low, le=high), {"type": "number", **limits})


def flag() -> Must:
    """Return the type of true and false."""
    return Must("true or false", core_schema.bool_schema(strict=True))


def text(be: str = "text", *, pattern: str = r"(?s:.+)", longest: int = 300, empty: bool = False) -> Reads:
    """Return the type of texts that match a pattern; `empty` allows an empty text too."""

    def read(value: object) -> str:
        if not isinstance(value, str) or not (re.fullmatch(pattern, value) or (empty and not value)):
            raise must_be(be)
        if len(value) > longest:
            raise refused(f"has {len(value)} characters; at most {longest} are allowed.")
        return value

    return read_by(read, {"type": "string", "maxLength": longest, **({} if be == "text" else {"title": be})})


def choice(of: type[StrEnum]) -> Must:
    """Return the type of the values of an enumeration."""
    return Must(f"one of {', '.join(of)}", json={"type": "string", "enum": [member.value for member in of]})


def texts() -> Must:
    """Return the type of lists of texts."""
    schema = core_schema.tuple_variable_schema(core_schema.str_schema(strict=True))
    return Must("a list of texts", schema, {"type": "array", "items": {"type": "string"}})


def texts_by_name() -> Must:
    """Return the type of mappings of names to texts."""
    schema = core_schema.dict_schema(core_schema.str_schema(), core_schema.str_schema(strict=True))
    return Must("an object of names and texts", schema, {"type": "object"})


def rows(*, required: bool = True) -> BeforeValidator:
    """Annotate a tuple of dataclasses: a list of objects; `required` demands at least one."""

    def check(value: object) -> Any:
        if not isinstance(value, list | tuple):
            raise must_be("a list of objects")
        if required and not value:
            raise refused("must have at least one entry.")
        return value

    return BeforeValidator(check)


def read_options(of: type[AnyOptions], values: object) -> AnyOptions:
    """Return the settings as their dataclass; raise `InvalidOptions` with every problem.

    A method `problems` of the dataclass checks several fields together: it returns sentences by path.
    """
    model = _model(of)
    try:
        options: AnyOptions = _adapter(model).validate_python(values)
    except ValidationError as error:
        _raise_own_error(error)
        raise InvalidOptions(sentences(error, lambda path: _names(model, path))) from error
    if model is not of:
        options = of(**vars(options))
    check: Callable[[], Mapping[str, str]] = getattr(options, "problems", dict)
    if problems := check():
        raise InvalidOptions(problems)
    return options


@cache
def _adapter(of: Any) -> TypeAdapter[Any]:
    """Return the validator of a dataclass."""
    return TypeAdapter(of)


class _AnyJsonSchema(GenerateJsonSchema):
    """JSON schema that describes a type without one as any value."""

    def handle_invalid_for_json_schema(self, schema: object, error_info: str) -> JsonSchemaValue:
        return {}


def field_schemas(of: type[Any]) -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each field; of an optional field, that of its values."""
    properties = _adapter(_model(of)).json_schema(schema_generator=_AnyJsonSchema).get("properties", {})
    return {name: {**schema.get("anyOf", ({},))[0], **schema} for name, schema in properties.items()}


def row_types(of: type[Any]) -> dict[str, type[Any]]:
    """Return the dataclass of the rows of each field that is a list of objects."""
    model = _model(of)
    kinds = {name: next(_dataclasses_in(hint), None) for name, hint in get_type_hints(model).items()}
    return {column.name: kind for column in fields(model) if (kind := kinds[column.name]) is not None}


def _model(of: type[Any]) -> Any:
    """Return the dataclass that declares the fields: the class or, without the decorator, a base class."""
    return next(parent for parent in of.__mro__ if "__dataclass_fields__" in vars(parent))


def _raise_own_error(error: ValidationError) -> None:
    """Raise an error of the class itself, which pydantic takes for a problem of the values."""
    for problem in error.errors():
        own = problem.get("ctx", {}).get("error")
        if isinstance(own, Exception):
            raise own


def _names(of: Any, path: ValuePath) -> Iterable[str]:
    """Return the names of the fields at a path of a document."""
    for part in path:
        if isinstance(part, str):
            of = next(_dataclasses_in(get_type_hints(of)[part]))
    return [each.name for each in fields(of)]


def _dataclasses_in(hint: object) -> Iterator[type[Any]]:
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint
    for each in get_args(hint):
        yield from _dataclasses_in(each)
