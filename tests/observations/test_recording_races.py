"""Observations that come at the same moment."""

import pytest

from lcm.models import LabletSession
from observations.models import DefinitionAssessment, DriftReview, SessionObservation
from observations.services.aggregates import rebuild_definition
from observations.services.requests import request_observation
from scheduling.models import PortAllocation
from tests.observations.labs import lived, on_slot, post, seen

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]


def test_the_same_observation_sent_by_two_at_once_counts_once(collecting, now, at_once):
    body = seen(now)
    results = at_once(
        *(lambda: post(LabletSession.objects.get(pk=collecting.pk), body, now) for _ in range(4))
    )
    assert sorted(result.was_new for result in results) == [False, False, False, True]
    assert LabletSession.objects.get(pk=collecting.pk).observation_count == 1


def test_sessions_of_one_definition_are_all_counted(active_definition, project, operator, now, at_once):
    sessions = [lived(active_definition, project, operator, ended=now) for _ in range(8)]
    work = [
        lambda session=session, index=index: post(session, seen(now, cpu=f"{1 + index / 10:.2f}"), now)
        for index, session in enumerate(sessions)
    ]
    results = at_once(*work)
    assert all(result.was_new for result in results), results
    assert SessionObservation.objects.count() == 8
    assert DefinitionAssessment.objects.get(definition=active_definition).n == 8
    active_definition.refresh_from_db()
    assert rebuild_definition(definition=active_definition, now=now, check=True) == []


def test_the_same_drift_seen_at_once_is_one_review_and_a_port_is_held_once(
    active_definition, project, operator, now, at_once
):
    sessions = [lived(active_definition, project, operator, ended=now) for _ in range(3)]
    for session in sessions:
        on_slot(session, ports={})
    results = at_once(*(lambda s=s: post(s, seen(now, ports={"r9_vnc": 6001}), now) for s in sessions))
    assert all(result.was_new for result in results), results
    assert PortAllocation.objects.filter(leaked=True, port=6001).count() == 1
    assert DriftReview.objects.filter(kind="extra").count() <= 1


def test_two_who_ask_at_once_share_a_request(running, as_operator, as_admin, now, at_once):
    asked = at_once(
        *(
            lambda who=who: request_observation(session=running, actor=who, now=now)
            for who in (as_operator, as_admin)
        )
    )
    assert asked[0].pk == asked[1].pk
