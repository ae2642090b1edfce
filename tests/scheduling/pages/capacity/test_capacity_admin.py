"""Django admin of scheduling: read-only, except that records of lost processes and ports can be deleted."""

import pytest

from lcm.domain.roles import Role
from scheduling.models import Pool, PortAllocation, Reservation, Slot, SlotState
from tests.lcm.admin.browsing import act, add_url, change_url, delete, log_of
from tests.support.capacity_setup import make_slot, reserve
from tests.support.factories import make_person

S = SlotState


@pytest.fixture
def admin_client(client, db):
    client.force_login(make_person("fay", Role.ADMIN, is_staff=True))
    return client


@pytest.mark.parametrize("model", [Pool, Slot, Reservation])
def test_objects_of_services_are_read_only(admin_client, pool, now, model):
    obj = {Pool: lambda: pool, Slot: lambda: make_slot(pool, 1), Reservation: lambda: reserve(pool, now)}[
        model
    ]()
    before = model.objects.filter(pk=obj.pk).values().get()
    assert admin_client.get(change_url(obj)).status_code == 200
    form_data = {"state": S.ERROR, "phase": "READY", "lease_count": 7, "max_slots": 99, "reason": "corrected"}
    assert admin_client.post(change_url(obj), form_data).status_code == 403
    assert delete(admin_client, obj).status_code == 403
    assert model.objects.filter(pk=obj.pk).values().get() == before


def test_a_leaked_port_can_be_freed_and_a_port_in_use_cannot(admin_client, pool, session):
    slot = make_slot(pool, 1)
    leaked = PortAllocation.objects.create(slot=slot, port=2000, name="a", leaked=True)
    held = PortAllocation.objects.create(slot=slot, port=2001, name="b", session=session)
    assert "This field is required." in delete(admin_client, leaked, reason=" ").content.decode()
    assert slot.ports.count() == 2
    delete(admin_client, leaked, reason="seen free")
    assert (log_of(leaked)[-1].event, log_of(leaked)[-1].reason) == ("admin.deleted", "seen free")
    assert delete(admin_client, held).status_code == 403
    act(admin_client, "delete_selected", held, post="yes", reason="seen free")
    assert list(slot.ports.all()) == [held]


@pytest.mark.parametrize("model", [Pool, Slot, PortAllocation])
def test_records_cannot_be_added_in_the_admin(admin_client, model):
    assert admin_client.get(add_url(model)).status_code == 403
