"""Import, create, edit and revise lablet definitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from lcm.cml.topology.epoch import topology_epoch
from lcm.cml.topology.parser import Topology, TopologyError, parse_topology
from lcm.cml.topology.plain_nodes import build_nodes, label_problems
from lcm.cml.topology.port_templates import TemplateError, check_template, port_changes, read_entry
from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput, StateConflict
from lcm.domain.resources import RESOURCE_NAMES, Amounts
from lcm.extensions import Extension
from lcm.models import (
    DefinitionRevision,
    DefinitionStatus,
    LabletDefinition,
    RevisionBasis,
    RevisionOutcome,
)
from lcm.models.definitions import KEEP
from lcm.selectors.definitions import revision_numbered
from lcm.services.changelog import apply_changes, differences, log_change
from lcm.services.validation import (
    clean_and_save,
    clean_model,
    delete_if_unused,
    refuse_unknown,
    require_reason,
)

MAX_AMOUNT = 1_000_000
EDITABLE_FIELDS = (
    "description",
    "system",
    "pool",
    "placement",
    "preemptible",
    "awaits_arrival",
    "slot_labels",
    "max_duration",
)


def read_topology(*, text: str | bytes) -> Topology:
    """Parse a CML topology; raise InvalidInput with the position of each problem."""
    try:
        return parse_topology(text)
    except TopologyError as error:
        fields = {
            "topology" if path == "topology" else f"topology.{path}": texts
            for path, texts in error.as_fields().items()
        }
        raise InvalidInput(fields) from error


def import_definition(
    *,
    topology: str | bytes,
    name: str,
    description: str = "",
    requirements: Mapping[str, Decimal] | None = None,
    actor: Actor,
    now: datetime,
    **settings: Any,
) -> LabletDefinition:
    """Create a definition from a topology. Requirements that are not given are estimated from the nodes.

    `settings` are other fields of the model.
    """
    parsed = read_topology(text=topology)
    definition = LabletDefinition(
        name=name,
        description=description or parsed.description[:500],
        topology_yaml=topology.decode() if isinstance(topology, bytes) else topology,
        topology_hash=parsed.epoch,
        nodes=[node.to_dict() for node in parsed.nodes],
        links=[link.to_dict() for link in parsed.links],
        node_count=parsed.node_count,
        created_at=now,
        **settings,
    )
    revision = DefinitionRevision(
        basis=RevisionBasis.IMPORTED,
        reason="Estimated from the topology",
        port_template=[port.to_dict() for port in parsed.ports],
        **_amounts(requirements or {}, parsed.requirements.as_dict()),
    )
    return _save_new(definition, revision, verb="imported", actor=actor, now=now)


def create_definition(
    *,
    name: str,
    requirements: Mapping[str, Decimal],
    nodes: Sequence[Mapping[str, Any]] = (),
    port_template: Sequence[Mapping[str, Any]] = (),
    system: str = "cml",
    actor: Actor,
    now: datetime,
    **settings: Any,
) -> LabletDefinition:
    """Create a definition without a topology. If no nodes are given, it has one node with its own name.

    A controller that knows the definition runs its kernels. `settings` are other fields of the model.
    """
    entries = [{"node_definition": system, **node} for node in nodes or [{"label": name}]]
    labels = [node["label"] for node in entries]
    problems = {"nodes": duplicates} if (duplicates := label_problems(labels)) else {}
    ports = [read_entry(port) for port in port_template]
    try:
        template = check_template(ports, labels)
    except TemplateError as error:
        problems["port_template"] = error.problems
    if problems:
        raise InvalidInput(problems)
    amounts = _amounts(requirements, Amounts().as_dict())
    built = build_nodes(entries, ports, amounts)
    definition = LabletDefinition(
        name=name,
        system=system,
        topology_yaml="",
        topology_hash=topology_epoch(built, ()),
        nodes=[node.to_dict() for node in built],
        node_count=len(built),
        created_at=now,
        **settings,
    )
    revision = DefinitionRevision(
        basis=RevisionBasis.CUSTOM,
        reason="Created without a topology",
        port_template=[port.to_dict() for port in template],
        **amounts,
    )
    return _save_new(definition, revision, verb="created", actor=actor, now=now)


def _save_new(
    definition: LabletDefinition,
    revision: DefinitionRevision,
    *,
    verb: str,
    actor: Actor,
    now: datetime,
) -> LabletDefinition:
    """Save a definition with its first revision. `verb` says in the change log where it comes from."""
    nodes = definition.node_count
    with transaction.atomic():
        clean_and_save(definition, exclude={"current_revision"})
        revision.definition, revision.number, revision.created_at = definition, 1, now
        revision.actor, revision.created_by_id = actor.label, actor.user_id
        revision.outcome = None
        revision.bases = _bases(RevisionBasis(revision.basis), {}, revision.requirements)
        clean_model(revision)
        revision.save(force_insert=True)
        definition.current_revision = revision
        definition.save(update_fields=["current_revision"])
        after = {"status": definition.status, "topology_hash": definition.topology_hash}
        log_change(
            definition,
            actor=actor,
            event=f"definition.{verb}",
            message=f"{definition} {verb} with {nodes} {'node' if nodes == 1 else 'nodes'}",
            after={**revision.snapshot["requirements"], **after},
            now=now,
        )
        for effect in Extension.installed().definition_created:
            effect(definition=definition, now=now)
    return definition


def update_definition(
    *,
    definition: LabletDefinition,
    actor: Actor,
    reason: str = "",
    needs_reason: bool = False,
    **changes: Any,
) -> LabletDefinition:
    """Change fields that are not part of a revision, such as description, pool or placement.

    With `needs_reason`, a reason is required if more than the description changes.
    """
    refuse_unknown(changes, EDITABLE_FIELDS, _("This cannot be edited here."))
    with transaction.atomic():
        old, new = apply_changes(definition, changes)
        clean_model(definition, exclude={"current_revision"})
        if needs_reason and new.keys() - {"description"}:
            require_reason(reason)
        if new:
            definition.save(update_fields=[*changes, "updated_at"])
            message = f"{definition} edited: {', '.join(name.replace('_', ' ') for name in new)}"
            log_change(
                definition,
                actor=actor,
                event="definition.edited",
                message=message,
                reason=reason,
                before=old,
                after=new,
            )
    return definition


def set_definition_status(
    *, definition: LabletDefinition, status: DefinitionStatus, actor: Actor, reason: str = ""
) -> LabletDefinition:
    """Change the status of a definition. Deprecating needs a reason. Sessions are not affected."""
    old = DefinitionStatus(definition.status)
    if old == status:
        raise StateConflict(
            _("%(definition)s is %(status)s already.")
            % {"definition": definition, "status": status.label.lower()},
            details={"status": old.value},
        )
    if status == DefinitionStatus.DEPRECATED:
        require_reason(reason)
    with transaction.atomic():
        moved = LabletDefinition.objects.filter(pk=definition.pk, status=old).update(
            status=status, updated_at=timezone.now()
        )
        if not moved:
            raise StateConflict(
                _("%(definition)s was changed a moment ago. Reload it and try again.")
                % {"definition": definition}
            )
        definition.status = status
        log_change(
            definition,
            actor=actor,
            event="definition.status_changed",
            message=f"{definition}: {old.name.capitalize()} → {status.name.capitalize()}",
            reason=reason,
            before={"status": old},
            after={"status": status},
        )
    return definition


def revise_definition(
    *,
    definition: LabletDefinition,
    requirements: Mapping[str, Decimal],
    based_on: int,
    reason: str,
    actor: Actor,
    now: datetime,
    basis: RevisionBasis = RevisionBasis.CUSTOM,
    port_template: Sequence[Mapping[str, Any]] | None = None,
    reverts: DefinitionRevision | None = None,
    aggregate: dict[str, Any] | None = None,
    bases: Mapping[str, dict[str, str | None]] | None = None,
) -> DefinitionRevision:
    """Create a new current revision; raise StateConflict if `based_on` is no longer the current one.

    `bases` holds basis and source of the resources for which they differ from `basis`.
    `port_template` replaces the whole template; None keeps it.
    """
    require_reason(reason)
    with transaction.atomic():
        current = _current(definition, based_on)
        amounts = _amounts(requirements, current.requirements)
        ports = current.port_template if port_template is None else list(port_template)
        # A revert copies the old template unchecked: the rules for templates may have changed since.
        if port_template is not None and reverts is None:
            ports = _checked_ports(definition, port_template)
        revision = DefinitionRevision(
            definition=definition,
            number=current.number + 1,
            port_template=ports,
            before=current.snapshot,
            basis=basis,
            bases=_bases(basis, current.requirements, amounts) | dict(bases or {}),
            aggregate=aggregate,
            reason=reason,
            actor=actor.label,
            created_by_id=actor.user_id,
            created_at=now,
            reverts=reverts,
            **amounts,
        )
        clean_model(revision)
        if revision.snapshot == current.snapshot:
            field = "requirements" if requirements or port_template is None else "port_template"
            text = _("The values are the same as in revision %(current)s. Change at least one.")
            raise InvalidInput({field: text % {"current": current.number}})
        revision.save(force_insert=True)
        _make_current(definition, old=current, new=revision)
        _log_revision(definition, current, revision, actor, now)
        for effect in Extension.installed().definition_revised:
            effect(definition=definition, now=now)
    return revision


def _log_revision(
    definition: LabletDefinition,
    old: DefinitionRevision,
    new: DefinitionRevision,
    actor: Actor,
    now: datetime,
) -> None:
    before, after = differences(old.snapshot["requirements"], new.snapshot["requirements"])
    ports_before, ports_after = _changed_ports(old.port_template, new.port_template)
    log_change(
        definition,
        actor=actor,
        event="definition.reverted" if new.reverts else "definition.revision_applied",
        message=f"{definition}: {new} applied",
        reason=new.reason,
        before=before | ports_before,
        after=after | ports_after,
        now=now,
    )


def revert_definition(
    *, definition: LabletDefinition, number: int, based_on: int, reason: str, actor: Actor, now: datetime
) -> DefinitionRevision:
    """Create a revision with the requirements and ports of an older one."""
    target = revision_numbered(definition, number)
    reverted = definition.revisions.filter(number=based_on).first()
    return revise_definition(
        definition=definition,
        requirements=target.requirements,
        port_template=target.port_template,
        based_on=based_on,
        reason=reason,
        basis=RevisionBasis.REVERT,
        reverts=reverted,
        actor=actor,
        now=now,
    )


def delete_definition(*, definition: LabletDefinition, reason: str, actor: Actor) -> None:
    """Delete a definition that has no sessions."""
    require_reason(reason)
    with transaction.atomic():
        log_change(
            definition,
            actor=actor,
            event="definition.deleted",
            message=f"{definition} deleted",
            reason=reason,
        )
        LabletDefinition.objects.filter(pk=definition.pk).update(current_revision=None)
        delete_if_unused(definition)


def _bases(
    basis: RevisionBasis, before: Mapping[str, Decimal], after: Mapping[str, Decimal]
) -> dict[str, dict[str, str | None]]:
    """Return the basis of each resource: the given one if the amount changes, else `keep`."""
    return {
        name: {"basis": KEEP if before.get(name) == value else basis.value, "source": None}
        for name, value in after.items()
    }


def _amounts(requirements: Mapping[str, Decimal], fallback: Mapping[str, Decimal]) -> dict[str, Decimal]:
    text = _("Unknown resource. Use %(names)s.")
    refuse_unknown(requirements, RESOURCE_NAMES, text % {"names": ", ".join(RESOURCE_NAMES)})
    amounts = {**fallback, **requirements}
    text = _("Must be at least 0 and less than %(limit)s; you entered %(value)s.")
    out_of_range = {
        name: text % {"limit": f"{MAX_AMOUNT:,}", "value": value}
        for name, value in amounts.items()
        if not value.is_finite() or not 0 <= value < MAX_AMOUNT
    }
    if out_of_range:
        raise InvalidInput(out_of_range)
    return {name: value.quantize(Decimal("0.01")) for name, value in amounts.items()}


def _checked_ports(
    definition: LabletDefinition, entries: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    labels = {node["label"] for node in definition.nodes}
    try:
        template = check_template([read_entry(entry) for entry in entries], labels)
    except TemplateError as error:
        raise InvalidInput({"port_template": error.problems}) from error
    return [entry.to_dict() for entry in template]


def _changed_ports(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the ports that differ, before and after, for the change log."""
    changes = port_changes(before, after)
    if not changes:
        return {}, {}
    names = {*changes.added, *changes.removed, *changes.changed}

    def describe_ports(template: Sequence[Mapping[str, Any]]) -> list[str]:
        return [str(read_entry(entry)) for entry in template if entry["name"] in names]

    return {"ports": describe_ports(before)}, {"ports": describe_ports(after)}


def _current(definition: LabletDefinition, based_on: int) -> DefinitionRevision:
    # Lock before reading the revision: a join would return the revision from before the lock wait.
    fresh = LabletDefinition.objects.select_for_update().get(pk=definition.pk)
    current = fresh.revision
    if current.number != based_on:
        raise StateConflict(
            _("%(actor)s applied revision %(current)s a moment ago. Review it and try again.")
            % {"actor": current.actor, "current": current.number},
            details={"current": current.number, "based_on": based_on},
        )
    return current


def _make_current(definition: LabletDefinition, *, old: DefinitionRevision, new: DefinitionRevision) -> None:
    moved = LabletDefinition.objects.filter(pk=definition.pk, current_revision=old).update(
        current_revision=new, updated_at=new.created_at
    )
    if not moved:
        raise StateConflict(
            _("%(definition)s has a newer revision since a moment ago. Reload it and try again.")
            % {"definition": definition}
        )
    undecided = Q(outcome=None) | Q(outcome=RevisionOutcome.WATCHING)
    DefinitionRevision.objects.filter(undecided, pk=old.pk).update(
        outcome=RevisionOutcome.SUPERSEDED, outcome_at=new.created_at
    )
    definition.current_revision = new
