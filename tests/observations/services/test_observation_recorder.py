"""Recording of observations: stored, counted, logged and rejected."""

from datetime import timedelta
from decimal import Decimal

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.errors import StateConflict, Unprocessable
from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog, LabletSession
from lcm.services.session_transitions import transition_session
from observations.models import DefinitionAssessment, SessionObservation
from tests.support.factories import make_session
from tests.support.observed_labs import HOUR, make_past_session, post, seen


def test_an_observation_is_stored_with_totals_and_peaks(collecting, now):
    recorded = post(collecting, seen(now, cpu="2.50", memory=2048), now)
    row = SessionObservation.objects.get(session=collecting)
    assert recorded.to_json()["observation_count"] == 1
    assert row.observed_resources["used_cpu_cores"] == "2.50"
    assert (row.cpu_allocated, row.cpu_used) == (Decimal("4.00"), Decimal("2.50"))
    assert (row.memory_allocated, row.memory_used) == (Decimal("3.50"), Decimal("2.00"))
    assert (row.peak_storage_allocated, row.peak_storage_used) == (Decimal("7.00"), Decimal("4.00"))
    assert (collecting.observation_count, collecting.observed_at) == (1, now)


def test_the_peak_is_the_largest_of_several(running, now):
    post(running, seen(now - timedelta(minutes=20), cpu="3.00", memory=1024), now)
    post(running, seen(now - timedelta(minutes=10), cpu="1.00", memory=3072), now)
    row = SessionObservation.objects.get(session=running)
    assert (row.cpu_used, row.memory_used) == (Decimal("1.00"), Decimal("3.00"))
    assert (row.peak_cpu_used, row.peak_memory_used) == (Decimal("3.00"), Decimal("3.00"))


def test_the_same_observation_counts_once(collecting, now):
    body = seen(now)
    first, again = post(collecting, body, now), post(collecting, body, now + HOUR)
    assert (first.was_new, again.was_new) == (True, False)
    assert collecting.observation_count == 1
    assert first.to_json() == again.to_json()
    assert (
        ChangeLog.objects.filter(object_id=str(collecting.pk), event="observation.resources_observed").count()
        == 1
    )


def test_an_observation_counts_once_though_others_came_after_it(running, now):
    bodies = [seen(now - timedelta(minutes=minutes)) for minutes in (30, 20, 10)]
    for body in [*bodies, *bodies]:
        post(running, body, now)
    assert running.observation_count == 3


def test_an_older_observation_is_counted_and_overwrites_nothing(running, now):
    post(running, seen(now, cpu="1.00", ports={}), now)
    post(running, seen(now - timedelta(minutes=5), cpu="3.00", ports={"r9_vnc": 5000}), now)
    row = SessionObservation.objects.get(session=running)
    assert (running.observation_count, running.observed_at) == (2, now)
    assert (row.cpu_used, row.peak_cpu_used, row.observed_ports) == (Decimal("1.00"), Decimal("3.00"), {})


def test_unknown_figures_stay_unknown(collecting, now):
    post(collecting, seen(now, memory=None, storage=None), now)
    row = SessionObservation.objects.get(session=collecting)
    assert row.memory_used is row.peak_memory_used is row.storage_used is None
    assert row.memory_allocated == Decimal("3.50")


def test_an_incomplete_total_is_unknown(collecting, now):
    post(collecting, seen(now, cpu="0.10", incomplete=("used_cpu_cores",)), now)
    assert SessionObservation.objects.get(session=collecting).peak_cpu_used is None


@pytest.mark.parametrize("status", sorted(set(SessionStatus) - {"RUNNING", "COLLECTING", "STOPPING"}))
def test_observations_in_other_statuses_are_rejected(status, active_definition, project, operator, now):
    session = make_session(active_definition, project, operator, status=status, now=now)
    with pytest.raises(StateConflict) as refused:
        post(session, seen(now), now)
    assert refused.value.details["status"] == status
    assert not SessionObservation.objects.exists()


@pytest.mark.parametrize("status", ["RUNNING", "COLLECTING", "STOPPING"])
def test_observations_in_these_statuses_are_accepted(status, session_in, now):
    assert post(session_in(SessionStatus(status)), seen(now), now).was_new


NODE = {"node_id": "n0", "label": "r1", "node_definition": "iosv"}


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"observed_at": "yesterday"}, "observed_at"),
        ({"observed_at": None}, "observed_at"),
        ({"observer": "eu-1"}, "observer"),
        ({"controler": "eu-1"}, "controler"),
        ({"total_memory_mb": -1}, "total_memory_mb"),
        ({"used_cpu_cores": "many"}, "used_cpu_cores"),
        ({"used_cpu_cores": "100001"}, "used_cpu_cores"),
        ({"used_memory_mb": 10**10}, "used_memory_mb"),
        ({"observed_ports": {"r1_vnc": 0}}, "observed_ports.r1_vnc"),
        ({"observed_ports": {"r1_vnc": 70_000}}, "observed_ports.r1_vnc"),
        ({"observed_ports": {"x" * 201: 5000}}, f"observed_ports.{'x' * 60}"),
        ({"observed_ports": {f"p{n}": 5000 for n in range(5001)}}, "observed_ports"),
        ({"nodes": "all"}, "nodes"),
        ({"nodes": [{"node_id": "n0", "node_definition": "iosv"}]}, "nodes.0.label"),
        ({"nodes": [{**NODE, "used_memory_mb": 10**10}]}, "nodes.0.used_memory_mb"),
        ({"nodes": [NODE, {**NODE, "cpu_cores": "1e6"}]}, "nodes.1.cpu_cores"),
        ({"nodes": [{}] * 10_000}, "nodes"),
        ({"nodes": [{"interfaces": [{}] * 20_001}]}, "nodes"),
    ],
)
def test_an_invalid_observation_is_rejected_with_the_path(change, place, collecting, now):
    with pytest.raises(Unprocessable) as refused:
        post(collecting, {**seen(now), **change}, now)
    assert list(refused.value.details) == [place]
    assert not SessionObservation.objects.exists()
    assert LabletSession.objects.get(pk=collecting.pk).observation_count == 0


@pytest.mark.parametrize("body", [None, [], "observation", 7, {}])
def test_a_body_of_the_wrong_type_is_rejected(body, collecting, now):
    with pytest.raises(Unprocessable):
        post(collecting, body, now)


@pytest.mark.parametrize(
    ("ago", "fine"),
    [
        (timedelta(minutes=-6), False),
        (timedelta(minutes=-4), True),
        (timedelta(days=29), True),
        (timedelta(days=31), False),
    ],
)
def test_implausible_times_are_rejected(ago, fine, collecting, now):
    if fine:
        assert post(collecting, seen(now - ago), now).was_new
    else:
        with pytest.raises(Unprocessable, match=r"future|days"):
            post(collecting, seen(now - ago), now)


def test_an_observation_is_recorded_in_the_change_log(collecting, now):
    post(collecting, seen(now), now)
    entry = ChangeLog.objects.get(object_id=str(collecting.pk), event="observation.resources_observed")
    assert (entry.message, entry.actor) == ("Observation 1 recorded", "controller eu-1")


def not_counted_reason(session):
    row = SessionObservation.objects.get(session=session)
    return row.not_counted_reason, row.is_sample


def test_a_session_that_was_collected_counts(collecting, now):
    post(collecting, seen(now), now)
    assert not_counted_reason(collecting) == ("", True)
    assert DefinitionAssessment.objects.get(definition=collecting.definition).n == 1


def test_a_running_session_counts_when_it_reaches_collecting(running, now):
    post(running, seen(now), now)
    assert not_counted_reason(running) == ("not_collected", False)
    transition_session(session=running, to=SessionStatus.COLLECTING, actor=SYSTEM, now=now)
    assert not_counted_reason(running) == ("", True)
    assert DefinitionAssessment.objects.get(definition=running.definition).n == 1


def test_a_session_that_was_stopped_before_it_ran_does_not_count(session_in, now):
    session = session_in(SessionStatus.STOPPING, now=now - HOUR)
    post(session, seen(now), now)
    assert not_counted_reason(session) == ("not_collected", False)


@pytest.mark.parametrize("first", ["observed", "stopped"])
def test_a_session_that_was_stopped_while_it_ran_counts(running, now, first):
    if first == "observed":
        post(running, seen(now), now)
    transition_session(session=running, to=SessionStatus.STOPPING, actor=SYSTEM, now=now)
    if first == "stopped":
        post(running, seen(now), now)
    assert not_counted_reason(running) == ("", True)
    assert DefinitionAssessment.objects.get(definition=running.definition).n == 1


@pytest.mark.parametrize(("minutes", "counts"), [(9, False), (10, True)])
def test_nodes_have_to_be_booted_for_ten_minutes(minutes, counts, active_definition, project, operator, now):
    session = make_past_session(
        active_definition, project, operator, ended=now, length=timedelta(minutes=minutes)
    )
    post(session, seen(now), now)
    assert not_counted_reason(session) == (("", True) if counts else ("too_short", False))


def test_a_session_without_measurements_does_not_count(collecting, now):
    bare = {"observed_at": now.isoformat(), "observer": "lablet-controller", "errors": []}
    post(collecting, bare, now)
    assert not_counted_reason(collecting) == ("not_measured", False)
