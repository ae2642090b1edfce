"""Serializers of the API. Business rules are in the services."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rest_framework import serializers

from lcm.api.amounts import NewRequirementsSerializer, RequirementsSerializer
from lcm.cml.ports import MAX_PORT, PROTOCOLS, TCP, UDP
from lcm.cml.topology.limits import MAX_NODE_NAME, MAX_NODES
from lcm.cml.topology.nodes import MAX_RAM_MB
from lcm.domain.resources import RESOURCE_NAMES
from lcm.domain.roles import role_of
from lcm.models import (
    DefinitionRevision,
    DefinitionStatus,
    Job,
    Kernel,
    LabletDefinition,
    LabletSession,
    Placement,
    Priority,
    Project,
    RevisionBasis,
    SessionTransition,
    User,
)
from lcm.models.definitions import KEEP
from lcm.models.sessions import STATUS_CHOICES
from lcm.selectors.definitions import topology_text
from lcm.selectors.sessions import details_of

MAX_DURATION = timedelta(days=365)


class ReasonSerializer(serializers.Serializer[object]):
    reason = serializers.CharField(max_length=500)


class JobSerializer(serializers.ModelSerializer[Job]):
    percent = serializers.IntegerField(read_only=True, allow_null=True)

    class Meta:
        model = Job
        fields = [
            "id", "kind", "title", "state", "actor", "created_at", "last_progress_at", "finished_at", "total",
            "done", "rejected", "percent", "result", "notes", "error",
        ]  # fmt: skip


# --- definitions -------------------------------------------------------------------------------------


class PortSerializer(serializers.Serializer[object]):
    name = serializers.CharField()
    node_label = serializers.CharField()
    protocol = serializers.CharField()
    outside = serializers.IntegerField()
    inside = serializers.IntegerField(allow_null=True)
    transport = serializers.CharField()


class ResourceBasisSerializer(serializers.Serializer[object]):
    basis = serializers.ChoiceField(
        choices=[KEEP, *(each.value for each in RevisionBasis if each != RevisionBasis.MIXED)],
        help_text="How the value was chosen. `keep`: not chosen in the review, or not changed by a manual "
        "revision or a revert.",
    )
    source = serializers.ChoiceField(  # type: ignore[assignment]
        choices=["used", "allocated"],
        allow_null=True,
        help_text="Figures of the observed sessions; null if the value does not come from sessions.",
    )


class PortChangesSerializer(serializers.Serializer[object]):
    added = serializers.ListField(child=serializers.CharField())
    removed = serializers.ListField(child=serializers.CharField())
    changed = serializers.ListField(child=serializers.CharField())


class RevisionSerializer(serializers.ModelSerializer[DefinitionRevision]):
    requirements = RequirementsSerializer(read_only=True)
    port_template = PortSerializer(many=True, read_only=True)
    bases = serializers.DictField(
        child=ResourceBasisSerializer(), read_only=True, help_text="By resource: `cpu_cores`, `memory_gb` …"
    )
    port_changes = PortChangesSerializer(
        read_only=True, help_text="Names of ports that differ from the previous revision."
    )
    reverts = serializers.IntegerField(source="reverts.number", read_only=True, default=None, allow_null=True)

    class Meta:
        model = DefinitionRevision
        fields = [
            "number", "requirements", "port_template", "port_changes", "before", "basis", "bases", "reason",
            "actor", "created_at", "reverts", "outcome", "outcome_at",
        ]  # fmt: skip


class DefinitionSerializer(serializers.ModelSerializer[LabletDefinition]):
    revision = serializers.IntegerField(source="current_revision.number", read_only=True)
    requirements = RequirementsSerializer(source="current_revision.requirements", read_only=True)

    class Meta:
        model = LabletDefinition
        fields = [
            "id", "name", "version", "description", "status", "system", "pool", "placement", "preemptible",
            "awaits_arrival", "slot_labels", "max_duration", "node_count", "topology_hash", "revision",
            "requirements",
            "needs_review", "review_reasons", "created_at", "updated_at",
        ]  # fmt: skip


class NodeSerializer(serializers.Serializer[object]):
    id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    node_definition = serializers.CharField()
    image_definition = serializers.CharField(allow_null=True)
    cpus = serializers.IntegerField(allow_null=True)
    cpu_limit = serializers.IntegerField(allow_null=True)
    ram_mb = serializers.IntegerField(allow_null=True)
    boot_disk_gb = serializers.IntegerField(allow_null=True)
    data_volume_gb = serializers.IntegerField(allow_null=True)
    tags = serializers.ListField(child=serializers.CharField())
    cpu_cores = serializers.DecimalField(max_digits=8, decimal_places=2)
    memory_mb = serializers.IntegerField()
    storage_gb = serializers.DecimalField(max_digits=10, decimal_places=2)


class LinkSerializer(serializers.Serializer[object]):
    id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    n1 = serializers.CharField()
    i1 = serializers.CharField()
    n2 = serializers.CharField()
    i2 = serializers.CharField()


class DefinitionDetailSerializer(DefinitionSerializer):
    nodes = NodeSerializer(many=True, read_only=True)
    links = LinkSerializer(many=True, read_only=True)
    port_template = PortSerializer(source="current_revision.port_template", many=True, read_only=True)
    topology_yaml = serializers.SerializerMethodField(
        help_text="As imported; node configurations are redacted for roles below Operator. "
        "Empty for a definition without a topology."
    )

    def get_topology_yaml(self, definition: LabletDefinition) -> str:
        return topology_text(definition, role_of(self.context["request"].user))

    class Meta(DefinitionSerializer.Meta):
        fields = [*DefinitionSerializer.Meta.fields, "topology_yaml", "nodes", "links", "port_template"]


class DefinitionSettingsSerializer(serializers.Serializer[object]):
    """Settings of a new definition, imported or created."""

    version = serializers.CharField(max_length=20, default="1.0")
    description = serializers.CharField(max_length=500, allow_blank=True, default="")
    system = serializers.CharField(max_length=30, default="cml")
    pool = serializers.CharField(max_length=63, allow_blank=True, default="")
    placement = serializers.ChoiceField(choices=Placement.choices, default=Placement.TOGETHER)
    preemptible = serializers.BooleanField(default=False)
    slot_labels = serializers.DictField(child=serializers.CharField(max_length=63), required=False)
    awaits_arrival = serializers.BooleanField(default=False)
    max_duration = serializers.DurationField(
        default=timedelta(hours=8), min_value=timedelta(minutes=1), max_value=MAX_DURATION
    )
    status = serializers.ChoiceField(choices=DefinitionStatus.choices, default=DefinitionStatus.DRAFT)


class DefinitionImportSerializer(DefinitionSettingsSerializer):
    topology = serializers.CharField(
        trim_whitespace=False, help_text="The CML topology as YAML, 2 MB at most."
    )
    dry_run = serializers.BooleanField(
        default=False, help_text="Return the imported values without saving them."
    )
    name = serializers.CharField(
        max_length=63, required=False, help_text="Required unless this is a dry run."
    )
    requirements = RequirementsSerializer(required=False)


class NewNodeSerializer(serializers.Serializer[object]):
    """A node. Sizes set its share of the requirements; a resource without sizes is divided equally."""

    label = serializers.CharField(max_length=MAX_NODE_NAME)  # type: ignore[assignment]
    node_definition = serializers.CharField(
        max_length=MAX_NODE_NAME, required=False, help_text="Kind of node. Default: the system."
    )
    cpu_cores = serializers.DecimalField(max_digits=8, decimal_places=2, min_value=0, required=False)
    memory_mb = serializers.IntegerField(min_value=0, max_value=MAX_RAM_MB, required=False)
    storage_gb = serializers.DecimalField(max_digits=10, decimal_places=2, min_value=0, required=False)


class NewPortSerializer(serializers.Serializer[object]):
    """A port of a new template."""

    node_label = serializers.CharField(max_length=MAX_NODE_NAME, help_text="A node of the definition.")
    protocol = serializers.ChoiceField(choices=sorted(PROTOCOLS))
    outside = serializers.IntegerField(
        min_value=1,
        max_value=MAX_PORT,
        help_text="Unique in the definition; each session gets its own ports.",
    )
    inside = serializers.IntegerField(
        min_value=0,
        max_value=MAX_PORT,
        allow_null=True,
        default=None,
        help_text="The port on the node; for serial, the number of the line.",
    )
    transport = serializers.ChoiceField(choices=[TCP, UDP], default=TCP)
    name = serializers.CharField(
        required=False, help_text="LCM derives it from node and protocol; any other name is rejected."
    )


class NewDefinitionSerializer(DefinitionSettingsSerializer):
    """A definition without a topology, for controllers that know how to run it."""

    name = serializers.CharField(max_length=63)
    requirements = NewRequirementsSerializer()
    nodes = serializers.ListField(
        child=NewNodeSerializer(),
        required=False,
        allow_empty=False,
        min_length=1,
        max_length=MAX_NODES,
        help_text="One kernel per node. Default: one node with the name of the definition.",
    )
    port_template = NewPortSerializer(many=True, required=False)


class TopologySummarySerializer(serializers.Serializer[object]):
    """Summary of an imported topology."""

    title = serializers.CharField()
    description = serializers.CharField()
    schema_version = serializers.CharField()
    node_count = serializers.IntegerField()
    nodes = NodeSerializer(many=True)
    links = LinkSerializer(many=True)
    ports = PortSerializer(many=True)
    requirements = RequirementsSerializer()
    assumptions = serializers.ListField(child=serializers.CharField())
    warnings = serializers.ListField(child=serializers.CharField())
    epoch = serializers.CharField()


class ImportResultSerializer(serializers.Serializer[object]):
    definition = DefinitionSerializer(allow_null=True, help_text="Null for a dry run.")
    topology = TopologySummarySerializer()


class DefinitionChangeSerializer(serializers.Serializer[object]):
    description = serializers.CharField(max_length=500, allow_blank=True, required=False)
    system = serializers.CharField(max_length=30, required=False)
    pool = serializers.CharField(max_length=63, allow_blank=True, required=False)
    placement = serializers.ChoiceField(choices=Placement.choices, required=False)
    preemptible = serializers.BooleanField(required=False)
    awaits_arrival = serializers.BooleanField(required=False)
    slot_labels = serializers.DictField(child=serializers.CharField(max_length=63), required=False)
    max_duration = serializers.DurationField(
        required=False, min_value=timedelta(minutes=1), max_value=MAX_DURATION
    )
    reason = serializers.CharField(
        max_length=500, allow_blank=True, required=False, help_text="Recorded in the change log."
    )


class StatusChangeSerializer(serializers.Serializer[object]):
    status = serializers.ChoiceField(choices=DefinitionStatus.choices)
    reason = serializers.CharField(
        max_length=500, allow_blank=True, default="", help_text="Required to deprecate the definition."
    )


class RevertSerializer(ReasonSerializer):
    based_on = serializers.IntegerField(
        min_value=1, help_text="The revision that the caller expects to be current."
    )


class ReviseSerializer(RevertSerializer):
    requirements = RequirementsSerializer(default=dict)
    port_template = NewPortSerializer(
        many=True, required=False, help_text="All ports of new sessions. Default: the current ports."
    )


# --- sessions ----------------------------------------------------------------------------------------


class SessionSerializer(serializers.ModelSerializer[LabletSession]):
    definition_name = serializers.CharField(source="definition.name", read_only=True)
    revision = serializers.IntegerField(source="revision.number", read_only=True)
    owner_name = serializers.CharField(source="owner.username", read_only=True)
    project_name = serializers.CharField(source="project.name", read_only=True)
    domain_name = serializers.CharField(source="project.domain.name", read_only=True)

    class Meta:
        model = LabletSession
        fields = [
            "id", "definition", "definition_name", "revision", "owner", "owner_name", "project",
            "project_name", "domain_name", "priority", "starts_at", "ends_at", "status",
            "status_since", "attempt", "pool", "arrived_at", "created_at", "observation_count", "observed_at",
            "port_drift_detected", "port_drift_open",
        ]  # fmt: skip


class KernelSerializer(serializers.ModelSerializer[Kernel]):
    class Meta:
        model = Kernel
        fields = [
            "id", "node_label", "node_definition", *RESOURCE_NAMES, "status",
            "attempt", "started_at", "terminated_at",
        ]  # fmt: skip


class TransitionSerializer(serializers.ModelSerializer[SessionTransition]):
    class Meta:
        model = SessionTransition
        fields = ["from_status", "to_status", "at", "actor", "reason", "attempt"]


class SessionDetailSerializer(SessionSerializer):
    requirements = RequirementsSerializer(source="revision.requirements", read_only=True)
    kernels = KernelSerializer(many=True, read_only=True)
    transitions = TransitionSerializer(many=True, read_only=True)
    allocated_ports = serializers.DictField(
        child=serializers.IntegerField(),
        read_only=True,
        allow_null=True,
        help_text="Reserved ports by name: current ones, or the ones at the last observation. "
        "Null if the session ended and its ports were never observed.",
    )
    observed_ports = serializers.DictField(
        child=serializers.IntegerField(),
        read_only=True,
        allow_null=True,
        help_text="By name, from the last observation; null if never observed.",
    )
    observed_resources = serializers.DictField(
        read_only=True, allow_null=True, help_text="The complete last observation; null if never observed."
    )

    class Meta(SessionSerializer.Meta):
        fields = [
            *SessionSerializer.Meta.fields, "requirements", "kernels", "transitions", "allocated_ports",
            "observed_ports", "observed_resources",
        ]  # fmt: skip

    def to_representation(self, instance: LabletSession) -> dict[str, Any]:
        shown: dict[str, Any] = super().to_representation(instance)
        return shown | details_of(instance)


class SessionRequestSerializer(serializers.Serializer[object]):
    definition = serializers.PrimaryKeyRelatedField(
        queryset=LabletDefinition.objects.select_related("current_revision")
    )
    owner = serializers.PrimaryKeyRelatedField(
        queryset=User.objects.filter(is_active=True), required=False, help_text="Default: the caller."
    )
    project = serializers.PrimaryKeyRelatedField(queryset=Project.objects.select_related("domain"))
    starts_at = serializers.DateTimeField(required=False, help_text="Default: now.")
    ends_at = serializers.DateTimeField()
    priority = serializers.ChoiceField(choices=Priority.choices, default=Priority.NORMAL)
    pool = serializers.CharField(max_length=63, allow_blank=True, default="")


class ExtendSerializer(serializers.Serializer[object]):
    ends_at = serializers.DateTimeField()
    reason = serializers.CharField(max_length=500, allow_blank=True, default="")


class PrioritySerializer(serializers.Serializer[object]):
    priority = serializers.ChoiceField(choices=Priority.choices)
    reason = serializers.CharField(max_length=500)


class TransitionRequestSerializer(serializers.Serializer[object]):
    from_status = serializers.ChoiceField(
        choices=STATUS_CHOICES,
        required=False,
        help_text="Rejected if the session's status has changed.",
    )
    to_status = serializers.ChoiceField(choices=STATUS_CHOICES)
    attempt = serializers.IntegerField(
        required=False, min_value=1, help_text="Rejected if the attempt has changed."
    )
    ends_at = serializers.DateTimeField(
        required=False,
        help_text="End of the timeslot that the step is based on. Rejected if the session now ends at "
        "another time, because it was extended.",
    )
    reason = serializers.CharField(max_length=500, allow_blank=True, default="")


class FailureSerializer(ReasonSerializer):
    """A failure that a controller reports; LCM decides how to continue."""

    from_status = serializers.ChoiceField(choices=STATUS_CHOICES, required=False)
    attempt = serializers.IntegerField(required=False, min_value=1)
    lab_removed = serializers.BooleanField(default=True, help_text="The lab no longer exists on the worker.")


class SessionSlotSerializer(serializers.Serializer[object]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    endpoint = serializers.CharField()


class SessionPartSerializer(serializers.Serializer[object]):
    slot = SessionSlotSerializer()
    nodes = serializers.ListField(
        child=serializers.CharField(), help_text="Labels of the nodes on this slot."
    )
    topology = serializers.CharField(allow_null=True, help_text="CML's YAML of these nodes only.")


class ControllerSessionSerializer(serializers.Serializer[Any]):
    """A session with the data that its controller needs."""

    id = serializers.UUIDField()
    attempt = serializers.IntegerField()
    status = serializers.ChoiceField(choices=STATUS_CHOICES)
    status_since = serializers.DateTimeField()
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    arrived_at = serializers.DateTimeField(allow_null=True)
    observed_at = serializers.DateTimeField(allow_null=True, help_text="Time of the last observation.")
    pool = serializers.CharField()
    definition = serializers.UUIDField()
    definition_name = serializers.CharField()
    awaits_arrival = serializers.BooleanField(help_text="The session runs only after its user has arrived.")
    revision = serializers.IntegerField()
    port_template = PortSerializer(many=True)
    topology = serializers.CharField(
        allow_null=True,
        help_text="CML's YAML, until the lab is imported; empty if the definition has no topology.",
    )
    kernels = serializers.DictField(child=serializers.UUIDField(), help_text="By node label.")
    slot = SessionSlotSerializer(allow_null=True)
    parts = SessionPartSerializer(
        many=True, help_text="One lab per slot, if the session is on several slots."
    )
    dropped_links = serializers.ListField(
        child=serializers.CharField(), help_text="Links between its slots, until the labs are imported."
    )
    allocated_ports = serializers.DictField(child=serializers.IntegerField(), help_text="By name.")
    requests = serializers.DictField(
        child=serializers.DateTimeField(), help_text="Pending requests of people, with their times."
    )
