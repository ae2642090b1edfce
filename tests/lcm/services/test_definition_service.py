"""Import, edit and delete definitions."""

from datetime import timedelta
from decimal import Decimal

import pytest

from lcm.domain.errors import InUse, InvalidInput, StateConflict
from lcm.models import ChangeLog, DefinitionRevision, DefinitionStatus, LabletDefinition
from lcm.services import definitions as services
from tests.support.factories import LAB, make_definition


@pytest.fixture
def import_lab(db, as_admin, now):
    def do(**fields):
        arguments = {"topology": LAB, "name": "branch-office", **fields}
        return services.import_definition(**arguments, actor=as_admin, now=now)

    return do


def test_a_topology_becomes_a_draft_with_its_first_revision(import_lab):
    definition = LabletDefinition.objects.get(pk=import_lab().pk)
    revision = definition.current_revision
    assert (definition.status, definition.node_count) == (DefinitionStatus.DRAFT, 3)
    assert [node["label"] for node in definition.nodes] == ["r1", "r2", "host"]
    assert len(definition.links) == 2
    assert (revision.number, revision.basis, revision.before, revision.actor) == (1, "imported", None, "ada")
    assert revision.requirements == {
        "cpu_cores": Decimal(4),
        "memory_gb": Decimal("3.5"),
        "storage_gb": Decimal(7),
        "gpu": Decimal(0),
    }
    assert [(port["name"], port["outside"]) for port in revision.port_template] == [
        ("r1_serial", 5041),
        ("host_pat", 2022),
    ]


def test_the_import_is_in_the_change_log(import_lab, admin):
    definition = import_lab()
    entry = ChangeLog.objects.get(object_id=str(definition.pk))
    assert (entry.event, entry.user_id) == ("definition.imported", admin.pk)
    assert entry.message == "branch-office v1.0 imported with 3 nodes"
    assert entry.after["topology_hash"] == definition.topology_hash


def test_a_topology_may_be_bytes(import_lab):
    assert import_lab(topology=LAB.encode()).topology_yaml == LAB


def test_given_requirements_override_the_estimate(import_lab):
    revision = import_lab(requirements={"memory_gb": Decimal(16)}).current_revision
    assert (revision.memory_gb, revision.cpu_cores) == (Decimal(16), Decimal(4))


def test_a_lab_without_links_can_be_imported(import_lab):
    one_node = "nodes: [{id: n0, label: r1, node_definition: iosv}]"
    assert import_lab(topology=one_node).links == []


def test_the_same_lab_may_have_several_versions(import_lab):
    first, second = import_lab(), import_lab(version="2.0")
    assert first.topology_hash == second.topology_hash


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"name": ""}, "name"),
        ({"name": "Branch Office"}, "name"),
        ({"name": "-lab"}, "name"),
        ({"name": "x" * 64}, "name"),
        ({"version": ""}, "version"),
        ({"status": "secret"}, "status"),
        ({"placement": "anywhere"}, "placement"),
        ({"max_duration": timedelta(0)}, "__all__"),
        ({"requirements": {"cpu_cores": Decimal(-1)}}, "cpu_cores"),
        ({"requirements": {"cpu_cores": Decimal("NaN")}}, "cpu_cores"),
        ({"requirements": {"cpu_cores": Decimal("1000000.00")}}, "cpu_cores"),
        ({"requirements": {"petrol": Decimal(1)}}, "petrol"),
    ],
)
def test_an_invalid_value_is_rejected_at_its_field_and_nothing_is_saved(fields, named, import_lab):
    with pytest.raises(InvalidInput) as caught:
        import_lab(**fields)
    assert list(caught.value.fields) == [named]
    assert not LabletDefinition.objects.exists()
    assert not DefinitionRevision.objects.exists()
    assert not ChangeLog.objects.exists()


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("nodes: [", "topology"),
        ("", "topology"),
        ("nodes: []", "topology.nodes"),
        ("nodes: [{id: n0, node_definition: iosv}]", "topology.nodes[0].label"),
        (
            f"nodes: [{{id: n0, label: r1, node_definition: {'x' * 129}}}]",
            "topology.nodes[0].node_definition",
        ),
    ],
)
def test_an_invalid_topology_is_rejected_with_the_position_of_the_error(text, path, import_lab):
    with pytest.raises(InvalidInput) as caught:
        import_lab(topology=text)
    assert path in caught.value.fields
    assert not LabletDefinition.objects.exists()


def test_connectors_are_not_listed_as_node_definitions(definition):
    kinds = ("iosv", "external_connector", "alpine", "iosv", "unmanaged_switch")
    definition.nodes = [{"node_definition": kind} for kind in kinds]
    assert definition.node_definitions_used == ["iosv", "alpine"]


def test_a_name_and_version_in_use_is_rejected(import_lab):
    import_lab()
    with pytest.raises(InvalidInput, match="A definition with this name and version already exists"):
        import_lab()
    assert LabletDefinition.objects.count() == 1


def test_an_edit_saves_and_logs_only_changed_fields(definition, as_admin):
    services.update_definition(
        definition=definition, actor=as_admin, pool="cml-us", description=definition.description
    )
    definition.refresh_from_db()
    entry = ChangeLog.objects.get(event="definition.edited")
    assert definition.pool == "cml-us"
    assert (entry.before, entry.after) == ({"pool": ""}, {"pool": "cml-us"})


def test_an_edit_without_changes_is_not_logged(definition, as_admin):
    services.update_definition(definition=definition, actor=as_admin, pool=definition.pool)
    assert not ChangeLog.objects.filter(event="definition.edited").exists()


@pytest.mark.parametrize("field", ["name", "status", "topology_yaml", "current_revision", "cpu_cores"])
def test_fields_with_their_own_service_cannot_be_edited(field, definition, as_admin):
    with pytest.raises(InvalidInput) as caught:
        services.update_definition(definition=definition, actor=as_admin, **{field: "other"})
    assert list(caught.value.fields) == [field]


def test_an_invalid_edit_saves_nothing(definition, as_admin):
    with pytest.raises(InvalidInput):
        services.update_definition(definition=definition, actor=as_admin, pool="p" * 64)
    definition.refresh_from_db()
    assert definition.pool == ""


def test_an_edit_from_a_stale_copy_logs_only_its_own_changes(definition, as_admin):
    old_copy = LabletDefinition.objects.get(pk=definition.pk)
    services.set_definition_status(definition=definition, status=DefinitionStatus.ACTIVE, actor=as_admin)
    services.update_definition(definition=old_copy, actor=as_admin, pool="cml-us")
    entry = ChangeLog.objects.get(event="definition.edited")
    assert entry.after == {"pool": "cml-us"}


@pytest.mark.parametrize("old", DefinitionStatus)
@pytest.mark.parametrize("new", DefinitionStatus)
def test_a_definition_can_change_to_every_other_status(old, new, db, as_admin):
    definition = make_definition(status=old)
    if old == new:
        with pytest.raises(StateConflict, match="already"):
            services.set_definition_status(definition=definition, status=new, actor=as_admin)
        return
    services.set_definition_status(definition=definition, status=new, actor=as_admin, reason="new term")
    definition.refresh_from_db()
    entry = ChangeLog.objects.get(event="definition.status_changed")
    assert definition.status == new
    assert (entry.before, entry.after, entry.reason) == ({"status": old}, {"status": new}, "new term")


@pytest.mark.parametrize("reason", ["", " "])
def test_deprecating_needs_a_reason(definition, as_admin, reason):
    with pytest.raises(InvalidInput) as error:
        services.set_definition_status(
            definition=definition, status=DefinitionStatus.DEPRECATED, actor=as_admin, reason=reason
        )
    assert list(error.value.fields) == ["reason"]
    definition.refresh_from_db()
    assert definition.status == DefinitionStatus.DRAFT


def test_a_status_change_from_a_stale_copy_is_rejected(definition, as_admin):
    old_copy = LabletDefinition.objects.get(pk=definition.pk)
    services.set_definition_status(definition=definition, status=DefinitionStatus.ACTIVE, actor=as_admin)
    with pytest.raises(StateConflict, match="changed a moment ago"):
        services.set_definition_status(
            definition=old_copy, status=DefinitionStatus.DEPRECATED, reason="old", actor=as_admin
        )


def test_a_definition_with_sessions_cannot_be_deleted(session, as_admin):
    definition, revision = session.definition, session.definition.current_revision
    with pytest.raises(InUse, match=r"campus v1\.0 cannot be deleted because it is used by 1 session\."):
        services.delete_definition(definition=definition, reason="unused", actor=as_admin)
    fresh = LabletDefinition.objects.get(pk=definition.pk)
    assert fresh.current_revision == revision
    assert not ChangeLog.objects.filter(event="definition.deleted").exists()


def test_a_definition_without_sessions_is_deleted_with_its_revisions(definition, as_admin):
    services.delete_definition(definition=definition, actor=as_admin, reason="never used")
    assert not LabletDefinition.objects.exists()
    assert not DefinitionRevision.objects.exists()
    assert ChangeLog.objects.get(event="definition.deleted").reason == "never used"


def test_a_reverted_definition_can_be_deleted(definition, as_admin, now):
    common = {"definition": definition, "actor": as_admin, "now": now, "reason": "tried"}
    services.revise_definition(**common, requirements={"gpu": Decimal(1)}, based_on=1)
    services.revert_definition(**common, number=1, based_on=2)
    services.delete_definition(definition=definition, reason="unused", actor=as_admin)
    assert not LabletDefinition.objects.exists()
