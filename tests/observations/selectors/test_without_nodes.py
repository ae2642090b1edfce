"""An observation with totals and without nodes counts, and every page shows it."""

import pytest
from django.urls import reverse

from tests.support.observed_labs import seen


def without_nodes(at):
    body = seen(at)
    del body["nodes"]
    return body


def null_nodes(at):
    return {**seen(at), "nodes": None}


@pytest.fixture(params=[without_nodes, null_nodes, lambda at: {**seen(at), "nodes": []}])
def posted(request, api, controller, collecting, now):
    """A session with an observation without nodes."""
    path = f"/api/internal/lablet-sessions/{collecting.pk}/resource-observations"
    assert api(controller).post(path, request.param(now)).status_code == 200
    return collecting


def test_pages_show_that_nodes_could_not_be_read(posted, client, viewer):
    client.force_login(viewer)
    session = client.get(reverse("session_observation", args=[posted.pk]))
    assert session.status_code == 200
    assert "LCM could not read the nodes." in session.content.decode()
    review = client.get(reverse("definition_review", args=[posted.definition_id]))
    assert review.status_code == 200
    assert "Not enough data: 1 session observed." in review.content.decode()


def test_the_api_shows_the_totals(posted, api, viewer):
    seen_of = api(viewer).get(f"/api/lablet-sessions/{posted.pk}/resource-observations").json()
    assert (seen_of["counted"], seen_of["peak"]["memory_gb"]["used"]) == (True, 2.0)
    path = f"/api/lablet-definitions/{posted.definition_id}/resource-observations?by=node"
    response = api(viewer).get(path).json()
    assert (response["n"], response["nodes"], response["maximum_by_node"]) == (1, [], None)
