"""Pools: validation, and the state that a change of settings resets."""

from __future__ import annotations

import pytest

from lcm.domain.errors import InvalidInput
from lcm.models import ChangeLog
from scheduling.models import Pool
from scheduling.services.pools import create_pool, update_pool

WRONG = [
    ({"min_slots": 5}, "__all__"),
    ({"warm_slots": 5}, "__all__"),
    ({"max_slots": 0}, "max_slots"),
    ({"min_slots": -1}, "min_slots"),
    ({"max_leases": 0}, "max_leases"),
    ({"first_port": 80}, "__all__"),
    ({"first_port": 9000}, "__all__"),
    ({"last_port": 70_000}, "__all__"),
    ({"cpu_cores": 0}, "__all__"),
    ({"idle_seconds": 0}, "idle_seconds"),
    ({"spot_policy": "sometimes"}, "spot_policy"),
    ({"runtime_settings": {"launch_secnods": 3}}, "runtime_settings.launch_secnods"),
    ({"runtime_settings": {"launch_seconds": -3}}, "runtime_settings.launch_seconds"),
    ({"colour": "blue"}, "colour"),
]


@pytest.mark.parametrize(("wrong", "field"), WRONG)
def test_an_invalid_pool_is_rejected_with_its_field_and_not_stored(db, as_admin, wrong, field):
    with pytest.raises(InvalidInput) as error:
        create_pool(name="new", actor=as_admin, **wrong)
    assert field in error.value.fields
    assert not Pool.objects.exists()
    assert not ChangeLog.objects.filter(event="pool.created").exists()


@pytest.mark.parametrize(("wrong", "field"), WRONG)
def test_an_invalid_change_is_rejected_with_its_field_and_not_stored(pool, as_admin, wrong, field):
    before = Pool.objects.filter(pk=pool.pk).values().get()
    with pytest.raises(InvalidInput) as error:
        update_pool(pool=pool, actor=as_admin, **wrong)
    assert field in error.value.fields
    assert Pool.objects.filter(pk=pool.pk).values().get() == before
    assert not ChangeLog.objects.filter(event="pool.edited").exists()


@pytest.mark.parametrize("name", ["cml-eu", "", "Not a name", "x" * 64])
def test_a_duplicate_or_invalid_name_is_rejected(pool, as_admin, name):
    with pytest.raises(InvalidInput) as error:
        create_pool(name=name, actor=as_admin)
    assert "name" in error.value.fields
    assert Pool.objects.count() == 1


def test_an_unknown_runtime_is_rejected_with_a_list_of_known_runtimes(db, as_admin):
    with pytest.raises(InvalidInput, match="simulated") as error:
        create_pool(name="new", runtime="magic", actor=as_admin)
    assert "runtime" in error.value.fields
    assert not Pool.objects.exists()


EC2 = {"region": "eu-central-1", "launch_template": "cml", "offerings": [{"instance_type": "m5.large"}]}


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:8000",
        "http://127.8.9.1",
        "http://[::1]:8000",
        "http://[::ffff:127.0.0.1]",
        "http://0.0.0.0:8000",
        "http://[::]",
        "http://[::ffff:0.0.0.0]",
        "http://[::1",
        "https://LOCALHOST/lcm",
        "http://lcm.localhost.",
        "lcm.example.org",
        "",
    ],
)
def test_a_pool_whose_workers_could_not_reach_lcm_is_rejected(db, as_admin, settings, address):
    settings.CONFIG["PUBLIC_URL"] = address
    arguments = {"name": "new", "runtime": "ec2", "runtime_settings": EC2, "actor": as_admin}
    with pytest.raises(InvalidInput) as error:
        create_pool(**arguments)
    (text,) = error.value.fields["runtime"]
    assert f"PUBLIC_URL is “{address}”." in text
    assert not Pool.objects.exists()
    pool = create_pool(**arguments, enabled=False)
    with pytest.raises(InvalidInput, match="PUBLIC_URL"):
        update_pool(pool=pool, enabled=True, actor=as_admin)
    settings.CONFIG["PUBLIC_URL"] = "https://10.1.2.3"
    assert update_pool(pool=pool, enabled=True, actor=as_admin).enabled


@pytest.mark.parametrize("fixed", ["name", "system", "runtime"])
def test_the_identity_of_a_pool_cannot_be_changed(pool, as_admin, fixed):
    with pytest.raises((InvalidInput, TypeError)):
        update_pool(pool=pool, actor=as_admin, **{fixed: "other"})


def test_a_change_is_logged_with_before_and_after(pool, as_admin):
    update_pool(pool=pool, actor=as_admin, max_slots=9, min_slots=0, reason="new course")
    entry = ChangeLog.objects.get(event="pool.edited")
    assert (entry.before, entry.after, entry.reason) == ({"max_slots": 4}, {"max_slots": 9}, "new course")


def test_correcting_a_pool_resets_its_stop_its_back_off_and_its_refusals(configure_pool, as_admin):
    fleet = configure_pool(
        stopped_reason="wrong image",
        stopped_at="2026-12-31T00:00:00Z",
        backoff_until="2027-01-01T00:00:00Z",
        backoff_since="2026-12-31T00:00:00Z",
        failures=3,
        refused_offerings={"large": "2027-01-01T00:00:00+00:00"},
        failed_workers={"cml-1": "2027-01-01T00:00:00+00:00"},
    )
    corrected = {"runtime_settings": {"launch_seconds": 1}}
    update_pool(pool=fleet.pool, actor=as_admin, reason="the right image", **corrected)
    pool = fleet.reload_pool()
    assert (pool.stopped_reason, pool.backoff_until, pool.failures) == ("", None, 0)
    assert (pool.stopped_at, pool.backoff_since, pool.refused_offerings) == (None, None, {})
    assert pool.failed_workers == {}


def test_saving_a_stopped_pool_without_changes_starts_it_again(configure_pool, as_admin):
    """The cause may have been fixed outside LCM."""
    fleet = configure_pool(stopped_reason="wrong image")
    update_pool(pool=fleet.pool, actor=as_admin, max_slots=4)
    assert fleet.reload_pool().stopped_reason == ""


def test_saving_unchanged_values_logs_nothing(configure_pool, as_admin):
    fleet = configure_pool()
    update_pool(pool=fleet.pool, actor=as_admin, max_slots=4)
    assert not ChangeLog.objects.filter(event="pool.edited").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"enabled": False},
        {"max_slots": 3},
        {"runtime_settings": {"launch_seconds": 1}},
        {"scheduler": "actions: [allocate]\nplugins: [resources]\n"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_high_impact_changes_require_a_reason(configure_pool, as_admin, change):
    fleet = configure_pool()
    with pytest.raises(InvalidInput) as error:
        update_pool(pool=fleet.reload_pool(), actor=as_admin, description="Changed", **change)
    assert list(error.value.fields) == ["reason"]
    assert fleet.reload_pool().description != "Changed"
    update_pool(pool=fleet.reload_pool(), actor=as_admin, reason="exams", **change)
    assert ChangeLog.objects.get(event="pool.edited").reason == "exams"


@pytest.mark.parametrize("change", [{"max_slots": 9}, {"description": "Courses"}, {"idle_seconds": 60}])
def test_other_changes_of_a_pool_require_no_reason(configure_pool, as_admin, change):
    update_pool(pool=configure_pool().reload_pool(), actor=as_admin, **change)
    assert ChangeLog.objects.get(event="pool.edited").reason == ""


def test_the_floor_is_the_larger_of_minimum_and_warm():
    assert Pool(min_slots=2, warm_slots=3).floor == Pool(min_slots=3, warm_slots=0).floor == 3


def workers(*names):
    return {"workers": [{"name": name, "endpoint": f"https://{name}.example.org"} for name in names]}


def test_a_pool_of_listed_workers_has_no_more_slots_than_workers(db, as_admin):
    arguments = {"name": "lab", "runtime": "static", "actor": as_admin}
    with pytest.raises(InvalidInput, match=r"list 2 workers, .* at most 2") as error:
        create_pool(**arguments, runtime_settings=workers("a", "b"), max_slots=3)
    assert "max_slots" in error.value.fields
    pool = create_pool(**arguments, runtime_settings=workers("a", "b"), max_slots=2)
    with pytest.raises(InvalidInput, match="list 1 worker,"):
        update_pool(pool=pool, actor=as_admin, runtime_settings=workers("a"))
    fewer = {"runtime_settings": workers("a"), "max_slots": 1}
    update_pool(pool=pool, actor=as_admin, reason="b is sold", **fewer)
    assert Pool.objects.get().max_slots == 1


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"offerings": [{"name": "a\x00b"}]}, "runtime_settings.offerings[0].name"),
        ({"refuse_offerings": ["\ud800"]}, "runtime_settings.refuse_offerings[0]"),
        ({"a\x00": 1}, "runtime_settings"),
    ],
)
def test_text_that_cannot_be_stored_is_rejected_with_its_path(pool, as_admin, wrong, path):
    for save in (
        lambda: create_pool(name="new", actor=as_admin, runtime_settings=wrong),
        lambda: update_pool(pool=pool, actor=as_admin, runtime_settings=wrong),
        lambda: update_pool(pool=pool, actor=as_admin, description="\x00"),
    ):
        with pytest.raises(InvalidInput, match="cannot be stored") as error:
            save()
        assert set(error.value.fields) <= {path, "description"}
    assert Pool.objects.get().description == ""


def test_an_edit_is_validated_against_the_stored_pool(pool, as_admin):
    """Each is valid for its own copy; the second is validated against the result of the first."""
    stale = Pool.objects.get(pk=pool.pk)
    update_pool(pool=pool, actor=as_admin, min_slots=4)
    with pytest.raises(InvalidInput, match="The minimum cannot exceed the maximum"):
        update_pool(pool=stale, actor=as_admin, max_slots=2)
    assert Pool.objects.values_list("min_slots", "max_slots").get() == (4, 4)


EQUIVALENT_ADDRESSES = [
    "https://a.example.org",
    "https://A.example.org/",
    "https://a.example.org:443",
    "https://a.example.org.",
]
OTHER_ADDRESSES = [
    "https://b.example.org",
    "https://a.example.org:8443",
    "https://a.example.org/two",
    "http://a.example.org",
]


def workers_at(*addresses):
    return {"workers": [{"name": f"w{number}", "endpoint": each} for number, each in enumerate(addresses, 1)]}


@pytest.mark.parametrize("address", EQUIVALENT_ADDRESSES)
def test_equivalent_addresses_count_as_one_worker(db, as_admin, address):
    arguments = {"name": "lab", "runtime": "static", "max_slots": 1, "actor": as_admin}
    with pytest.raises(InvalidInput, match="w1 and w2 have the same address") as error:
        create_pool(**arguments, runtime_settings=workers_at(EQUIVALENT_ADDRESSES[0], address))
    assert list(error.value.fields) == ["runtime_settings.workers"]
    assert not Pool.objects.exists()


@pytest.mark.parametrize("address", EQUIVALENT_ADDRESSES)
def test_a_worker_belongs_to_one_pool_only(db, as_admin, address):
    arguments = {"runtime": "static", "max_slots": 1, "actor": as_admin}
    create_pool(
        name="lab", **arguments, runtime_settings=workers_at(OTHER_ADDRESSES[0], EQUIVALENT_ADDRESSES[0])
    )
    with pytest.raises(InvalidInput, match="w1 and w2 of the pool lab have the same address"):
        create_pool(name="other", **arguments, runtime_settings=workers_at(address))
    other = create_pool(name="other", **arguments, runtime_settings=workers_at("https://c.example.org"))
    with pytest.raises(InvalidInput, match="w1 and w2 of the pool lab have the same address"):
        update_pool(pool=other, actor=as_admin, runtime_settings=workers_at(address))
    other.refresh_from_db()
    assert other.runtime_settings == workers_at("https://c.example.org")


@pytest.mark.parametrize("address", OTHER_ADDRESSES)
def test_workers_at_other_addresses_are_different_workers(db, as_admin, address):
    arguments = {"runtime": "static", "max_slots": 1, "actor": as_admin}
    create_pool(name="lab", **arguments, runtime_settings=workers_at(EQUIVALENT_ADDRESSES[0]))
    create_pool(name="other", **arguments, runtime_settings=workers_at(address))


def test_pools_that_already_share_a_worker_can_still_be_disabled(db, as_admin):
    fields = {"runtime": "static", "runtime_settings": workers_at(EQUIVALENT_ADDRESSES[0]), "max_slots": 1}
    first = Pool.objects.create(name="lab", **fields)
    Pool.objects.create(name="other", **fields)
    update_pool(pool=first, actor=as_admin, enabled=False, reason="they share a worker")
    assert not Pool.objects.get(name="lab").enabled
