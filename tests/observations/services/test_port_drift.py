"""Port drift: detected, reserved, reviewed, acknowledged, resolved."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from lcm.domain.actors import SYSTEM
from lcm.domain.errors import InvalidInput, StateConflict
from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog, LabletSession
from lcm.services.session_reports import report_failure
from lcm.services.session_transitions import transition_session, transition_sessions
from lcm.web.attention import FleetSnapshot
from observations.models import DriftReview, ReviewState, SessionObservation
from observations.pages.attention_items import observation_attention_items
from observations.services.drift_reviews import acknowledge_drift, reopen_drift
from scheduling.coordination.coordinator import coordinator
from scheduling.models import Pool, PortAllocation, Reservation, ReservationPart, Slot
from scheduling.services.heartbeats import record_heartbeat
from scheduling.services.port_allocation import LEAK_HOLD, choose_ports, taken_ports
from tests.support.observed_labs import HOUR, finish, make_past_session, on_slot, post, seen

PLAN = {"r1_serial": 5041, "host_pat": 2022}
MINUTE = timedelta(minutes=1)


@pytest.fixture
def lab(running):
    """A running session on a slot with its two ports."""
    on_slot(running, ports=PLAN)
    return running


@pytest.fixture
def neighbour(active_definition, project, operator, now):
    """Another session on the same slot."""
    session = make_past_session(active_definition, project, operator, ended=now, until=SessionStatus.RUNNING)
    on_slot(session, ports={"r1_serial": 5047})
    return session


def drift_of(session):
    return [(item["kind"], item["name"]) for item in SessionObservation.objects.get(session=session).drift]


def leaked():
    return dict(PortAllocation.objects.filter(leaked=True).values_list("port", "name"))


def test_ports_as_planned_are_no_drift(lab, now):
    recorded = post(lab, seen(now, ports=PLAN), now)
    assert not recorded.drift
    assert not lab.port_drift_detected
    assert not DriftReview.objects.exists()


def test_drift_is_recorded_on_the_session_and_in_the_change_log(lab, now):
    recorded = post(lab, seen(now, ports={"r1_serial": 5999, "r9_vnc": 6001}), now)
    assert lab.port_drift_detected
    assert [item["kind"] for item in recorded.to_json()["drift"]] == ["extra", "changed", "missing"]
    entry = ChangeLog.objects.get(event="observation.port_drift_detected")
    assert entry.message == "Port drift found: 1 extra, 1 changed, 1 missing"


@pytest.mark.parametrize(
    ("allocated", "observed", "kinds"),
    [({}, {"a": 5000}, ["extra"]), ({"a": 5000}, {}, ["missing"]), ({}, {}, [])],
)
def test_allocated_or_observed_ports_may_be_empty(allocated, observed, kinds, running, now):
    on_slot(running, ports=allocated)
    post(running, seen(now, ports=observed), now)
    assert [kind for kind, _ in drift_of(running)] == kinds


def test_unreadable_ports_are_no_drift(lab, now):
    post(lab, seen(now - MINUTE, ports={**PLAN, "r9_vnc": 6001}), now)
    post(lab, seen(now, ports=None), now)
    assert lab.port_drift_detected
    assert leaked() == {6001: "r9_vnc"}


PARTLY = ("observed_ports",)


def test_unread_ports_are_neither_missing_nor_free(lab, now):
    post(lab, seen(now - MINUTE, ports={**PLAN, "r9_vnc": 6001}), now)
    post(lab, seen(now, ports={"r1_serial": 5999}, incomplete=PARTLY), now)
    assert drift_of(lab) == [("extra", "r9_vnc"), ("changed", "r1_serial")]
    assert leaked() == {5999: "r1_serial", 6001: "r9_vnc"}
    post(lab, seen(now + MINUTE, ports={"r1_serial": 5041}, incomplete=PARTLY), now + MINUTE)
    assert drift_of(lab) == [("extra", "r9_vnc")]
    assert leaked() == {5999: "r1_serial", 6001: "r9_vnc"}


def test_unread_ports_do_not_resolve_a_review(lab, now):
    post(lab, seen(now - 3 * MINUTE, ports={**PLAN, "r9_vnc": 6001}), now)
    for ago in (2 * MINUTE, MINUTE):
        post(lab, seen(now - ago, ports=PLAN, incomplete=PARTLY), now)
    review = DriftReview.objects.get()
    assert (review.state, review.clean_streak) == (ReviewState.OPEN, 0)
    assert lab.port_drift_detected


def test_a_leaked_port_is_not_allocated_until_it_is_observed_free(lab, now):
    pool = Pool.objects.get(name=lab.pool)
    first = pool.first_port
    post(lab, seen(now - MINUTE, ports={**PLAN, "r9_vnc": first}), now)
    slot = PortAllocation.objects.get(leaked=True).slot_id
    assert choose_ports(pool, taken_ports([slot])[slot], 1) == [first + 1]
    post(lab, seen(now, ports=PLAN), now)
    assert choose_ports(pool, taken_ports([slot])[slot], 1) == [first]
    assert (lab.port_drift_detected, lab.port_drift_open) == (True, False)
    assert ChangeLog.objects.filter(event="observation.port_drift_cleared").count() == 1


def test_a_changed_port_is_reserved_at_both_numbers(lab, now):
    post(lab, seen(now, ports={"r1_serial": 5999, "host_pat": 2022}), now)
    assert leaked() == {5999: "r1_serial"}
    assert PortAllocation.objects.filter(port=5041, leaked=False).exists()


def test_removing_the_lab_deletes_its_leaked_ports(collecting, now):
    on_slot(collecting, ports=PLAN)
    post(collecting, seen(now, ports={**PLAN, "r9_vnc": 6001}), now)
    assert leaked()
    finish(collecting, now)
    assert not PortAllocation.objects.exists()


@pytest.fixture
def stuck(collecting, now):
    """A session whose lab leaks a port and could not be torn down."""
    on_slot(collecting, ports=PLAN)
    post(collecting, seen(now, ports={**PLAN, "r9_vnc": 6001}), now)
    transition_session(session=collecting, to=SessionStatus.STOPPING, actor=SYSTEM, now=now)
    return collecting


def fail(session, now, *, lab_removed):
    report_failure(session=session, reason="no response", lab_removed=lab_removed, actor=SYSTEM, now=now)


def test_a_lab_that_may_still_exist_keeps_all_its_ports(stuck, now):
    fail(stuck, now, lab_removed=False)
    assert leaked() == {name: port for port, name in [*PLAN.items(), ("r9_vnc", 6001)]}
    assert not PortAllocation.objects.exclude(session=None).exists()


def test_the_next_worker_survey_confirms_or_frees_the_ports(stuck, now):
    slot = Slot.objects.get()
    fail(stuck, now, lab_removed=False)
    still = [{"port": 5041, "name": "campus r1 serial:5041"}]
    later = now + LEAK_HOLD
    record_heartbeat(slot=slot, actor=SYSTEM, now=later, leaked_ports=still, ports_observed_seconds_ago=0)
    assert leaked() == {5041: "r1_serial"}
    record_heartbeat(slot=slot, actor=SYSTEM, now=later, leaked_ports=[], ports_observed_seconds_ago=0)
    assert not leaked()


def test_a_lab_without_a_reported_end_keeps_all_its_ports(stuck, now):
    later = now + timedelta(hours=1)
    coordinator.process_handler("finish-stopping", lambda: later)
    stuck.refresh_from_db()
    assert stuck.status == SessionStatus.FAILED
    assert sorted(leaked()) == sorted([*PLAN.values(), 6001])


def test_a_failed_and_removed_lab_keeps_no_port(stuck, now):
    fail(stuck, now, lab_removed=True)
    assert not PortAllocation.objects.exists()


def test_a_port_of_another_session_is_a_conflict(lab, neighbour, now):
    recorded = post(lab, seen(now, ports={**PLAN, "r9_vnc": 5047}), now)
    assert [(item.kind, item.other) for item in recorded.drift] == [("conflict", str(neighbour.pk))]
    assert not leaked()


def end(session, now):
    for step in (SessionStatus.COLLECTING, SessionStatus.STOPPING, SessionStatus.TERMINATED):
        transition_session(session=session, to=step, actor=SYSTEM, now=now)


def test_each_new_conflict_is_an_event_once(lab, neighbour, now):
    both = {**PLAN, "r9_vnc": 5047, "r8_vnc": 5047}
    for minute, ports in enumerate([PLAN, {**PLAN, "r9_vnc": 5047}, {**PLAN, "r9_vnc": 5047}, both, PLAN]):
        post(lab, seen(now + minute * MINUTE, ports=ports), now + minute * MINUTE)
    found = ChangeLog.objects.filter(event="observation.port_conflict_detected").order_by("pk")
    assert [each.message for each in found] == [
        f"Port conflict found: {name}" for name in ("r9_vnc", "r8_vnc")
    ]
    assert {each.object_id for each in found} == {str(lab.pk)}
    assert found[0].after["conflicts"][0]["other"] == str(neighbour.pk)
    assert found[0].routed is False


def test_a_conflicting_port_stays_reserved_when_its_owner_ends(lab, neighbour, now):
    pool, slot = Pool.objects.get(name=lab.pool), Slot.objects.get()
    first = pool.first_port
    PortAllocation.objects.filter(session=neighbour).update(port=first)
    post(lab, seen(now - MINUTE, ports={**PLAN, "r9_vnc": first}), now)
    assert drift_of(lab) == [("conflict", "r9_vnc")]
    end(neighbour, now)
    held = PortAllocation.objects.get(port=first)
    assert (held.session_id, held.name, held.leaked) == (lab.pk, "r9_vnc", True)
    assert choose_ports(pool, taken_ports([slot.pk])[slot.pk], 1) == [first + 1]
    post(lab, seen(now, ports=PLAN), now)
    assert choose_ports(pool, taken_ports([slot.pk])[slot.pk], 1) == [first]


def test_other_ports_of_an_ended_session_are_free(lab, neighbour, now):
    PortAllocation.objects.create(slot=Slot.objects.get(), session=neighbour, name="host_pat", port=5048)
    post(lab, seen(now, ports={**PLAN, "r9_vnc": 5047}), now)
    end(neighbour, now)
    assert not PortAllocation.objects.filter(port=5048).exists()
    end(lab, now)
    assert not PortAllocation.objects.exists()


def test_a_conflicting_port_is_free_after_both_sessions_end(lab, neighbour, now):
    post(lab, seen(now, ports={**PLAN, "r9_vnc": 5047}), now)
    sessions = [lab, neighbour]
    old = SessionStatus.RUNNING
    for step in (SessionStatus.COLLECTING, SessionStatus.STOPPING, SessionStatus.TERMINATED):
        transition_sessions(sessions=sessions, old=old, to=step, actor=SYSTEM, now=now)
        old = step
    assert not PortAllocation.objects.exists()


LEAKING = {**PLAN, "r9_vnc": 6001}
ALSO_LEAKING = {"r1_serial": 5047, "r9_vnc": 6001}


@pytest.fixture
def both_leak(lab, neighbour, now):
    """Two labs on one worker that use the same port, which was allocated to neither."""
    for session, ports in ((lab, LEAKING), (neighbour, ALSO_LEAKING), (lab, LEAKING)):
        now += MINUTE
        post(session, seen(now, ports=ports), now)
    assert drift_of(lab) == [("conflict", "r9_vnc")]
    return lab, neighbour


def holder_of(port):
    return PortAllocation.objects.filter(port=port, leaked=True).values_list("session_id", flat=True).first()


def test_a_leaked_port_of_two_labs_stays_reserved(both_leak):
    assert leaked() == {6001: "r9_vnc"}


def test_a_leaked_port_stays_reserved_for_the_second_lab_after_the_first_frees_it(both_leak, now):
    lab, neighbour = both_leak
    post(lab, seen(now + HOUR, ports=PLAN), now + HOUR)
    assert holder_of(6001) == neighbour.pk
    post(neighbour, seen(now + HOUR, ports={"r1_serial": 5047}), now + HOUR)
    assert not leaked()


def test_a_leaked_port_stays_reserved_for_the_second_lab_after_the_first_is_removed(both_leak, now):
    lab, neighbour = both_leak
    transition_session(session=lab, to=SessionStatus.COLLECTING, actor=SYSTEM, now=now)
    finish(lab, now)
    assert holder_of(6001) == neighbour.pk


def test_the_other_session_records_the_conflict_with_its_own_observation(lab, neighbour, now):
    post(lab, seen(now, ports={**PLAN, "r9_vnc": 5047}), now)
    recorded = post(neighbour, seen(now, ports={"r1_serial": 5047}), now)
    assert [(item.kind, item.other) for item in recorded.drift] == [("conflict", str(lab.pk))]


def test_sessions_on_other_workers_or_at_other_times_do_not_conflict(lab, neighbour, collecting, now):
    on_slot(collecting, number=2, ports={})
    assert post(collecting, seen(now, ports={"r9_vnc": 5047}), now).drift[0].kind == "extra"
    end(neighbour, now)
    assert post(lab, seen(now, ports={**PLAN, "r9_vnc": 5047}), now).drift[0].kind == "extra"


def test_leaked_ports_of_a_removed_lab_are_no_conflict(lab, neighbour, now):
    post(neighbour, seen(now - MINUTE, ports={"r1_serial": 5047, "r8_vnc": 6001}), now)
    end(neighbour, now)
    assert LabletSession.objects.get(pk=neighbour.pk).port_drift_detected
    shown = post(lab, seen(now, ports={**PLAN, "r9_vnc": 6001}), now)
    assert [(item.kind, item.observed) for item in shown.drift] == [("extra", 6001)]


def test_a_conflict_needs_attention_and_cannot_be_acknowledged(lab, neighbour, as_admin, now):
    post(lab, seen(now, ports={**PLAN, "r9_vnc": 5047}), now)
    review = DriftReview.objects.get(kind="conflict")
    with pytest.raises(StateConflict, match="A port conflict cannot be acknowledged"):
        acknowledge_drift(review=review, reason="fine", until=None, actor=as_admin, now=now)
    needs = list(observation_attention_items(FleetSnapshot(now)))
    assert [(need.tone, need.text) for need in needs] == [("bad", "Port conflict: **r9_vnc** of campus")]


def test_the_item_about_drift_links_to_the_counted_deviations(lab, neighbour, client, viewer, now):

    post(lab, seen(now, ports={"r1_serial": 5041, "r9_vnc": 5047, "r8_vnc": 6001}), now)
    client.force_login(viewer)
    needs = list(observation_attention_items(FleetSnapshot(now)))
    found = [[row.kind for row in client.get(need.url).context["rows"].rows] for need in needs]
    assert [sorted(kinds) for kinds in found] == [["conflict"], ["extra", "missing"]]
    assert (needs[1].text, needs[1].more) == ("**2 open port deviations**", "1 leaked, 1 missing")
    assert "Kind: Leaked" in client.get(needs[1].url).content.decode()


# --- on several workers ---------------------------------------------------------------------------


@pytest.fixture
def spread_session(running):
    """A session with r1 on one worker and host on another, each with a port there."""
    second = on_slot(running, number=2, ports={"host_pat": 5047})
    first = on_slot(running, ports={"r1_serial": 5041})
    Reservation.objects.update(spread=True)
    claim = Reservation.objects.get()
    for slot, kernels in ((first, ["r1", "r2"]), (second, ["host"])):
        ReservationPart.objects.create(
            reservation=claim, slot=slot, kernels=kernels, cpu_cores=2, memory_gb=1, storage_gb=1
        )
    return running


SPREAD_PORTS = {"r1_serial": 5041, "host_pat": 5047}


def test_a_spread_session_has_its_ports_on_the_workers_of_its_nodes(spread_session, neighbour, now):
    """The neighbour on the first worker has the same port number as host on the second."""
    assert not post(spread_session, seen(now, ports=SPREAD_PORTS), now).drift
    assert not post(neighbour, seen(now, ports={"r1_serial": 5047}), now).drift


def test_a_port_leaked_by_a_spread_session_is_reserved_on_its_worker(spread_session, neighbour, now):
    post(spread_session, seen(now, ports={**SPREAD_PORTS, "host_vnc": 6001}), now)
    held = PortAllocation.objects.get(leaked=True)
    assert (held.slot.number, held.port, drift_of(spread_session)) == (2, 6001, [("extra", "host_vnc")])
    post(neighbour, seen(now, ports={"r1_serial": 5047, "r9_vnc": 6001}), now)
    assert drift_of(neighbour) == [("extra", "r9_vnc")]
    post(spread_session, seen(now + MINUTE, ports=SPREAD_PORTS), now + MINUTE)
    assert PortAllocation.objects.get(leaked=True).slot.number == 1


def test_a_conflicting_port_of_a_spread_session_stays_reserved_on_its_worker(spread_session, neighbour, now):
    """The neighbour's port number on the first worker is a different port on the second."""
    post(spread_session, seen(now, ports={**SPREAD_PORTS, "r1_vnc": 5047}), now)
    assert drift_of(spread_session) == [("conflict", "r1_vnc")]
    end(neighbour, now)
    held = PortAllocation.objects.get(leaked=True)
    assert (held.slot.number, held.port, held.session_id) == (1, 5047, spread_session.pk)


# --- reviews --------------------------------------------------------------------------------------


@pytest.fixture
def review(lab, now):
    """An open review of one leaked port."""
    post(lab, seen(now - HOUR, ports={**PLAN, "r9_vnc": 6001}), now)
    return DriftReview.objects.get()


def acknowledge(review, as_admin, now, **changes):
    arguments = {"reason": "known in CML 2.7", "until": None, "now": now, **changes}
    return acknowledge_drift(review=review, actor=as_admin, **arguments)


def test_the_same_drift_in_more_sessions_is_one_review(review, active_definition, project, operator, now):
    other = make_past_session(active_definition, project, operator, ended=now, until=SessionStatus.RUNNING)
    on_slot(other, number=2, ports={"r1_serial": 5050, "host_pat": 2023})
    body = {"r1_serial": 5050, "host_pat": 2023, "r9_vnc": 6100}
    post(other, seen(now, ports=body), now)
    post(other, seen(now + MINUTE, ports=body), now + MINUTE)
    review.refresh_from_db()
    assert (review.sessions, review.last_session_id) == (2, other.pk)


def test_an_acknowledgement_lasts_thirty_days_by_default(review, as_admin, now):
    acknowledge(review, as_admin, now)
    assert review.state_at(now) == ReviewState.ACKNOWLEDGED
    assert review.acknowledged_until == now + timedelta(days=30)
    assert review.state_at(now + timedelta(days=30)) == ReviewState.OPEN
    assert not list(observation_attention_items(FleetSnapshot(now)))
    later = list(observation_attention_items(FleetSnapshot(now + timedelta(days=31))))
    assert [need.text for need in later] == ["**1 open port deviation**"]


@pytest.mark.parametrize("days", [0, -1, 91])
def test_an_acknowledgement_lasts_at_most_ninety_days(days, review, as_admin, now):
    with pytest.raises(InvalidInput, match="90 days"):
        acknowledge(review, as_admin, now, until=now + timedelta(days=days))


def test_an_acknowledgement_needs_a_reason(review, as_admin, now):
    with pytest.raises(InvalidInput, match="Enter a reason"):
        acknowledge(review, as_admin, now, reason="  ")


def test_changed_drift_is_open(review, lab, as_admin, now):
    acknowledge(review, as_admin, now)
    post(lab, seen(now, ports={"r1_serial": 5041, "host_pat": 9999}), now)
    states = {row.name: row.state_at(now) for row in DriftReview.objects.all()}
    assert states == {"r9_vnc": ReviewState.ACKNOWLEDGED, "host_pat": ReviewState.OPEN}


def test_an_acknowledgement_survives_another_observation(review, lab, as_admin, now):
    acknowledge(review, as_admin, now)
    post(lab, seen(now, ports={**PLAN, "r9_vnc": 6001}), now)
    review.refresh_from_db()
    assert review.state == ReviewState.ACKNOWLEDGED


def test_an_acknowledged_deviation_can_be_reopened(review, as_admin, now):
    acknowledge(review, as_admin, now)
    assert reopen_drift(review=review, reason="mistake", actor=as_admin, now=now).state == ReviewState.OPEN
    with pytest.raises(StateConflict, match="not acknowledged"):
        reopen_drift(review=review, reason="mistake", actor=as_admin, now=now)


def test_two_clean_observations_resolve_a_deviation(review, lab, now):
    post(lab, seen(now - 2 * MINUTE, ports=PLAN), now)
    review.refresh_from_db()
    assert review.state == ReviewState.OPEN
    post(lab, seen(now - MINUTE, ports=PLAN), now)
    review.refresh_from_db()
    assert review.state == ReviewState.RESOLVED
    post(lab, seen(now, ports={**PLAN, "r9_vnc": 6001}), now)
    review.refresh_from_db()
    assert (review.state, review.clean_streak) == (ReviewState.OPEN, 0)


def test_clean_observations_of_other_labs_do_not_resolve_a_running_deviation(
    review, lab, active_definition, project, operator, now
):
    for number in (2, 3):
        other = make_past_session(
            active_definition, project, operator, ended=now, until=SessionStatus.RUNNING
        )
        on_slot(other, number=number, ports=PLAN)
        post(other, seen(now, ports=PLAN), now)
    review.refresh_from_db()
    assert review.state == ReviewState.OPEN
    LabletSession.objects.filter(pk=lab.pk).update(status=SessionStatus.TERMINATED)
    for minute in (1, 2):
        post(other, seen(now + minute * MINUTE, ports=PLAN), now + 2 * MINUTE)
    review.refresh_from_db()
    assert review.state == ReviewState.RESOLVED


def test_many_deviations_need_as_many_queries_as_two(lab, now):
    """Observed, observed with other numbers, observed clean, resolved."""

    def queries_of_four_posts(count, begin):
        first, other = ({f"p{n}": port + n for n in range(count)} for port in (6001, 7001))
        queries = []
        for minute, ports in enumerate((first, other, {}, {})):
            at = begin + minute * MINUTE
            with CaptureQueriesContext(connection) as captured:
                post(lab, seen(at, ports={**PLAN, **ports}), at)
            queries.append(len(captured))
        return queries

    few = queries_of_four_posts(2, now)
    assert set(DriftReview.objects.values_list("state", flat=True)) == {ReviewState.RESOLVED}
    DriftReview.objects.all().delete()
    assert queries_of_four_posts(40, now + HOUR) == few
    assert set(DriftReview.objects.values_list("state", "sessions")) == {(ReviewState.RESOLVED, 1)}
    assert DriftReview.objects.get(name="p39").example["observed"] == 7040


def test_a_resolved_deviation_cannot_be_acknowledged(review, as_admin, now):
    DriftReview.objects.update(state=ReviewState.RESOLVED)
    with pytest.raises(StateConflict, match="resolved"):
        acknowledge(review, as_admin, now)
