"""Two administrators at once: one wins and the other is told. On PostgreSQL only."""

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
def test_of_two_revisions_at_once_one_is_applied_and_one_is_refused(
    again, definition, as_admin, now, at_once
):
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


def test_of_two_imports_of_one_name_at_once_one_is_saved_and_one_is_refused(as_admin, now, at_once):
    def save():
        return import_definition(topology=LAB, name="campus", actor=as_admin, now=now)

    results = at_once(save, save)

    assert Counter(type(result) for result in results) == {LabletDefinition: 1, InvalidInput: 1}
    assert DefinitionRevision.objects.count() == 1


def test_of_two_tokens_of_one_name_at_once_one_is_made_and_one_is_refused(as_admin, now, at_once):
    def make():
        ends = now.replace(year=now.year + 1)
        scopes = ["pool:cml-eu"]
        asked = {"name": "twin", "kind": TokenKind.CONTROLLER, "scopes": scopes, "expires_at": ends}
        return create_token(**asked, actor=as_admin, now=now)

    results = at_once(make, make)

    assert Counter(type(result) for result in results) == {tuple: 1, InvalidInput: 1}
    assert ApiToken.objects.filter(name="twin").count() == 1
