"""Access sheet of a session in every status, on one slot and on several."""

from datetime import timedelta
from uuid import uuid4

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import LabletSession
from lcm.selectors.sessions import sessions
from scheduling.models import PortAllocation, SessionLab, Slot, SlotState
from scheduling.pages.reservations import location_of_session
from scheduling.selectors.session_access import AccessSheet, session_access
from scheduling.services.heartbeats import record_heartbeat
from tests.support.factories import make_definition
from tests.support.scheduler_setup import SessionRequester


@pytest.fixture
def slot(fleet) -> Slot:
    return fleet.slot(endpoint="https://cml-1.example.org")


def sheet_of(session, now) -> AccessSheet:
    fresh: LabletSession = sessions().get(pk=session.pk)
    return session_access(fresh, list(fresh.kernels.all()), now=now)


def test_a_survey_adds_the_states_of_nodes_and_the_page_of_the_lab(session_on, slot, now):
    session, other = session_on(slot, S.RUNNING), session_on(slot, S.RUNNING)

    def survey(*labs):
        record_heartbeat(slot=slot, actor=SYSTEM, now=now, labs=labs, ports_observed_seconds_ago=40)

    def lab_of(owner, lab, **nodes):
        return {"session": owner.pk, "attempt": owner.attempt, "lab": lab, "nodes": nodes}

    assert [node.lab_state for node in sheet_of(session, now).nodes] == ["", "", ""]
    survey(lab_of(session, "lab 1", r1="BOOTED", r2="QUEUED"), lab_of(other, "lab-2", r1="STARTED"))
    sheet = sheet_of(session, now)
    states = {node.kernel.node_label: (node.lab_state, node.lab_state_at) for node in sheet.nodes}
    seen = now - timedelta(seconds=40)
    assert states == {"r1": ("BOOTED", seen), "r2": ("QUEUED", seen), "host": ("", None)}
    assert [worker.console for worker in sheet.workers] == ["https://cml-1.example.org/lab/lab%201"]
    assert "console https://cml-1.example.org/lab/lab%201" in sheet.text
    # The lab of an earlier attempt, of a session elsewhere, and a lab that is gone.
    survey({**lab_of(session, "old", r1="BOOTED"), "attempt": 2}, {**lab_of(other, "x"), "session": uuid4()})
    assert sheet_of(session, now).workers[0].console == "https://cml-1.example.org"
    assert set(SessionLab.objects.values_list("lab", flat=True)) == {"old"}
    survey()
    assert not SessionLab.objects.exists()


def urls_of(sheet):
    return {node.kernel.node_label: [each.url for each in node.addresses] for node in sheet.nodes}


def test_a_running_session_has_the_addresses_of_its_allocated_ports(session_on, slot, now):
    session = session_on(slot, S.RUNNING)
    ports = dict(PortAllocation.objects.filter(session=session).values_list("name", "port"))
    sheet = sheet_of(session, now)
    assert (sheet.state, sheet.message, sheet.warnings) == ("open", "", [])
    assert urls_of(sheet) == {
        "r1": [f"telnet://cml-1.example.org:{ports['r1_serial']}"],
        "r2": [],
        "host": [f"ssh://cml-1.example.org:{ports['host_pat']}"],
    }
    assert [worker.console for worker in sheet.workers] == ["https://cml-1.example.org"]
    assert sheet.text.splitlines() == [
        f"host pat ssh://cml-1.example.org:{ports['host_pat']}",
        f"r1 serial telnet://cml-1.example.org:{ports['r1_serial']}",
        f"{slot.name} console https://cml-1.example.org",
    ]


@pytest.mark.parametrize(
    ("status", "state", "message", "has_nodes"),
    [
        (S.SCHEDULED, "starting", "The lab is starting.", True),
        (S.INSTANTIATING, "starting", "The lab is starting.", True),
        (S.READY, "open", "", True),
        (S.COLLECTING, "closing", "The lab is being removed.", True),
        (S.STOPPING, "closing", "The lab is being removed.", True),
        (S.TERMINATED, "ended", "The session has ended and released its ports.", False),
        (S.FAILED, "ended", "The session has ended and released its ports.", False),
    ],
)
def test_the_sheet_explains_every_status(session_on, slot, now, status, state, message, has_nodes):
    sheet = sheet_of(session_on(slot, status), now)
    assert (sheet.state, bool(sheet.nodes)) == (state, has_nodes)
    assert sheet.message.startswith(message)


def test_a_waiting_session_has_no_addresses_yet(new_session, now):
    sheet = sheet_of(new_session(), now)
    assert (sheet.state, sheet.nodes, sheet.text) == ("waiting", (), "")
    assert sheet.message == "Addresses appear here when the session has a slot."


def test_an_unknown_host_leaves_the_ports(session_on, fleet, now):
    sheet = sheet_of(session_on(fleet.slot(endpoint=""), S.RUNNING), now)
    (address,) = next(node.addresses for node in sheet.nodes if node.kernel.node_label == "r1")
    assert (address.host, address.url) == ("", "")
    assert address.port
    assert sheet.text == ""


def test_the_nodes_of_a_spread_session_have_the_hosts_of_their_slots(configure_pool, now):
    fleet = configure_pool(cpu_cores=3, max_slots=2)
    for number in (1, 2):
        fleet.slot(endpoint=f"https://cml-{number}.example.org")
    requester = SessionRequester(fleet, "apart", make_definition(pool="cml-eu", placement="spread"))
    session = requester.request()
    fleet.tick_without_errors()
    sheet = sheet_of(session, now)
    parts = {
        label: part.slot.endpoint.removeprefix("https://")
        for part in session.reservations.get().parts.select_related("slot")
        for label in part.kernels
    }
    assert len(sheet.workers) == len(set(parts.values())) == 2
    assert {node.kernel.node_label: node.worker.host for node in sheet.nodes} == parts
    assert all(each.host == parts[node.kernel.node_label] for node in sheet.nodes for each in node.addresses)


IN_TWO_MINUTES = timedelta(minutes=2)


@pytest.mark.parametrize(
    ("fields", "warning"),
    [
        ({}, ""),
        ({"state": SlotState.DRAINING}, "is draining. The session keeps its slot until it ends."),
        ({"state": SlotState.ERROR}, "is in error. The session may be unreachable."),
        ({"left": IN_TWO_MINUTES}, "Save your work."),
        ({"left": -IN_TWO_MINUTES}, "its worker terminated at"),
    ],
)
def test_the_state_of_its_slot_is_a_warning(session_on, slot, now, fields, warning):
    session = session_on(slot, S.RUNNING)
    left = fields.pop("left", None)
    if left:
        fields["interruption_deadline"] = now + left
    Slot.objects.filter(pk=slot.pk).update(**fields)
    warnings = sheet_of(session, now).warnings
    assert len(warnings) == bool(warning)
    assert all(warning in text for text in warnings)
    if left != IN_TWO_MINUTES or not warning:
        place = location_of_session(sessions().get(pk=session.pk))
        assert place is not None
        assert list(place.warnings) == warnings


def test_port_drift_is_a_warning(session_on, slot, now):
    session = session_on(slot, S.RUNNING)
    LabletSession.objects.filter(pk=session.pk).update(port_drift_open=True)
    assert "other ports than allocated" in sheet_of(session, now).warnings[0]
