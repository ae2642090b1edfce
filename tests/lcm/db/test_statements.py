"""Hand-written statements read and write the same rows as querysets."""

import threading
from decimal import Decimal
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction

from lcm.db.statements import (
    Columns,
    RawJson,
    Statement,
    column_values,
    insert_statement,
    lock_clause,
    run_statements,
    update_statement,
)
from lcm.models import ApiToken, ChangeLog, DefinitionRevision, Domain, IdempotentResponse, LabletSession
from lcm.models.people import User
from tests.support.factories import make_definition, make_person, make_project

pytestmark = pytest.mark.django_db

DOMAIN = Columns.of_object(Domain)


@pytest.fixture(params=["pooled", "one per request"])
def connections_are(request):
    """Run the test with statements prepared, as on connections of the pool, and without."""
    if connection.vendor != "postgresql":
        yield
        return
    connection.ensure_connection()
    driver, before = connection.connection, connection.connection.prepare_threshold
    driver.prepare_threshold = 0 if request.param == "pooled" else None
    yield
    driver.prepare_threshold = before


@pytest.fixture
def domains():
    return [Domain.objects.create(name=name) for name in ("eu", "us", "it's 100 % %s")]


def by_name(name):
    return Statement(f"SELECT {DOMAIN.sql} FROM lcm_domain WHERE name = %s", [name], DOMAIN.to_objects)


def read(statement):
    return run_statements(statement)[0]


def entry(**values):
    row = ChangeLog(actor="me", object_type="domain", object_id="1", object_label="eu", event="x", **values)
    return insert_statement(ChangeLog, column_values(row))


@pytest.mark.usefixtures("connections_are")
def test_a_statement_uses_the_values_of_each_run(domains):
    for domain in domains:
        assert read(by_name(domain.name)) == [domain]
    assert read(by_name("nowhere")) == []


@pytest.mark.usefixtures("connections_are")
@pytest.mark.parametrize("model", [DefinitionRevision, LabletSession, ApiToken, User, ChangeLog])
def test_objects_equal_those_of_a_queryset(model, session, controller):
    run_statements(entry(at=session.created_at, message="x", before={"a": [1.5, None]}, after=None))
    columns = Columns.of_object(model)
    rows = read(Statement(f"SELECT {columns.sql} FROM {model._meta.db_table}", [], columns.to_objects))
    assert rows
    assert {row.pk: stored(row) for row in rows} == {row.pk: stored(row) for row in model.objects.all()}


def stored(row):
    """Return the values of a row as text, which shows their types and decimal places too."""
    return {name: repr(value) for name, value in column_values(row).items()}


def test_columns_that_were_not_read_are_deferred():
    lab = make_definition("lab")
    columns = Columns.of_object(DefinitionRevision, ["memory_gb", "number"])
    sql = f"SELECT {columns.sql} FROM lcm_definitionrevision WHERE definition_id = %s"
    (revision,) = read(Statement(sql, [lab.pk], columns.to_objects))
    assert revision == lab.current_revision
    assert (revision.number, revision.memory_gb) == (1, lab.current_revision.memory_gb)
    assert "port_template" in revision.get_deferred_fields()
    assert revision.port_template == lab.current_revision.port_template


@pytest.mark.usefixtures("connections_are")
def test_rows_equal_those_of_a_queryset(now):
    lab = make_definition("lab")
    names = ["port_template", "id", "cpu_cores", "created_at", "created_by"]
    columns = Columns(DefinitionRevision, names)
    sql = f"SELECT {columns.sql} FROM lcm_definitionrevision WHERE definition_id = %s LIMIT %s"
    (row,) = read(Statement(sql, [lab.pk, 3], columns.to_rows))
    assert repr(row) == repr(list(lab.revisions.values_list(*names).get()))
    assert isinstance(row[2], Decimal)
    assert read(Statement(sql, [uuid4(), 3], columns.to_rows)) == []


@pytest.mark.usefixtures("connections_are")
def test_several_statements_run_in_order(domains):
    eu = domains[0]
    statements = (
        by_name("eu"),
        update_statement(Domain, eu.pk, {"name": "europe"}),
        by_name("eu"),
        by_name("europe"),
    )
    assert run_statements(*statements) == [[eu], None, [], [eu]]
    assert run_statements() == []


@pytest.mark.postgres
def test_frequent_statements_are_prepared_on_connections_of_the_pool(domains):
    count = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %s"
    driver, before = connection.connection, connection.connection.prepare_threshold
    driver.prepare_threshold = 2
    for _ in range(4):
        read(by_name("eu"))
    driver.prepare_threshold = before
    with connection.cursor() as cursor:
        cursor.execute(count, ["%lcm_domain%"])
        assert cursor.fetchone() == (1,)


@pytest.mark.parametrize("text", ["it's", "100 %", "%s", "$1", "a;b", '"', "\\", "ü"])
@pytest.mark.usefixtures("connections_are")
def test_text_is_stored_and_found_unchanged(text):
    row = Domain(name=text)
    run_statements(
        insert_statement(Domain, {"id": row.pk, **column_values(row), "updated_at": row.created_at})
    )
    assert [found.name for found in read(by_name(text))] == [text]


@pytest.mark.usefixtures("connections_are")
def test_a_row_is_stored_as_the_model_would_store_it(now):
    run_statements(entry(at=now, message="it's 1 % $1", before=None, after={"a": [1, None, "ü"]}))
    row = ChangeLog.objects.get(message="it's 1 % $1")
    assert (row.at, row.before, row.after, row.user_id) == (now, None, {"a": [1, None, "ü"]}, None)


@pytest.mark.usefixtures("connections_are")
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
    assert read(by_name("new")) == []
    assert read(by_name("eu")) == [domains[0]]


def test_a_broken_transaction_is_reported(domains):
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(transaction.TransactionManagementError):
            run_statements(by_name("eu"))
        transaction.set_rollback(False)


def test_a_lock_is_for_postgresql_only():
    assert lock_clause("FOR UPDATE") == ("FOR UPDATE" if connection.vendor == "postgresql" else "")


@pytest.mark.django_db(transaction=True)
def test_threads_share_columns_and_get_their_own_rows(domains):
    found = {}

    def read_often(name):
        found[name] = [row.name for _ in range(50) for row in read(by_name(name))]
        connection.close()

    threads = [threading.Thread(target=read_often, args=[domain.name]) for domain in domains]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {domain.name: [domain.name] * 50 for domain in domains}
