"""Prepared statements read and write the same rows as querysets."""

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


@pytest.fixture(params=["pooled", "one per request"])
def connections_are(request, monkeypatch):
    """Run the test with pooled connections, where statements are prepared, and without."""
    monkeypatch.setattr("lcm.db.prepared_statements._is_pooled", lambda _: request.param == "pooled")


@pytest.fixture
def domains():
    return [Domain.objects.create(name=name) for name in ("eu", "us", "it's 100 % %s")]


def entry(**values):
    row = ChangeLog(actor="me", object_type="domain", object_id="1", object_label="eu", event="x", **values)
    return insert_statement(ChangeLog, column_values(row))


@pytest.mark.usefixtures("connections_are")
def test_a_prepared_query_uses_the_values_of_each_run(domains):
    for domain in domains:
        assert BY_NAME.fetch(name=domain.name) == [domain]
    assert BY_NAME.fetch(name="nowhere") == []


@pytest.mark.usefixtures("connections_are")
def test_select_related_objects_need_no_further_query(django_assert_num_queries):
    lab = make_definition("lab")
    with django_assert_num_queries(1):
        (revision,) = REVISIONS.fetch(definition=lab.pk)
        assert (revision.number, revision.definition.name) == (1, "lab")
    assert revision == lab.current_revision


@pytest.mark.usefixtures("connections_are")
def test_tuples_equal_those_of_the_queryset(now):
    lab = make_definition("lab")
    rows = lab.revisions.values_list("pk", "cpu_cores", "created_at", "port_template")
    assert AMOUNTS.fetch(definition=lab.pk, at=rows[0][2]) == list(rows)
    assert AMOUNTS.fetch(definition=uuid4(), at=now) == []


@pytest.mark.usefixtures("connections_are")
def test_several_statements_run_in_order_in_one_round_trip(domains, django_assert_num_queries):
    eu = domains[0]
    statements = (
        BY_NAME.bind(name="eu"),
        update_statement(Domain, eu.pk, {"name": "europe"}),
        BY_NAME.bind(name="eu"),
        BY_NAME.bind(name="europe"),
    )
    with django_assert_num_queries(1 if connection.vendor == "postgresql" else 4):
        assert run_statements(*statements) == [[eu], [], [], [eu]]
    assert run_statements() == []


@pytest.mark.parametrize("text", ["it's", "100 %", "%s", "$1", "a;b", '"', "\\", "ü"])
@pytest.mark.usefixtures("connections_are")
def test_a_constant_is_escaped_in_the_sql(text):
    Domain.objects.create(name=text)
    query = PreparedQuery(lambda: Domain.objects.filter(name=text, pk=Parameter("pk", models.UUIDField())))
    assert [row.name for row in query.fetch(pk=Domain.objects.get().pk)] == [text]


def test_a_value_that_cannot_be_a_constant_is_rejected():
    query = PreparedQuery(lambda: Domain.objects.annotate(half=models.Value(0.5)))
    with pytest.raises(TypeError, match="use a Parameter"):
        query.fetch()


@pytest.mark.usefixtures("connections_are")
def test_a_row_is_stored_as_the_model_would_store_it(now):
    run_statements(entry(at=now, message="it's 1 % $1", before=None, after={"a": [1, None, "ü"]}))
    row = ChangeLog.objects.get(message="it's 1 % $1")
    assert (row.at, row.before, row.after, row.user_id) == (now, None, {"a": [1, None, "ü"]}, None)


def test_all_columns_of_a_row_can_be_updated():
    project = make_project("academy", "eu", make_person("sam"))
    project.name = "school"
    run_statements(
        update_statement(type(project), project.pk, column_values(project, without=("updated_at",)))
    )
    project.refresh_from_db()
    assert project.name == "school"


@pytest.mark.usefixtures("connections_are")
def test_raw_json_is_stored_unchanged():
    row = IdempotentResponse(principal="me", key="1", fingerprint="")
    text = RawJson('{"a": [1.50, "it\'s %s"]}')
    run_statements(insert_statement(IdempotentResponse, {"id": row.pk, **column_values(row), "body": text}))
    assert IdempotentResponse.objects.get(key="1").body == {"a": [1.5, "it's %s"]}


@pytest.mark.usefixtures("connections_are")
def test_an_error_rolls_back_the_transaction_and_the_next_one_works(domains):
    with pytest.raises(IntegrityError), transaction.atomic():
        run_statements(
            update_statement(Domain, domains[0].pk, {"name": "new"}),
            update_statement(Domain, domains[1].pk, {"name": "new"}),
        )
    assert BY_NAME.fetch(name="new") == []
    assert BY_NAME.fetch(name="eu") == [domains[0]]


@pytest.mark.django_db(transaction=True)
def test_threads_share_a_query_and_get_their_own_rows(domains):
    found = {}

    def read_often(name):
        found[name] = [row.name for _ in range(50) for row in BY_NAME.fetch(name=name)]
        connection.close()

    threads = [threading.Thread(target=read_often, args=[domain.name]) for domain in domains]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {domain.name: [domain.name] * 50 for domain in domains}
