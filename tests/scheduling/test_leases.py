"""One at a time, by a row that ends by itself."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduling.leases import lease
from scheduling.models import Lease

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


def test_two_holders_only_one_has_it(clock):
    with (
        lease("tick", length=MINUTE, clock=clock) as first,
        lease("tick", length=MINUTE, clock=clock) as second,
    ):
        assert first is not None
        assert second is None
        assert first.renew()


def test_different_names_do_not_wait_for_one_another(clock):
    with (
        lease("one", length=MINUTE, clock=clock) as first,
        lease("two", length=MINUTE, clock=clock) as second,
    ):
        assert first is not None
        assert second is not None


def test_it_is_given_back_at_the_end_of_the_block_even_after_an_error(clock):
    with pytest.raises(ZeroDivisionError), lease("tick", length=MINUTE, clock=clock):
        raise ZeroDivisionError
    assert not Lease.objects.exists()


@pytest.mark.parametrize(("seconds", "taken"), [(59, False), (60, True), (600, True)])
def test_whoever_dies_loses_it_when_its_time_is_over(clock, seconds, taken):
    Lease.objects.create(name="tick", holder="dead", expires_at=clock() + MINUTE)
    clock.advance(seconds=seconds)
    with lease("tick", length=MINUTE, clock=clock) as hold:
        assert (hold is not None) == taken


def test_renewing_keeps_it_for_another_while(clock):
    with lease("tick", length=MINUTE, clock=clock) as first:
        clock.advance(seconds=50)
        assert first.renew()
        clock.advance(seconds=50)
        with lease("tick", length=MINUTE, clock=clock) as second:
            assert second is None


def test_renewing_after_it_was_taken_over_fails_and_leaves_the_new_holder_alone(clock):
    with lease("tick", length=MINUTE, clock=clock) as first:
        clock.advance(seconds=61)
        with lease("tick", length=MINUTE, clock=clock) as second:
            assert not first.renew()
            assert second.renew()
            first.release()
            assert Lease.objects.get().holder == second.holder


def test_renewing_late_is_fine_while_nobody_took_it(clock):
    with lease("tick", length=MINUTE, clock=clock) as hold:
        clock.advance(minutes=5)
        assert hold.renew()


@pytest.mark.parametrize(("seconds", "queries"), [(0, 0), (29, 0), (30, 1), (59, 1), (120, 1)])
def test_what_is_fresh_needs_no_renewal(clock, django_assert_num_queries, seconds, queries):
    with lease("tick", length=MINUTE, clock=clock) as hold:
        clock.advance(seconds=seconds)
        with django_assert_num_queries(queries):
            assert hold.still_mine()
        with django_assert_num_queries(0):
            assert hold.still_mine()


def test_what_was_lost_is_noticed(clock):
    with lease("tick", length=MINUTE, clock=clock) as first:
        clock.advance(seconds=61)
        with lease("tick", length=MINUTE, clock=clock):
            assert not first.still_mine()
