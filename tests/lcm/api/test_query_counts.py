"""A list needs the same number of queries for three rows and for thirty."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from lcm.domain.lifecycle import SessionStatus
from lcm.domain.roles import Role
from tests.support.factories import make_controller, make_definition, make_person, make_project, make_session

MOST = 12
LISTS = {
    "/api/lablet-definitions/": "admin",
    "/api/lablet-sessions/": "admin",
    "/api/domains/": "admin",
    "/api/projects/": "admin",
    "/api/projects/{project}/members/": "admin",
    "/api/users/": "admin",
    "/api/tokens/": "admin",
    "/api/changes/": "admin",
    "/api/internal/lablet-sessions/": "controller",
}


@pytest.fixture
def add_rows(project):
    """`add_rows(n)`: n more objects of every kind, each with relations of its own."""
    row_count = 0

    def add(count):
        nonlocal row_count
        for index in range(row_count, row_count + count):
            person = make_person(f"member-{index}", Role.VIEWER)
            project.memberships.create(user=person)
            other_project = make_project(f"domain-{index}", f"project-{index}", person)
            definition = make_definition(f"definition-{index}", pool="cml-eu")
            make_session(definition, other_project, person, status=SessionStatus.SCHEDULED)
            make_controller(f"token-{index}", "pool:cml-eu")
        row_count += count

    return add


def query_and_row_counts(client, path):
    with CaptureQueriesContext(
        connection,
    ) as queries:
        response = client.get(path)
    assert response.status_code == 200
    body = response.json()
    return len(queries), len(body["results"] if isinstance(body, dict) else body)


@pytest.mark.parametrize(("path", "caller"), LISTS.items(), ids=list(LISTS))
def test_a_list_of_thirty_needs_as_many_queries_as_a_list_of_three(
    path, caller, api, add_rows, project, request
):
    client, path = api(request.getfixturevalue(caller)), path.format(project=project.pk)
    add_rows(3)
    query_and_row_counts(client, path)  # the first use of a token is recorded once
    few, rows = query_and_row_counts(client, path)
    add_rows(27)
    many, more_rows = query_and_row_counts(client, path)
    assert more_rows >= rows + 20
    assert many == few
    assert many <= MOST


DETAILS = ["/api/lablet-sessions/{session}/", "/api/lablet-definitions/{definition}/"]


@pytest.mark.parametrize("path", DETAILS)
def test_a_detail_needs_few_queries(path, api, admin, session, django_assert_max_num_queries):
    path = path.format(session=session.pk, definition=session.definition.pk)
    client = api(admin)
    with django_assert_max_num_queries(MOST):
        assert client.get(path).status_code == 200
