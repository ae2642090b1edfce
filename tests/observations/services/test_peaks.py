"""The nodes of the memory peak are kept from the observation with the most memory."""

import json
from datetime import timedelta

import pytest
from django.urls import reverse

from observations.models import SessionObservation
from observations.selectors.evidence import drivers_of, evidence_of
from observations.selectors.nodes import node_aggregates
from observations.services.observation_recorder import record_observation
from tests.support.observed_labs import CONTROLLER, post, seen

# Minutes ago and MB used of each observation in order of arrival; the total and each node at the peak.
HISTORIES = [
    ([(0, 3072)], 300, 100),
    ([(20, 3072), (0, 1024)], 300, 100),  # lower now
    ([(20, 1024), (0, 3072)], 300, 100),
    ([(30, 1024), (20, 3072), (0, 2048)], 300, 100),
    ([(30, 3072), (20, 1024), (0, 2048)], 300, 100),
    ([(30, 3072), (20, 1024), (0, 3084)], 302, 101),  # a new peak, and the newest
    ([(0, 1024), (20, 3072)], 300, 100),  # the peak arrived late
    ([(0, 1024), (20, 3072), (30, 2048)], 300, 100),
    ([(20, 3072), (0, None)], 300, 100),  # no longer measured
]


def minutes(now, count):
    return now - timedelta(minutes=count)


@pytest.mark.parametrize(("history", "total", "each"), HISTORIES)
def test_the_nodes_are_from_the_peak_observation(history, total, each, collecting, active_definition, now):
    for ago, memory in history:
        post(collecting, seen(minutes(now, ago), memory=memory), now)
    found = drivers_of(evidence_of(active_definition, now=now))
    assert (found.value, found.from_other_observation) == (total, False)
    assert [(node.memory, node.percent) for node in found.nodes] == [(each, 33)] * 3


def test_a_peak_does_not_replace_the_newest_observation(collecting, now):
    post(collecting, seen(minutes(now, 20), memory=3072), now)
    post(collecting, seen(now, memory=1024), now)
    row = SessionObservation.objects.get()
    assert row.observed_resources["used_memory_mb"] == 1024
    assert row.peak_resources["used_memory_mb"] == 3072
    post(collecting, seen(now + timedelta(seconds=1), memory=3073), now)
    assert SessionObservation.objects.get().peak_resources is None


def test_an_older_peak_is_stored_unchanged(collecting, active_definition, now):
    post(collecting, seen(now, memory=1024), now)
    body = seen(minutes(now, 20), memory=3072)
    record_observation(session_id=collecting.pk, body=body, actor=CONTROLLER, now=now, text=json.dumps(body))
    assert SessionObservation.objects.get().peak_resources == body


def test_without_measured_use_the_peak_is_of_the_allocation(collecting, active_definition, now):
    post(collecting, seen(minutes(now, 20), memory=None), now)
    smaller = {**seen(now, memory=None), "total_memory_mb": 1024}
    post(collecting, smaller, now)
    found = drivers_of(evidence_of(active_definition, now=now))
    assert SessionObservation.objects.get().peak_resources["total_memory_mb"] == 3584
    assert (found.value, found.nodes_total) == (350, 300)


def test_the_maximum_of_a_node_is_from_the_peak(collecting, active_definition, now):
    post(collecting, seen(minutes(now, 20), memory=3072), now)
    post(collecting, seen(now, memory=1024), now)
    node = node_aggregates(evidence_of(active_definition, now=now))[0]
    assert (node.sessions, node.largest.memory, node.latest.memory) == (1, 100, 34)


def test_nodes_from_another_observation_are_marked(collecting, active_definition, client, viewer, now):
    post(collecting, seen(minutes(now, 20), memory=3072), now)
    post(collecting, seen(now, memory=1024), now)
    client.force_login(viewer)
    here = reverse("definition_review", args=[active_definition.pk])
    note = "The nodes are from another observation, with 1.02 GB together."
    assert note not in client.get(here).content.decode()
    SessionObservation.objects.update(peak_resources=None)  # as before peaks were stored
    assert note in client.get(here).content.decode()
