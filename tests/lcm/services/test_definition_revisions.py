"""Revising and reverting definitions."""

from decimal import Decimal

import pytest

from lcm.domain.errors import InvalidInput, NotFound, StateConflict
from lcm.domain.resources import RESOURCE_NAMES
from lcm.models import ChangeLog, DefinitionRevision, LabletDefinition
from lcm.services.definitions import revert_definition, revise_definition


@pytest.fixture
def revise(definition, as_admin, now):
    """`revise(field=value)`: revise the definition to eight cores, with these arguments changed."""

    def do(**changes):
        arguments = {
            "definition": definition,
            "requirements": {"cpu_cores": Decimal(8)},
            "based_on": 1,
            "reason": "labs were slow",
        }
        return revise_definition(**(arguments | changes), actor=as_admin, now=now)

    return do


@pytest.fixture
def revert(definition, as_admin, now):
    def do(number, based_on, reason="it was better"):
        arguments = {"definition": definition, "number": number, "based_on": based_on, "reason": reason}
        return revert_definition(**arguments, actor=as_admin, now=now)

    return do


def numbers(definition):
    """Return the numbers of all revisions and of the current one."""
    fresh = LabletDefinition.objects.get(pk=definition.pk)
    return sorted(fresh.revisions.values_list("number", flat=True)), fresh.current_revision.number


def test_a_revision_records_the_previous_values_and_the_reason(revise, definition, admin):
    revision = DefinitionRevision.objects.get(pk=revise().pk)
    assert numbers(definition) == ([1, 2], 2)
    assert (revision.basis, revision.reason, revision.actor) == ("custom", "labs were slow", "ada")
    assert revision.created_by == admin
    assert revision.before["requirements"]["cpu_cores"] == "4.00"
    assert revision.before["port_template"] == definition.revisions.get(number=1).port_template


def test_resources_that_are_not_given_stay_the_same(revise):
    revision = revise()
    assert (revision.cpu_cores, revision.memory_gb, revision.storage_gb) == (8, Decimal("3.50"), 7)
    assert len(revision.port_template) == 2


def test_the_first_revision_stays_unchanged_and_is_superseded(revise, definition, now):
    before = DefinitionRevision.objects.filter(number=1).values().get()
    assert before["outcome"] is None
    revise()
    after = DefinitionRevision.objects.filter(number=1).values().get()
    assert after == before | {"outcome": "superseded", "outcome_at": now}


@pytest.mark.parametrize(
    ("outcome", "new_outcome"),
    [("watching", "superseded"), ("verified", "verified"), ("regressed", "regressed")],
)
def test_a_replaced_revision_is_no_longer_watched(outcome, new_outcome, revise, revert):
    old = revise()
    assert old.outcome == "watching"
    DefinitionRevision.objects.filter(pk=old.pk).update(outcome=outcome)
    new = revert(1, based_on=2)
    old.refresh_from_db()
    assert (old.outcome, new.outcome) == (new_outcome, "watching")


def basis_and_bases(revision):
    return revision.basis, {name: each["basis"] for name, each in revision.bases.items()}


def test_the_basis_of_custom_and_reverted_revisions_is_recorded(revise, revert, definition):
    keep_all = dict.fromkeys(RESOURCE_NAMES, "keep")
    assert basis_and_bases(definition.current_revision) == (
        "imported",
        dict.fromkeys(RESOURCE_NAMES, "imported"),
    )
    assert basis_and_bases(revise()) == ("custom", keep_all | {"cpu_cores": "custom"})
    assert basis_and_bases(revert(1, based_on=2)) == ("revert", keep_all | {"cpu_cores": "revert"})


def test_the_change_log_has_the_changed_values(revise):
    revise()
    entry = ChangeLog.objects.get(event="definition.revision_applied")
    assert entry.message == "branch-office v1.0: revision 2 applied"
    assert (entry.before, entry.after) == ({"cpu_cores": "4.00"}, {"cpu_cores": "8.00"})
    assert entry.reason == "labs were slow"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"reason": ""}, "reason"),
        ({"reason": "  "}, "reason"),
        ({"reason": "x" * 501}, "reason"),
        ({"requirements": {"cpu_cores": Decimal(4)}}, "requirements"),
        ({"requirements": {"cpu_cores": Decimal("4.001")}}, "requirements"),
        ({"requirements": {}}, "requirements"),
        ({"requirements": {"cpu_cores": Decimal("-0.5")}}, "cpu_cores"),
        ({"requirements": {"memory_gb": Decimal("Infinity")}}, "memory_gb"),
        ({"requirements": {"storage_gb": Decimal("1e9")}}, "storage_gb"),
        ({"requirements": {"storage_gb": Decimal("1e40")}}, "storage_gb"),
        ({"requirements": {"petrol": Decimal(1)}}, "petrol"),
    ],
)
def test_an_invalid_revision_is_rejected_and_changes_nothing(changes, field, revise, definition):
    with pytest.raises(InvalidInput) as caught:
        revise(**changes)
    assert list(caught.value.fields) == [field]
    assert numbers(definition) == ([1], 1)
    assert not ChangeLog.objects.filter(event="definition.revision_applied").exists()


@pytest.mark.parametrize("based_on", [0, 1, 3])
def test_a_change_based_on_an_older_revision_is_rejected(based_on, revise, definition):
    revise()
    with pytest.raises(StateConflict, match="ada applied revision 2 a moment ago") as caught:
        revise(requirements={"cpu_cores": Decimal(2)}, based_on=based_on)
    assert caught.value.details == {"current": 2, "based_on": based_on}
    assert numbers(definition) == ([1, 2], 2)


def test_the_second_of_two_admins_with_the_same_page_open_is_rejected(revise, definition):
    other_copy = LabletDefinition.objects.get(pk=definition.pk)
    revise(requirements={"cpu_cores": Decimal(6)})
    with pytest.raises(StateConflict):
        revise(definition=other_copy, requirements={"cpu_cores": Decimal(9)})
    assert DefinitionRevision.objects.get(number=2).cpu_cores == 6


VNC = {"node_label": "r1", "protocol": "vnc", "outside": 5044}


def test_a_new_port_template_alone_is_a_revision(revise):
    revision = revise(requirements={}, port_template=[VNC])
    assert revision.port_template == [VNC | {"name": "r1_vnc", "inside": None, "transport": "tcp"}]
    assert revision.port_changes.to_dict() == {
        "added": ["r1_vnc"],
        "removed": ["r1_serial", "host_pat"],
        "changed": [],
    }
    entry = ChangeLog.objects.get(event="definition.revision_applied")
    assert (entry.before, entry.after) == (
        {"ports": ["r1 serial:5041", "host pat:2022:22"]},
        {"ports": ["r1 vnc:5044"]},
    )


@pytest.mark.parametrize(
    ("ports", "problem"),
    [
        ([VNC | {"node_label": "r9"}], "Port 1, “r9 vnc:5044”: There is no node “r9”."),
        ([VNC, VNC], "is already used by r1 (port 1)."),
        ([VNC | {"outside": 70_000}], "out of range: 1 to 65535"),
        ([VNC | {"protocol": "ftp"}], "This is not a port."),
        ([VNC | {"inside": 5}], "is not of the form vnc:<port>"),
        ([VNC | {"transport": "udp"}], "is not of the form vnc:<port>"),
        ([VNC | {"name": "screen"}], "its name is r1_vnc, not screen."),
        ([VNC | {"outside": 5000 + each} for each in range(65)], "A node has at most 64 ports."),
        ([{"node_label": "", "tag": "vnc:5044"}], "The label of a node is missing."),
    ],
)
def test_a_port_template_is_checked_as_on_import(ports, problem, revise, definition):
    with pytest.raises(InvalidInput) as caught:
        revise(requirements={}, port_template=ports)
    assert list(caught.value.fields) == ["port_template"]
    assert problem in caught.value.message
    assert numbers(definition) == ([1], 1)


def test_an_unchanged_port_template_is_rejected(revise, definition):
    with pytest.raises(InvalidInput, match="The values are the same as in revision 1") as caught:
        revise(requirements={}, port_template=definition.current_revision.port_template)
    assert list(caught.value.fields) == ["port_template"]


def test_reverting_restores_the_ports(revise, revert, definition):
    revise(port_template=[VNC])
    revision = revert(number=1, based_on=2)
    assert revision.port_template == definition.revisions.get(number=1).port_template
    assert revision.port_changes.added == ("r1_serial", "host_pat")


def test_a_revert_is_a_new_revision_that_refers_to_the_reverted_one(revise, revert, definition):
    revise()
    revision = DefinitionRevision.objects.get(pk=revert(number=1, based_on=2).pk)
    first = definition.revisions.get(number=1)
    assert numbers(definition) == ([1, 2, 3], 3)
    assert revision.reverts.number == 2
    assert revision.snapshot == first.snapshot
    assert revision.reason == "it was better"


def test_reverting_to_a_much_older_revision(revise, revert, definition):
    revise(requirements={"cpu_cores": Decimal(5)})
    revise(requirements={"cpu_cores": Decimal(6)}, based_on=2)
    assert revert(number=1, based_on=3).cpu_cores == 4


def test_reverting_to_an_unknown_revision_is_rejected(revert, definition):
    with pytest.raises(NotFound, match="has no revision 7"):
        revert(number=7, based_on=1)
    assert numbers(definition) == ([1], 1)


def test_reverting_to_the_current_revision_changes_nothing(revert, definition):
    with pytest.raises(InvalidInput, match="The values are the same as in revision 1"):
        revert(number=1, based_on=1)
    assert numbers(definition) == ([1], 1)


def test_reverting_from_a_stale_page_is_rejected(revise, revert, definition):
    revise()
    with pytest.raises(StateConflict):
        revert(number=1, based_on=1)
    assert numbers(definition) == ([1, 2], 2)


def test_reverting_needs_a_reason(revise, revert, definition):
    revise()
    with pytest.raises(InvalidInput):
        revert(number=1, based_on=2, reason=" ")
