"""Value types, and the words of their errors."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import pytest
from pydantic import ConfigDict, TypeAdapter, ValidationError

from lcm.domain.validation import (
    Must,
    at_most,
    decimal,
    must_be,
    predicates,
    read_by,
    refused,
    sentence,
    sentences,
    text,
    texts,
    whole_number,
)

_NAME = text("a name", low=1, high=3)


def _even(value):
    if value == "odd":
        raise must_be("even")
    if value == "long":
        raise refused("has 4 characters.")
    raise sentence("Nothing else is even.")


@dataclass(frozen=True)
class Row:
    """A model with a field of each kind."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    name: Annotated[str, _NAME]
    count: Annotated[int, whole_number(0, 2_000)] = 0
    share: Annotated[object, decimal(1, "a share")] = 0
    even: Annotated[str, read_by(_even, {})] = ""
    tags: Annotated[tuple[str, ...], texts("a list of names", _NAME, 2)] = ()
    ports: Annotated[dict[Annotated[str, _NAME], int], at_most(1, dict, "one port")] = field(
        default_factory=dict
    )
    kind: Annotated[str, Must("text")] = ""
    plain: bool = False


def problems(values):
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(Row).validate_python(values)
    return caught.value


@pytest.mark.parametrize(
    ("values", "predicate", "sentence_"),
    [
        ({"name": ""}, 'must be a name, not "".', '“name” must be a name, but is "".'),
        ({"name": "a\x00"}, "must be a name", "“name” must be a name"),
        ({}, "is missing.", "“name” is required."),
        ({"name": None}, "is missing.", "“name” must be a name, but is null."),
        ({"count": 2001}, "a whole number from 0 to 2,000, not 2001.", "but is 2001."),
        ({"count": True}, "a whole number from 0 to 2,000, not true.", "but is true."),
        ({"share": "0." + "1" * 500}, "must be a share.", "“share” must be a share"),
        ({"even": "odd"}, 'must be even, not "odd".', '“even” must be even, but is "odd".'),
        ({"even": "long"}, "has 4 characters.", "“even” has 4 characters."),
        ({"even": "x"}, "Nothing else is even.", "Nothing else is even."),
        (
            {"tags": ["a", 1]},
            "must be a list of names.",
            '“tags” must be a list of names, but is ["a", 1].',
        ),
        ({"ports": {"a": 1, "b": 2}}, "must be one port.", "“ports” must be one port"),
        ({"ports": {"a": "x"}}, 'must be a number, not "x".', '“ports.a” must be a number, but is "x".'),
        ({"ports": {"long": 1}}, "must have a name.", "“ports.long” must be a name"),
        ({"plain": "x"}, 'must be true or false, not "x".', "“plain” must be true or false"),
        ({"nmae": 1}, "is not a field of a row.", "There is no setting “nmae”; did you mean “name”?"),
    ],
)
def test_a_problem_is_a_predicate_or_a_sentence(values, predicate, sentence_):
    error = problems({} if not values else {"name": "ok", **values})
    assert predicate in "".join(predicates(error, "a row").values())
    assert sentence_ in "".join(sentences(error, lambda _: ["name"]).values())


def test_all_problems_are_reported_with_their_paths():
    error = problems({"name": "", "count": -1, "ports": {"a": "x"}, "more": 1})
    assert list(predicates(error, "a row")) == ["name", "count", "ports.a", "more"]


@pytest.mark.parametrize(("given", "read"), [(7, 7), (7.0, 7), (0, 0)])
def test_a_whole_number_may_be_an_exact_float(given, read):
    found = TypeAdapter(Row).validate_python({"name": "a", "count": given}).count
    assert (found, type(found)) == (read, int)


def test_an_integer_beyond_the_limit_does_not_become_a_float_within_it():
    kind = TypeAdapter(Annotated[int, whole_number()])
    assert kind.validate_python(2**53) == 2**53
    with pytest.raises(ValidationError):
        kind.validate_python(2**53 + 1)
