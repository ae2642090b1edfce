"""Types of the fields of a snapshot; a document has decimal numbers, which are read into units."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any

from pydantic_core import core_schema

from lcm.domain import validation
from lcm.domain.resources import RESOURCE_NAMES
from lcm.domain.validation import Must, Reads, must_be, number_schema, refused, suggestion
from scheduling.options import flag, number, text, texts_by_name
from scheduling.placement.framework.amounts import UNIT, Units, amounts_of, in_units

MAX_VALUE = 1e9
SESSIONS = "sessions"
LIMITED = (*RESOURCE_NAMES, SESSIONS)
Shares = tuple[tuple[int, int], ...]
Converter = Callable[[Any], Any]


def _converted(schema: core_schema.CoreSchema, read: Converter, write: Converter) -> core_schema.CoreSchema:
    written = core_schema.plain_serializer_function_ser_schema(write)
    return core_schema.no_info_after_validator_function(read, schema, serialization=written)


def _numbers(known: Collection[str], read: Converter, write: Converter) -> Reads:
    """Return the type of a mapping of resource to amount; each wrong amount is a problem of its own."""

    def check(value: object) -> Any:
        if not isinstance(value, Mapping):
            raise must_be("an object of names and numbers")
        return value

    def check_name(name: object) -> Any:
        if name not in known:
            raise refused(f"is not a resource{suggestion(str(name), known)}")
        return name

    names = core_schema.no_info_plain_validator_function(check_name)
    amount = Must("a number of zero or more").core(number_schema(ge=0, lt=MAX_VALUE))
    numbers = core_schema.no_info_before_validator_function(check, core_schema.dict_schema(names, amount))
    return Reads(_converted(numbers, read, write), {"type": "object"})


def _decimal(units: int) -> float:
    """Return the number in a document: 6 rather than 6.0."""
    whole, hundredths = divmod(units, UNIT)
    return units / UNIT if hundredths else whole


def _capacity_written(amounts: Units) -> dict[str, float]:
    return {name: _decimal(amount) for name, amount in zip(RESOURCE_NAMES, amounts, strict=True) if amount}


def quota_in_units(values: Mapping[str, float]) -> dict[str, int]:
    return {name: in_units(amount) if name != SESSIONS else int(amount) for name, amount in values.items()}


def _quota_written(quota: Mapping[str, int]) -> dict[str, float]:
    return {name: _decimal(amount) if name != SESSIONS else amount for name, amount in quota.items()}


def _list(item: core_schema.CoreSchema, be: str) -> Must:
    return Must(be, core_schema.tuple_variable_schema(item), {"type": "array"})


def _whole(low: int, high: int) -> Must:
    return validation.whole_number(low, high, f"a whole number from {low} to {high}")


_SHARE = _converted(number_schema(gt=0, le=1), in_units, _decimal)
_PAIR = core_schema.tuple_positional_schema([core_schema.int_schema(strict=True, ge=0), _SHARE])

Text = Annotated[str, text()]
TextOrNone = Annotated[str, text(empty=True)]
Flag = Annotated[bool, flag()]
Labels = Annotated[Mapping[str, str], texts_by_name()]
Time = Annotated[float, number(-1e12, 1e12)]
TimeOrNever = Annotated[Time, validation.NullIsDefault()]
Weight = Annotated[float, number(0, MAX_VALUE)]
Ports = Annotated[int, _whole(0, 65_536)]
Leases = Annotated[int, _whole(0, 1_000_000)]
Priority = Annotated[int, _whole(-1_000_000, 1_000_000)]
Capacity = Annotated[Units, _numbers(RESOURCE_NAMES, amounts_of, _capacity_written)]
Quota = Annotated[Mapping[str, int], _numbers(LIMITED, quota_in_units, _quota_written)]
Gpus = Annotated[tuple[int, ...], _list(_SHARE, "a list with a number above 0 and up to 1 for each GPU")]
HeldGpus = Annotated[Shares, _list(_PAIR, "a list of pairs: the index of a GPU and the share of it")]
