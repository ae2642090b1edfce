"""Concurrent changes by two administrators: one succeeds, the other is rejected. PostgreSQL only."""

from collections import Counter
from decimal import Decimal

import pytest

from lcm.domain.errors import InvalidInput, StateConflict
from lcm.models import ApiToken, DefinitionRevision, LabletDefinition, TokenKind
from lcm.services.definitions import import_definition, revise_definition
from lcm.services.tokens import create_token
from tests.support.factories import LAB

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]
ROUNDS = 5


@pytest.mark.parametrize("again", range(ROUNDS))
def test_one_of_two_concurrent_revisions_is_rejected(again, definition, as_admin, now, at_once):
    def revise(cores):
        copy = LabletDefinition.objects.get(pk=definition.pk)
        return lambda: revise_definition(
            definition=copy,
            requirements={"cpu_cores": Decimal(cores)},
            based_on=1,
            reason="labs were slow",
            actor=as_admin,
            now=now,
        )

    results = at_once(revise(6), revise(9))

    assert Counter(type(result) for result in results) == {DefinitionRevision: 1, StateConflict: 1}
    definition.refresh_from_db()
    assert definition.revisions.count() == 2
    assert definition.current_revision.number == 2


def test_one_of_two_concurrent_imports_with_the_same_name_is_rejected(as_admin, now, at_once):
    def save():
        return import_definition(topology=LAB, name="campus", actor=as_admin, now=now)

    results = at_once(save, save)

    assert Counter(type(result) for result in results) == {LabletDefinition: 1, InvalidInput: 1}
    assert DefinitionRevision.objects.count() == 1


def test_one_of_two_concurrent_tokens_with_the_same_name_is_rejected(as_admin, now, at_once):
    def make():
        ends = now.replace(year=now.year + 1)
        scopes = ["pool:cml-eu"]
        arguments = {"name": "twin", "kind": TokenKind.CONTROLLER, "scopes": scopes, "expires_at": ends}
        return create_token(**arguments, actor=as_admin, now=now)

    results = at_once(make, make)

    assert Counter(type(result) for result in results) == {tuple: 1, InvalidInput: 1}
    assert ApiToken.objects.filter(name="twin").count() == 1
