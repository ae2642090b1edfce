"""Independent pieces on connections of their own: all answers in order, no piece left out."""

from __future__ import annotations

from contextvars import ContextVar
from threading import Barrier, current_thread, main_thread

import pytest
from django.db import connection, transaction

from lcm.db.parallel import WRITERS, run_in_parallel
from lcm.models import Domain

word: ContextVar[str] = ContextVar("word", default="")


def make(name, now):
    return lambda: Domain.objects.create(name=name, created_at=now).name


@pytest.mark.django_db
def test_inside_a_transaction_all_is_part_of_it(now):
    with transaction.atomic():
        assert run_in_parallel([make("a", now), make("b", now)]) == (["a", "b"], [])
        transaction.set_rollback(True)
    assert not Domain.objects.filter(name__in=["a", "b"]).exists()


def test_nothing_to_do_is_fine():
    assert run_in_parallel([]) == ([], [])


@pytest.mark.django_db(transaction=True)
def test_answers_come_in_the_order_of_the_pieces(now):
    names = [f"domain-{number}" for number in range(5)]
    assert run_in_parallel([make(name, now) for name in names]) == (names, [])
    assert Domain.objects.filter(name__in=names).count() == 5


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_pieces_meet_on_connections_of_their_own_in_the_context_of_the_caller():
    together = Barrier(WRITERS)
    word.set("tick")

    def meet():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (backend,) = cursor.fetchone()
        together.wait(30)
        return backend, word.get(), current_thread() is main_thread()

    met, _ = run_in_parallel([meet] * WRITERS)
    assert len({backend for backend, *_ in met}) == WRITERS
    assert all(rest == ["tick", False] for _, *rest in met)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.django_db(transaction=True)
def test_a_pool_without_connections_to_spare_is_not_asked_for_more(size, settings):
    settings.CONFIG["DATABASE_POOL_SIZE"] = size
    assert run_in_parallel([lambda: current_thread() is main_thread()] * 3) == ([True] * 3, [])


@pytest.mark.django_db(transaction=True)
def test_each_fails_alone(now):
    def fail():
        raise ValueError("no")

    done, errors = run_in_parallel([make("before", now), fail, make("after", now)])
    assert (done, [str(error) for error in errors]) == (["before", "after"], ["no"])
    assert set(Domain.objects.values_list("name", flat=True)) == {"before", "after"}
