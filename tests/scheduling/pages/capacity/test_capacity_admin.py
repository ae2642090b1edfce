"""Django admin of scheduling: states change by the services' actions, pools by the service."""

import pytest

from lcm.domain.roles import Role
from lcm.models import ChangeLog
from scheduling.models import Phase, Pool, PortAllocation, Slot, SlotState
from tests.lcm.admin.browsing import act, add_url, change_url, delete, edit, log_of, messages_of
from tests.support.capacity_setup import make_slot, put_on, reserve
from tests.support.factories import make_person

S = SlotState


@pytest.fixture
def admin_client(client, db):
    client.force_login(make_person("fay", Role.ADMIN, is_staff=True))
    return client


@pytest.mark.parametrize(
    ("action", "old", "fields", "new", "message"),
    [
        ("cordon", S.READY, {}, {"cordoned": True}, "1 slot cordoned."),
        ("uncordon", S.READY, {"cordoned": True}, {"cordoned": False}, "1 slot uncordoned."),
        ("drain", S.READY, {}, {"state": S.DRAINING}, "1 slot draining."),
        ("retry", S.ERROR, {}, {"state": S.EMPTY}, "1 slot available again."),
        ("terminate", S.READY, {}, {"state": S.TERMINATING}, "1 slot terminating."),
    ],
)
def test_an_action_requires_a_reason_and_calls_the_service(
    admin_client, pool, action, old, fields, new, message
):
    slot = make_slot(pool, 1, old, **fields)
    assert 'name="reason"' in act(admin_client, action, slot).content.decode()
    assert messages_of(act(admin_client, action, slot, apply="yes", reason="bad fan")) == [message]
    slot.refresh_from_db()
    assert {name: getattr(slot, name) for name in new} == new
    assert (log_of(slot)[-1].actor, log_of(slot)[-1].reason) == ("fay", "bad fan")


def test_a_refusal_shows_the_services_message(admin_client, pool):
    slot = make_slot(pool, 1, S.READY, lease_count=1)
    page = act(admin_client, "terminate", slot, apply="yes", reason="bad fan")
    assert messages_of(page) == ["cml-eu-01 has 1 lease: drain it, or stop its sessions first."]


def test_the_state_and_labels_of_a_slot_cannot_be_posted(admin_client, pool):
    slot = make_slot(pool, 1)
    assert admin_client.get(change_url(slot)).status_code == 200
    form_data = {"state": S.ERROR, "lease_count": 7, "labels": '{"rack": "b"}', "reason": "corrected"}
    assert admin_client.post(change_url(slot), form_data).status_code == 403
    slot.refresh_from_db()
    assert (slot.state, slot.lease_count, slot.labels) == (S.READY, 0, {})


@pytest.mark.parametrize(("text", "labels"), [('{"rack": "b"}', {"rack": "b"}), ("{}", {})])
def test_labels_are_set_by_the_service_with_a_reason(admin_client, pool, text, labels):
    slots = [make_slot(pool, number, labels={"rack": "a"}) for number in (1, 2)]
    assert '<textarea name="labels"' in act(admin_client, "label", *slots).content.decode()
    page = act(admin_client, "label", *slots, apply="yes", labels=text, reason="moved")
    assert messages_of(page) == ["2 slots labelled."]
    for slot in slots:
        slot.refresh_from_db()
        assert slot.labels == labels
        entry = log_of(slot)[-1]
        assert (entry.event, entry.reason) == ("slot_labelled", "moved")


@pytest.mark.parametrize(("second", "initial_text"), [("a", '{"rack": "a"}'), ("b", "")])
def test_the_form_starts_with_the_labels_common_to_all_slots(admin_client, pool, second, initial_text):
    slots = [make_slot(pool, 1, labels={"rack": "a"}), make_slot(pool, 2, labels={"rack": second})]
    assert act(admin_client, "label", *slots).context["form"]["labels"].value() == initial_text


def test_a_slot_without_a_worker_is_not_labelled(admin_client, pool):
    slot = make_slot(pool, 1, S.EMPTY)
    page = act(admin_client, "label", slot, apply="yes", labels='{"rack": "b"}', reason="moved")
    assert messages_of(page) == ["cml-eu-01 is empty and has no worker to label."]


@pytest.mark.parametrize(
    ("invalid", "message"),
    [
        ("", "This field is required."),
        ('["a"]', "Labels must map names to texts"),
        ('{"rack": 7}', "Labels must map names to texts"),
        ('{"rack": "\\u0000"}', "cannot be stored"),
        ('{"\\ud800": 1}', "cannot be stored"),
    ],
)
def test_invalid_labels_are_rejected_at_their_field(admin_client, pool, invalid, message):
    slot = make_slot(pool, 1)
    page = act(admin_client, "label", slot, apply="yes", labels=invalid, reason="moved")
    assert message in " ".join(page.context["form"].errors["labels"])
    slot.refresh_from_db()
    assert slot.labels == {}


def test_reservations_are_released_and_cancelled(admin_client, pool, session, now):
    slot, held, waiting = make_slot(pool, 1), reserve(pool, now), reserve(pool, now)
    put_on(slot, held, now)
    assert messages_of(act(admin_client, "release", held)) == ["1 reservation released."]
    page = act(admin_client, "cancel", waiting, session.reservations.get(), apply="yes", reason="forgotten")
    assert "1 reservation cancelled." in messages_of(page)
    assert any("belongs to a session" in text for text in messages_of(page))
    held.refresh_from_db()
    waiting.refresh_from_db()
    assert (held.phase, waiting.phase) == (Phase.RELEASED, Phase.CANCELLED)
    assert Slot.objects.get(pk=slot.pk).lease_count == 0


def test_a_pool_is_edited_by_the_service(admin_client, pool):
    Pool.objects.filter(pk=pool.pk).update(stopped_reason="no template", failures=2)
    edit(admin_client, pool, max_slots=9, name="other", reason="more room")
    pool.refresh_from_db()
    assert (pool.name, pool.max_slots, pool.stopped_reason, pool.failures) == ("cml-eu", 9, "", 0)
    assert [entry.event for entry in log_of(pool)] == ["pool_created", "pool_edited"]
    assert log_of(pool)[-1].reason == "more room"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"runtime_settings": '{"boot_second": 2}'}, "did you mean “boot_seconds”?"),
        ({"runtime_settings": '["a"]'}, "The settings must be an object"),
        ({"min_slots": 99}, "The minimum cannot exceed the maximum number of slots."),
        ({"spot_policy": "only"}, "This runtime has no spot offering."),
        ({"scheduler": "actions: [allocate]\nplugins: [gone]\n"}, "There is no plugin “gone”"),
        ({"reason": " "}, "This field is required."),
    ],
)
def test_an_invalid_pool_is_rejected(admin_client, pool, change, message):
    page = edit(admin_client, pool, **change)
    assert page.status_code == 200
    assert page.content.decode().count(message) == 1
    assert messages_of(page) == []
    assert not ChangeLog.objects.filter(event="pool_edited").exists()


def test_a_leaked_port_can_be_freed_and_a_port_in_use_cannot(admin_client, pool, session):
    slot = make_slot(pool, 1)
    leaked = PortAllocation.objects.create(slot=slot, port=2000, name="a", leaked=True)
    held = PortAllocation.objects.create(slot=slot, port=2001, name="b", session=session)
    assert "This field is required." in delete(admin_client, leaked, reason=" ").content.decode()
    assert slot.ports.count() == 2
    delete(admin_client, leaked, reason="seen free")
    assert (log_of(leaked)[-1].event, log_of(leaked)[-1].reason) == ("admin_deleted", "seen free")
    assert delete(admin_client, held).status_code == 403
    act(admin_client, "delete_selected", held, post="yes", reason="seen free")
    assert list(slot.ports.all()) == [held]


@pytest.mark.parametrize("model", [Pool, Slot, PortAllocation])
def test_records_cannot_be_added_in_the_admin(admin_client, model):
    assert admin_client.get(add_url(model)).status_code == 403


def test_a_reservation_is_read_only(admin_client, pool, now):
    reservation = reserve(pool, now)
    assert admin_client.get(change_url(reservation)).status_code == 200
    assert admin_client.post(change_url(reservation), {"phase": "READY"}).status_code == 403
