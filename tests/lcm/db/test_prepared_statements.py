"""Statements that are put together once: they find and write what a queryset would."""

import threading
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, models, transaction

from lcm.db.prepared_statements import (
    Parameter,
    PreparedQuery,
    RawJson,
    column_values,
    insert_statement,
    run_statements,
    update_statement,
)
from lcm.models import ChangeLog, DefinitionRevision, Domain, IdempotentResponse
from tests.support.factories import make_definition, make_person, make_project

pytestmark = pytest.mark.django_db

BY_NAME = PreparedQuery(lambda: Domain.objects.filter(name=Parameter("name", models.CharField())).order_by())
REVISIONS = PreparedQuery(
    lambda: (
        DefinitionRevision.objects.select_related("definition")
        .filter(definition=Parameter("definition", models.UUIDField()), basis="imported")
        .order_by("number")
    )
)
AMOUNTS = PreparedQuery(
    lambda: DefinitionRevision.objects.filter(
        definition=Parameter("definition", models.UUIDField()),
        created_at__lte=Parameter("at", models.DateTimeField()),
    ).values_list("pk", "cpu_cores", "created_at", "port_template")[:3]
)


@pytest.fixture(params=["kept", "one for each request"])
def connections_are(request, monkeypatch):
    """PostgreSQL is told a statement once on a connection that is kept, and each time on another."""
    monkeypatch.setattr("lcm.db.prepared_statements._is_pooled", lambda _: request.param == "kept")


@pytest.fixture
def domains():
    return [Domain.objects.create(name=name) for name in ("eu", "us", "it's 100 % %s")]


def entry(**values):
    made = ChangeLog(actor="me", object_type="domain", object_id="1", object_label="eu", event="x", **values)
    return insert_statement(ChangeLog, column_values(made))


@pytest.mark.usefixtures("connections_are")
def test_it_finds_what_is_given_each_time(domains):
    for domain in domains:
        assert BY_NAME.read(name=domain.name) == [domain]
    assert BY_NAME.read(name="nowhere") == []


@pytest.mark.usefixtures("connections_are")
def test_objects_come_with_what_was_selected_with_them(django_assert_num_queries):
    lab = make_definition("lab")
    with django_assert_num_queries(1):
        (revision,) = REVISIONS.read(definition=lab.pk)
        assert (revision.number, revision.definition.name) == (1, "lab")
    assert revision == lab.current_revision


@pytest.mark.usefixtures("connections_are")
def test_tuples_are_those_of_the_queryset(now):
    lab = make_definition("lab")
    rows = lab.revisions.values_list("pk", "cpu_cores", "created_at", "port_template")
    assert AMOUNTS.read(definition=lab.pk, at=rows[0][2]) == list(rows)
    assert AMOUNTS.read(definition=uuid4(), at=now) == []


@pytest.mark.usefixtures("connections_are")
def test_several_go_together_and_each_sees_what_was_done_before(domains, django_assert_num_queries):
    eu = domains[0]
    together = (
        BY_NAME.of(name="eu"),
        update_statement(Domain, eu.pk, {"name": "europe"}),
        BY_NAME.of(name="eu"),
        BY_NAME.of(name="europe"),
    )
    with django_assert_num_queries(1 if connection.vendor == "postgresql" else 4):
        assert run_statements(*together) == [[eu], [], [], [eu]]
    assert run_statements() == []


@pytest.mark.parametrize("text", ["it's", "100 %", "%s", "$1", "a;b", '"', "\\", "ü"])
@pytest.mark.usefixtures("connections_are")
def test_a_constant_is_written_into_the_text(text):
    Domain.objects.create(name=text)
    with_it = PreparedQuery(lambda: Domain.objects.filter(name=text, pk=Parameter("pk", models.UUIDField())))
    assert [row.name for row in with_it.read(pk=Domain.objects.get().pk)] == [text]


def test_what_cannot_be_written_into_the_text_has_to_be_given():
    wrong = PreparedQuery(lambda: Domain.objects.annotate(half=models.Value(0.5)))
    with pytest.raises(TypeError, match="use a Parameter"):
        wrong.read()


@pytest.mark.usefixtures("connections_are")
def test_a_row_is_written_as_the_model_would(now):
    run_statements(entry(at=now, message="it's 1 % $1", before=None, after={"a": [1, None, "ü"]}))
    row = ChangeLog.objects.get(message="it's 1 % $1")
    assert (row.at, row.before, row.after, row.user_id) == (now, None, {"a": [1, None, "ü"]}, None)


def test_all_columns_of_a_row_can_be_written_back():
    project = make_project("academy", "eu", make_person("sam"))
    project.name = "school"
    run_statements(
        update_statement(type(project), project.pk, column_values(project, without=("updated_at",)))
    )
    project.refresh_from_db()
    assert project.name == "school"


@pytest.mark.usefixtures("connections_are")
def test_json_that_is_text_is_stored_as_it_is():
    row = IdempotentResponse(principal="me", key="1", fingerprint="")
    text = RawJson('{"a": [1.50, "it\'s %s"]}')
    run_statements(insert_statement(IdempotentResponse, {"id": row.pk, **column_values(row), "body": text}))
    assert IdempotentResponse.objects.get(key="1").body == {"a": [1.5, "it's %s"]}


@pytest.mark.usefixtures("connections_are")
def test_an_error_undoes_all_of_a_transaction_and_the_next_one_works(domains):
    with pytest.raises(IntegrityError), transaction.atomic():
        run_statements(
            update_statement(Domain, domains[0].pk, {"name": "new"}),
            update_statement(Domain, domains[1].pk, {"name": "new"}),
        )
    assert BY_NAME.read(name="new") == []
    assert BY_NAME.read(name="eu") == [domains[0]]


@pytest.mark.django_db(transaction=True)
def test_threads_share_it_and_find_their_own(domains):
    found = {}

    def look(name):
        found[name] = [row.name for _ in range(50) for row in BY_NAME.read(name=name)]
        connection.close()

    threads = [threading.Thread(target=look, args=[domain.name]) for domain in domains]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {domain.name: [domain.name] * 50 for domain in domains}
