"""Functions that run in parallel, each in a transaction on its own connection."""

from __future__ import annotations

from contextvars import ContextVar
from threading import Barrier, current_thread, main_thread

import pytest
from django.db import connection, transaction

from lcm.db.parallel import WRITERS, run_in_parallel
from lcm.models import Domain

context_value: ContextVar[str] = ContextVar("context_value", default="")


def create_domain(name, now):
    return lambda: Domain.objects.create(name=name, created_at=now).name


@pytest.mark.django_db
def test_functions_join_an_open_transaction(now):
    with transaction.atomic():
        assert run_in_parallel([create_domain("a", now), create_domain("b", now)]) == (["a", "b"], [])
        transaction.set_rollback(True)
    assert not Domain.objects.filter(name__in=["a", "b"]).exists()


def test_no_functions_give_no_results():
    assert run_in_parallel([]) == ([], [])


@pytest.mark.django_db(transaction=True)
def test_results_are_in_the_order_of_the_functions(now):
    names = [f"domain-{number}" for number in range(5)]
    assert run_in_parallel([create_domain(name, now) for name in names]) == (names, [])
    assert Domain.objects.filter(name__in=names).count() == 5


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_functions_run_in_parallel_on_own_connections_with_the_callers_context():
    barrier = Barrier(WRITERS)
    context_value.set("tick")

    def run_with_the_others():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (backend,) = cursor.fetchone()
        barrier.wait(30)
        return backend, context_value.get(), current_thread() is main_thread()

    results, _ = run_in_parallel([run_with_the_others] * WRITERS)
    assert len({backend for backend, *_ in results}) == WRITERS
    assert all(rest == ["tick", False] for _, *rest in results)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.django_db(transaction=True)
def test_functions_run_in_the_main_thread_if_the_pool_has_no_free_connections(size, settings):
    settings.CONFIG["DATABASE_POOL_SIZE"] = size
    assert run_in_parallel([lambda: current_thread() is main_thread()] * 3) == ([True] * 3, [])


@pytest.mark.django_db(transaction=True)
def test_a_failing_function_does_not_affect_the_others(now):
    def fail():
        raise ValueError("no")

    results, errors = run_in_parallel([create_domain("before", now), fail, create_domain("after", now)])
    assert (results, [str(error) for error in errors]) == (["before", "after"], ["no"])
    assert set(Domain.objects.values_list("name", flat=True)) == {"before", "after"}
