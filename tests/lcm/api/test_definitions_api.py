"""API of definitions."""

from decimal import Decimal
from uuid import uuid4

import pytest

from lcm.models import ChangeLog, DefinitionRevision, LabletDefinition
from lcm.services.definitions import revise_definition
from tests.support.factories import LAB

DEFINITIONS = "/api/lablet-definitions/"
IMPORT = f"{DEFINITIONS}import/"
DUPLICATE_LABEL = LAB.replace("label: r2", "label: r1")
UNKNOWN_LINK_END = LAB.replace("n2: n1", "n2: n9")


@pytest.fixture
def path(definition):
    return f"{DEFINITIONS}{definition.pk}/"


@pytest.fixture
def second_revision(definition, as_admin, now):
    return revise_definition(
        definition=definition,
        requirements={"cpu_cores": Decimal(8)},
        based_on=1,
        reason="labs were slow",
        actor=as_admin,
        now=now,
    )


def nothing_is_saved():
    return not any(model.objects.exists() for model in (LabletDefinition, DefinitionRevision, ChangeLog))


def test_a_dry_run_returns_the_imported_values_and_saves_nothing(api, admin):
    response = api(admin).post(IMPORT, {"topology": LAB, "dry_run": True})
    assert response.status_code == 200
    assert response.json()["definition"] is None
    topology = response.json()["topology"]
    assert (topology["title"], topology["node_count"]) == ("Branch office", 3)
    assert [node["label"] for node in topology["nodes"]] == ["r1", "r2", "host"]
    assert [port["name"] for port in topology["ports"]] == ["r1_serial", "host_pat"]
    assert Decimal(topology["requirements"]["memory_gb"]) == Decimal("3.5")
    assert nothing_is_saved()


def test_a_dry_run_lists_assumptions(api, admin):
    text = LAB.replace("ram: 512, ", "")
    topology = api(admin).post(IMPORT, {"topology": text, "dry_run": True}).json()["topology"]
    assert topology["assumptions"] == [
        "host: the topology does not set RAM. LCM assumes 512 MB, the default of alpine.",
    ]


def test_a_valid_topology_is_saved(api, admin):
    response = api(admin).post(IMPORT, {"topology": LAB, "name": "branch-office", "max_duration": "04:00:00"})
    assert response.status_code == 201
    created = response.json()["definition"]
    assert (created["name"], created["status"], created["revision"]) == ("branch-office", "draft", 1)
    assert (created["max_duration"], created["requirements"]["cpu_cores"]) == ("04:00:00", "4.00")
    assert LabletDefinition.objects.get().pk.hex == created["id"].replace("-", "")
    assert ChangeLog.objects.get().actor == "ada"


def test_requirements_may_be_given(api, admin):
    body = {"topology": LAB, "name": "branch-office", "requirements": {"gpu": "1.5"}}
    assert api(admin).post(IMPORT, body).json()["definition"]["requirements"] == {
        "cpu_cores": "4.00",
        "memory_gb": "3.50",
        "storage_gb": "7.00",
        "gpu": "1.50",
    }


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("nodes: [", "topology"),
        ("nodes: []", "topology.nodes"),
        ("!!python/object/apply:os.system ['true']", "topology"),
        (DUPLICATE_LABEL, "topology.nodes[1].label"),
        (UNKNOWN_LINK_END, "topology.links[0].n2"),
        (LAB.replace("2022:22", "70000:22"), "topology.nodes[2].tags[0]"),
        ("", "topology"),
        (None, "topology"),
        ("a: \x00", "topology"),
    ],
)
@pytest.mark.parametrize("dry_run", [True, False])
def test_an_invalid_topology_is_rejected_with_the_location(text, field, dry_run, api, admin):
    response = api(admin).post(IMPORT, {"topology": text, "name": "bad", "dry_run": dry_run})
    assert (response.status_code, response.json()["code"]) == (400, "invalid")
    assert field in response.json()["details"]
    assert nothing_is_saved()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": None}, "name"),
        ({"name": "Branch Office"}, "name"),
        ({"status": "secret"}, "status"),
        ({"placement": "anywhere"}, "placement"),
        ({"max_duration": "0"}, "max_duration"),
        ({"max_duration": "a while"}, "max_duration"),
        ({"max_duration": "999999999 00:00:00"}, "max_duration"),
        ({"requirements": {"cpu_cores": "-1"}}, "requirements"),
        ({"requirements": {"cpu_cores": "NaN"}}, "requirements"),
    ],
)
def test_an_invalid_field_is_rejected_and_nothing_is_saved(change, field, api, admin):
    client = api(admin, raise_request_exception=False)
    response = client.post(IMPORT, {"topology": LAB, "name": "branch-office"} | change)
    assert response.status_code == 400
    assert list(response.json()["details"]) == [field]
    assert nothing_is_saved()


def test_a_name_is_required_to_save(api, admin):
    response = api(admin).post(IMPORT, {"topology": LAB})
    assert (response.status_code, list(response.json()["details"])) == (400, ["name"])


def test_the_detail_has_everything(api, operator, path):
    body = api(operator).get(path).json()
    assert body["topology_yaml"] == LAB
    assert [len(body[each]) for each in ("nodes", "links", "port_template")] == [3, 2, 2]
    assert body["requirements"]["storage_gb"] == "7.00"


def test_the_list_omits_long_fields(api, viewer, definition):
    (row,) = api(viewer).get(DEFINITIONS).json()["results"]
    assert row["name"] == "branch-office"
    assert not {"topology_yaml", "nodes", "links", "port_template"} & set(row)


def test_an_edit_changes_only_the_given_fields(api, admin, definition, path):
    response = api(admin).patch(path, {"pool": "cml-us", "preemptible": True})
    assert (response.status_code, response.json()["pool"]) == (200, "cml-us")
    definition.refresh_from_db()
    assert (definition.pool, definition.preemptible, definition.system) == ("cml-us", True, "cml")


def test_the_reason_of_an_edit_is_recorded_if_given(api, admin, path):
    assert api(admin).patch(path, {"pool": "cml-us", "reason": "EU is full"}).status_code == 200
    assert ChangeLog.objects.get(event="definition.edited").reason == "EU is full"


@pytest.mark.parametrize(("field", "value"), [("max_duration", "0"), ("placement", "x"), ("pool", "p" * 64)])
def test_an_invalid_edit_is_rejected(field, value, api, admin, path):
    response = api(admin).patch(path, {field: value})
    assert (response.status_code, list(response.json()["details"])) == (400, [field])


def test_the_status_is_changed_with_a_reason(api, admin, definition, path):
    response = api(admin).post(f"{path}status/", {"status": "active", "reason": "tested"})
    assert (response.status_code, response.json()["status"]) == (200, "active")
    assert ChangeLog.objects.get(event="definition.status_changed").reason == "tested"
    assert api(admin).post(f"{path}status/", {"status": "active"}).status_code == 409
    assert api(admin).post(f"{path}status/", {"status": "secret"}).status_code == 400
    bare = api(admin).post(f"{path}status/", {"status": "deprecated"})
    assert (bare.status_code, list(bare.json()["details"])) == (400, ["reason"])


def test_a_change_of_requirements_is_applied(api, admin, path):
    body = {"requirements": {"cpu_cores": "8"}, "based_on": 1, "reason": "labs were slow"}
    response = api(admin).post(f"{path}revise/", body)
    assert response.status_code == 201
    body = response.json()
    assert (body["number"], body["basis"], body["actor"], body["reverts"]) == (2, "custom", "ada", None)
    assert body["requirements"]["cpu_cores"] == "8.00"
    assert body["before"]["requirements"]["cpu_cores"] == "4.00"
    assert api(admin).get(path).json()["revision"] == 2


def test_a_change_based_on_an_older_revision_is_a_conflict(api, admin, path, second_revision):
    body = {"requirements": {"cpu_cores": "6"}, "based_on": 1, "reason": "labs were slow"}
    response = api(admin).post(f"{path}revise/", body)
    assert response.status_code == 409
    assert response.json()["details"] == {"current": 2, "based_on": 1}


@pytest.mark.parametrize("missing", ["requirements", "based_on", "reason"])
def test_a_change_requires_all_fields(missing, api, admin, path):
    body = {"requirements": {"cpu_cores": "8"}, "based_on": 1, "reason": "labs were slow"}
    del body[missing]
    response = api(admin).post(f"{path}revise/", body)
    assert (response.status_code, list(response.json()["details"])) == (400, [missing])
    assert DefinitionRevision.objects.count() == 1


def test_a_change_without_a_difference_is_rejected(api, admin, path):
    body = {"requirements": {"cpu_cores": "4"}, "based_on": 1, "reason": "labs were slow"}
    response = api(admin).post(f"{path}revise/", body)
    assert (response.status_code, list(response.json()["details"])) == (400, ["requirements"])


def test_revisions_are_listed_newest_first(api, viewer, path, second_revision):
    rows = api(viewer).get(f"{path}revisions/").json()["results"]
    assert [(row["number"], row["reason"]) for row in rows] == [
        (2, "labs were slow"),
        (1, "Estimated from the topology"),
    ]


def test_a_revision_is_reverted_by_a_new_one(api, admin, path, second_revision):
    response = api(admin).post(f"{path}revisions/1/revert/", {"based_on": 2, "reason": "too much"})
    assert response.status_code == 201
    assert (response.json()["number"], response.json()["reverts"]) == (3, 2)
    assert response.json()["requirements"]["cpu_cores"] == "4.00"


@pytest.mark.parametrize(("number", "based_on", "status"), [(7, 2, 404), (1, 1, 409), (2, 2, 400)])
def test_an_invalid_revert_is_rejected(number, based_on, status, api, admin, path, second_revision):
    response = api(admin).post(f"{path}revisions/{number}/revert/", {"based_on": based_on, "reason": "x"})
    assert response.status_code == status
    assert DefinitionRevision.objects.count() == 2


def test_revisions_come_in_pages_newest_first(api, viewer, definition, path, now):
    first = definition.current_revision
    fields = {field.attname: getattr(first, field.attname) for field in first._meta.concrete_fields}
    more = [DefinitionRevision(**fields | {"id": uuid4(), "number": number}) for number in range(2, 52)]
    DefinitionRevision.objects.bulk_create(more)
    page = api(viewer).get(f"{path}revisions/").json()
    assert [row["number"] for row in page["results"]] == list(range(51, 1, -1))
    last = api(viewer).get(page["next"]).json()
    assert ([row["number"] for row in last["results"]], last["next"]) == ([1], None)


def test_a_definition_without_sessions_is_deleted(api, admin, path):
    assert api(admin).delete(path, {"reason": "never used"}).status_code == 204
    assert not LabletDefinition.objects.exists()
    assert api(admin).get(path).status_code == 404


def test_a_definition_with_sessions_is_not_deleted(api, admin, session):
    response = api(admin).delete(f"{DEFINITIONS}{session.definition.pk}/?reason=old")
    assert response.status_code == 409
    assert "1 session" in response.json()["message"]
    assert api(admin).get(f"{DEFINITIONS}{session.definition.pk}/").json()["revision"] == 1


@pytest.mark.parametrize("role", ["viewer", "operator", "stranger"])
def test_changes_are_for_admins(role, api, definition, path, request):
    client = api(request.getfixturevalue(role))
    responses = [
        client.post(IMPORT, {"topology": LAB, "name": "x"}),
        client.patch(path, {"pool": "x"}),
        client.delete(path),
        client.post(f"{path}status/", {"status": "active"}),
        client.post(f"{path}revise/", {}),
        client.post(f"{path}revisions/1/revert/", {}),
    ]
    assert {response.status_code for response in responses} == {403}


NEW = {"name": "web-shop", "requirements": {"cpu_cores": "3", "memory_gb": "4"}}
WEB = {"label": "web", "node_definition": "nginx"}
PORT = {"node_label": "web", "protocol": "http", "outside": 8080, "inside": 80}


def test_a_definition_is_created_without_a_topology(api, admin):
    database = {"label": "db", "cpu_cores": "2"}
    nodes = [{**WEB, "cpu_cores": "1"}, database]
    body = {**NEW, "nodes": nodes, "port_template": [PORT], "status": "active", "system": "containers"}
    response = api(admin).post(DEFINITIONS, body)
    assert response.status_code == 201, response.json()
    created = response.json()
    assert (created["topology_yaml"], created["node_count"], created["revision"], created["links"]) == (
        "",
        2,
        1,
        [],
    )
    assert [port["name"] for port in created["port_template"]] == ["web_http"]
    shown = [(node["label"], node["node_definition"], node["memory_mb"]) for node in created["nodes"]]
    assert shown == [("web", "nginx", 2048), ("db", "containers", 2048)]
    assert [Decimal(node["cpu_cores"]) for node in created["nodes"]] == [1, 2]
    assert ChangeLog.objects.get(event="definition.created").object_id == created["id"]
    for path in (f"{DEFINITIONS}{created['id']}/", f"/definitions/{created['id']}/"):
        assert api(admin).get(path).status_code == 200


def test_a_definition_without_nodes_has_one_with_its_name(api, admin):
    created = (
        api(admin).post(DEFINITIONS, {**NEW, "port_template": [{**PORT, "node_label": "web-shop"}]}).json()
    )
    assert [(node["label"], node["node_definition"]) for node in created["nodes"]] == [("web-shop", "cml")]
    assert created["requirements"] == {
        "cpu_cores": "3.00",
        "memory_gb": "4.00",
        "storage_gb": "0.00",
        "gpu": "0.00",
    }


@pytest.mark.parametrize(
    ("change", "field", "text"),
    [
        ({"requirements": {"cpu_cores": "3"}}, "requirements", "memory_gb"),
        ({"requirements": {"cpu_cores": "0", "memory_gb": "4"}}, "requirements", "cpu_cores"),
        ({"nodes": []}, "nodes", "empty"),
        ({"nodes": [WEB, WEB]}, "nodes", "Several nodes have the label “web”."),
        ({"port_template": [PORT]}, "port_template", "There is no node “web”."),
        (
            {"nodes": [WEB], "port_template": [PORT, PORT]},
            "port_template",
            "8080/tcp is already used by web (port 1).",
        ),
        ({"nodes": [WEB], "port_template": [{**PORT, "transport": "udp"}]}, "port_template", "is not of the"),
        ({"name": "Not a name"}, "name", ""),
    ],
)
def test_an_invalid_definition_without_a_topology_is_rejected_by_field(change, field, text, api, admin):
    response = api(admin).post(DEFINITIONS, {**NEW, **change})
    assert (response.status_code, list(response.json()["details"])) == (400, [field])
    assert text in str(response.json()["details"])
    assert nothing_is_saved()
