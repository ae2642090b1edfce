"""Capacity counts only the workers that the scheduler would use."""

from decimal import Decimal

import pytest

from lcm.models import Placement
from observations.selectors.fleet_capacity import packing_of
from observations.services.assessments import required_by
from observations.services.requirement_preview import RequirementChoice, preview_change
from scheduling.models import Pool, Slot, SlotState
from scheduling.selectors.pools import pools_of
from tests.support.factories import make_definition, make_session
from tests.support.observed_labs import on_slot

NO_SPOT_OR_LABELS = "actions: [allocate]\nplugins: [cordon, leases, ports, resources]\n"


@pytest.fixture
def pool(active_definition):
    return Pool.objects.get(name="cml-eu")


@pytest.fixture
def workers(pool):
    def make(count, **fields):
        made = {"state": SlotState.READY, "max_leases": 10, "cpu_cores": 8, "memory_gb": 64, **fields}
        first = Slot.objects.count() + 1
        for number in range(first, first + count):
            Slot.objects.create(pool=pool, number=number, storage_gb=500, **made)

    return make


def fits(definition):
    """Return the sessions that fit on empty workers and on current free capacity."""
    required = required_by(definition.current_revision)
    empty, _, free, _ = packing_of(definition, pools_of(definition), before=required, after=required)
    return (empty.workers, empty.sessions), (free.workers, free.sessions)


def test_workers_without_the_labels_do_not_count(workers):
    workers(1, labels={"zone": "x", "rack": "a"})
    workers(3, labels={"zone": "y"})
    workers(2)
    picky = make_definition("picky", pool="cml-eu", slot_labels={"zone": "x"})
    assert fits(picky) == ((1, 2), (1, 2))
    assert fits(make_definition("any", pool="cml-eu"))[0] == (6, 12)


def test_spot_workers_count_for_preemptible_definitions_only(workers):
    workers(2, is_spot=True)
    workers(1)
    assert fits(make_definition("steady", pool="cml-eu"))[0] == (1, 2)
    assert fits(make_definition("brief", pool="cml-eu", preemptible=True))[0] == (3, 6)


def test_without_label_and_spot_plugins_all_workers_count(workers, pool):
    workers(2, is_spot=True, labels={"zone": "y"})
    Pool.objects.update(scheduler=NO_SPOT_OR_LABELS)
    assert fits(make_definition("picky", pool="cml-eu", slot_labels={"zone": "x"}))[0] == (2, 4)


def test_a_spread_lab_is_placed_by_its_kernels(workers, project, operator, now):
    """Of its 4 cores r1 has 2, the others 1 each: no single worker holds the lab, two do."""
    workers(2, cpu_cores=3)
    spread = make_definition("spread", pool="cml-eu", placement=Placement.SPREAD)
    assert fits(spread) == ((2, 1), (2, 1))
    assert fits(make_definition("whole", pool="cml-eu"))[0] == (2, 0)
    made = preview_change(
        definition=spread, choices={"cpu_cores": RequirementChoice("custom", Decimal(3))}, now=now
    )
    assert (made.empty_before.sessions, made.empty_after.sessions) == (1, 2)
    assert made.empty_after.is_bound
    on_slot(make_session(make_definition("other", pool="cml-eu"), project, operator, now=now), number=1)
    assert fits(spread)[1] == (2, 0)


def test_no_session_is_spread_over_two_pools(workers, pool):
    workers(1, cpu_cores=3)
    other = Pool.objects.create(name="cml-other", system=pool.system, cpu_cores=3, memory_gb=64, storage_gb=9)
    slots = {"state": SlotState.READY, "max_leases": 9, "cpu_cores": 3, "memory_gb": 64, "storage_gb": 500}
    Slot.objects.create(pool=other, number=1, **slots)
    assert fits(make_definition("spread", placement=Placement.SPREAD))[0] == (2, 0)
    Slot.objects.create(pool=other, number=2, **slots)
    assert fits(make_definition("spread", version="2", placement=Placement.SPREAD))[0] == (3, 1)


def test_page_and_api_mark_an_upper_bound(workers, client, api, viewer):
    workers(2, cpu_cores=3)
    spread = make_definition("spread", pool="cml-eu", placement=Placement.SPREAD)
    client.force_login(viewer)
    text = client.get(f"/definitions/{spread.pk}/review").content.decode()
    assert "at most 1 <small>on 2 empty workers, limited by CPU" in text
    assert "Upper bound, because its nodes may run on several workers." in text
    preview = api(viewer).post(f"/api/lablet-definitions/{spread.pk}/preview", {"choices": {}}).json()
    assert (preview["empty_workers"]["at_most"], preview["empty_workers"]["before"]) == (True, 1)


def test_the_preview_warns_if_no_slot_could_hold_the_new_requirement(active_definition, pool, now):
    Pool.objects.update(cpu_cores=16)

    def warning(cores):
        choices = {"cpu_cores": RequirementChoice(basis="custom", custom=Decimal(cores))}
        return preview_change(definition=active_definition, choices=choices, now=now).warning

    assert warning(900) == "No slot of cml-eu has 900 cores; the largest has 16."
    assert warning(16) == ""
