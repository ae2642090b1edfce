"""The installation id: created once, and used to distinguish instances."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from lcm.models import ChangeLog
from scheduling.capacity.runtimes.base import Misconfigured
from scheduling.capacity.runtimes.registry import runtime_for
from scheduling.models import Installation, Pool, SlotState
from scheduling.services.installation import installation_id

S = SlotState
EC2 = {"region": "eu-central-1", "launch_template": "cml", "offerings": [{"instance_type": "m5.large"}]}


def installation(*arguments: str) -> str:
    output = StringIO()
    call_command("installation", *arguments, stdout=output)
    return output.getvalue().strip()


@pytest.mark.django_db
def test_the_id_is_created_once_and_used_by_the_runtime():
    key = installation_id()
    assert (len(key), installation_id()) == (32, key)
    assert runtime_for(Pool(name="cml-eu", runtime="ec2", runtime_settings=EC2)).installation == key
    assert installation() == key


@pytest.mark.django_db
def test_a_copy_gets_a_new_id_with_a_reason():
    key = installation_id()
    assert installation("--new", "a copy for staging") == installation_id() != key
    entry = ChangeLog.objects.get(event="installation.renewed")
    assert (entry.reason, entry.before) == ("a copy for staging", {"key": key})


@pytest.mark.django_db
def test_a_new_id_requires_a_reason():
    key = installation_id()
    with pytest.raises(CommandError, match="Enter a reason"):
        installation("--new", " ")
    assert Installation.objects.get().key == key


def test_an_unknown_instance_without_an_owner_tag_is_never_terminated(fleet):
    fleet.runtime.add("i-of-another", token="of another", claimed=False)
    fleet.clock.advance(hours=1)
    fleet.reconcile()
    assert fleet.runtime.count("terminate") == fleet.runtime.count("claim") == 0


def test_an_older_instance_of_a_slot_is_tagged_once(fleet):
    slot = fleet.slot()
    fleet.runtime.add(slot.instance_id, claimed=False)
    for _ in range(3):
        fleet.reconcile()
    assert fleet.states() == [S.READY]
    assert [name for call, name in fleet.runtime.calls if call == "claim"] == [slot.instance_id]


def test_a_lost_response_of_an_older_launch_is_found_by_its_token(fleet):
    slot = fleet.slot(S.LAUNCHING)
    fleet.runtime.add("i-lost", token=slot.attempts.get().token, claimed=False)
    fleet.reconcile()
    slot.refresh_from_db()
    assert (slot.state, slot.instance_id) == (S.BOOTING, "i-lost")


def test_an_older_orphan_is_identified_by_its_attempt_and_collected(fleet):
    """Its slot has another instance by now, and its attempt was abandoned."""
    slot = fleet.slot(S.LAUNCHING)
    token = slot.attempts.get().token
    fleet.clock.advance(hours=1)
    fleet.reconcile()
    fleet.runtime.add("i-late", token=token, claimed=False)
    fleet.clock.advance(hours=1)
    fleet.reconcile()
    assert fleet.runtime.instances["i-late"].claimed
    assert fleet.runtime.count("terminate") == 0
    fleet.reconcile()
    assert fleet.runtime.alive == []


def test_a_failed_tagging_call_does_not_stop_the_pool(fleet):
    slot = fleet.slot()
    fleet.runtime.add(slot.instance_id, claimed=False)
    fleet.runtime.error = Misconfigured("not allowed to tag")
    assert fleet.reconcile().errors == ["not allowed to tag"]
    assert (fleet.states(), fleet.reload_pool().stopped_reason) == ([S.READY], "")
