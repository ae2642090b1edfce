"""Serializers of pools, slots, reservations and ticks. The rules are in the services."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from lcm.api.amounts import AmountsSerializer
from lcm.cml.ports import PROTOCOLS, TCP, UDP
from lcm.domain.resources import RESOURCE_NAMES
from lcm.models import Priority
from lcm.models.sessions import KernelStatus
from scheduling.models import LaunchAttempt, Pool, PortAllocation, Reservation, Slot, SlotState, TickRun
from scheduling.models.pools import MAX_SLOTS
from scheduling.selectors.pools import POOL_STATES
from scheduling.selectors.session_access import AccessState
from scheduling.services.pools import EDITABLE
from scheduling.services.reservations import DEFAULT_TTL, MAX_TTL


class ResourcesSerializer(AmountsSerializer):
    """Amounts of resources; omitted ones are 0 or unknown."""


# --- pools -------------------------------------------------------------------------------------------


class PoolSerializer(serializers.ModelSerializer[Pool]):
    state = serializers.ChoiceField(choices=POOL_STATES, read_only=True)
    ready = serializers.IntegerField(read_only=True, help_text="READY slots.")
    occupied = serializers.IntegerField(
        read_only=True, help_text="Slots with an instance, including starting and terminating ones."
    )
    leases = serializers.IntegerField(read_only=True, help_text="Leases held on READY slots.")
    lease_limit = serializers.IntegerField(read_only=True, help_text="Leases READY slots can hold.")
    waiting = serializers.IntegerField(
        read_only=True,
        help_text="Reservations without a slot; advance bookings count once they join the queue.",
    )
    oldest_waiting_since = serializers.DateTimeField(
        read_only=True, allow_null=True, help_text="Start of the longest wait."
    )

    class Meta:
        model = Pool
        fields = [
            "id", "name", "system", "runtime", *EDITABLE, "state", "stopped_reason", "backoff_until",
            "failures", "refused_offerings", "failed_workers", "ready", "occupied", "leases", "lease_limit",
            "waiting", "oldest_waiting_since", "created_at", "updated_at",
        ]  # fmt: skip


class SavedPoolSerializer(PoolSerializer):
    warnings = serializers.ListField(
        child=serializers.CharField(), read_only=True, help_text="Saved values that may be unintended."
    )

    class Meta(PoolSerializer.Meta):
        fields = [*PoolSerializer.Meta.fields, "warnings"]


class PoolFieldsSerializer(serializers.ModelSerializer[Pool]):
    """Fields of a pool that an Admin may set, with the limits of the model."""

    runtime_settings = serializers.DictField(required=False, help_text="Settings of the pool's runtime.")

    class Meta:
        model = Pool
        fields = [*EDITABLE]
        extra_kwargs = {
            "scheduler": {"trim_whitespace": False},
            "target_wait_seconds": {"help_text": "Seconds; the overview shows sessions that wait longer."},
            **{key: {"max_value": MAX_SLOTS} for key in ("min_slots", "warm_slots")},
            **{key: {"min_value": 0} for key in RESOURCE_NAMES},
            **{key: {"min_value": 1024, "max_value": 65535} for key in ("first_port", "last_port")},
        }


class PoolChangeSerializer(PoolFieldsSerializer):
    reason = serializers.CharField(
        max_length=500,
        allow_blank=True,
        required=False,
        help_text="Recorded in the change log. Required to disable the pool, to lower `max_slots` and to "
        "change `runtime_settings` or `scheduler`.",
    )

    class Meta(PoolFieldsSerializer.Meta):
        fields = [*EDITABLE, "reason"]


class PoolRequestSerializer(PoolFieldsSerializer):
    name = serializers.CharField(max_length=63)
    system = serializers.CharField(max_length=30, required=False, help_text="Default: `cml`.")
    runtime = serializers.CharField(max_length=30, required=False, help_text="Default: `simulated`.")

    class Meta(PoolFieldsSerializer.Meta):
        fields = ["name", "system", "runtime", *EDITABLE]


# --- slots -------------------------------------------------------------------------------------------


class SlotSerializer(serializers.ModelSerializer[Slot]):
    name = serializers.CharField(read_only=True)
    pool = serializers.CharField(source="pool.name", read_only=True)
    pool_id = serializers.UUIDField(read_only=True)

    class Meta:
        model = Slot
        fields = [
            "id", "name", "pool", "pool_id", "number", "state", "reason", "cordoned", "instance_id",
            "endpoint", "version", "offering", "is_spot", "labels", *RESOURCE_NAMES, "max_leases",
            "lease_count",
            "last_state_change", "state_deadline", "idle_since", "interruption_deadline", "last_heartbeat",
            "reported_capacity",
            "created_at",
        ]  # fmt: skip


class PortAllocationSerializer(serializers.ModelSerializer[PortAllocation]):
    class Meta:
        model = PortAllocation
        fields = ["port", "name", "session", "leaked", "created_at"]


class AttemptSerializer(serializers.ModelSerializer[LaunchAttempt]):
    class Meta:
        model = LaunchAttempt
        fields = [
            "id", "offering", "requested_at", "finished_at", "outcome", "instance_id", "category", "error",
        ]  # fmt: skip


class SlotDetailSerializer(SlotSerializer):
    reservations = serializers.ListField(
        child=serializers.UUIDField(), read_only=True, help_text="Reservations that hold its leases."
    )
    ports = PortAllocationSerializer(many=True, read_only=True)
    attempts = AttemptSerializer(many=True, read_only=True, help_text="The newest launches.")

    class Meta(SlotSerializer.Meta):
        fields = [*SlotSerializer.Meta.fields, "reservations", "ports", "attempts"]


class LabelsSerializer(serializers.Serializer[object]):
    labels = serializers.DictField(child=serializers.CharField(max_length=63))
    reason = serializers.CharField(max_length=500, help_text="Recorded in the change log.")


class NodeAddressSerializer(serializers.Serializer[object]):
    name = serializers.CharField(help_text="Name of the port.")
    protocol = serializers.ChoiceField(choices=sorted(PROTOCOLS))
    transport = serializers.ChoiceField(choices=[TCP, UDP])
    inside = serializers.IntegerField(allow_null=True, help_text="The port on the node.")
    host = serializers.CharField(help_text="Host of the worker; empty if unknown.")
    port = serializers.IntegerField(allow_null=True, help_text="The port on the worker.")
    url = serializers.CharField(
        help_text="For example `ssh://host:port`; `host:port` for a forwarded port without a known scheme; "
        "empty while host or port is unknown."
    )


class AccessWorkerSerializer(serializers.Serializer[object]):
    slot_id = serializers.UUIDField(source="slot.pk")
    slot = serializers.CharField(source="slot.name")
    state = serializers.ChoiceField(source="slot.state", choices=SlotState.choices)
    interruption_deadline = serializers.DateTimeField(
        source="slot.interruption_deadline", allow_null=True, help_text="When the provider takes it away."
    )
    host = serializers.CharField(help_text="Empty if unknown.")
    console = serializers.CharField(
        help_text="Address of the web console, of the lab if it is known; empty if there is none."
    )


class NodeAccessSerializer(serializers.Serializer[object]):
    label = serializers.CharField(source="kernel.node_label")  # type: ignore[assignment]
    node_definition = serializers.CharField(source="kernel.node_definition")
    state = serializers.ChoiceField(
        source="kernel.status", choices=KernelStatus.choices, help_text="The state of the kernel in LCM."
    )
    lab_state = serializers.CharField(
        help_text="The node's state in CML, such as `BOOTED`, at the last survey; empty if unknown."
    )
    lab_state_at = serializers.DateTimeField(allow_null=True, help_text="Time of that survey.")
    slot = serializers.CharField(source="worker.slot.name", default=None, allow_null=True)
    addresses = NodeAddressSerializer(many=True)


class AccessSheetSerializer(serializers.Serializer[object]):
    """How to connect to a session."""

    state = serializers.ChoiceField(
        choices=[each.value for each in AccessState], help_text="The nodes can be reached while `open`."
    )
    message = serializers.CharField(help_text="Why the nodes cannot be reached; empty if they can.")
    warnings = serializers.ListField(
        child=serializers.CharField(), help_text="For example that the slot is draining or interrupted."
    )
    workers = AccessWorkerSerializer(many=True)
    nodes = NodeAccessSerializer(many=True, help_text="Empty without a slot.")


class SessionMoveSerializer(serializers.Serializer[object]):
    pool = serializers.CharField(max_length=63, help_text="The new pool.")
    reason = serializers.CharField(max_length=500, help_text="Recorded in the change log.")


class LeakedPortSerializer(serializers.Serializer[object]):
    port = serializers.IntegerField(min_value=1, max_value=65_535)
    name = serializers.CharField(max_length=200, help_text="Where the port was found: lab, node and tag.")


class WorkerLabSerializer(serializers.Serializer[object]):
    session = serializers.UUIDField()
    attempt = serializers.IntegerField(min_value=1, max_value=32_767)
    lab = serializers.CharField(max_length=64, help_text="CML's id of the lab.")
    nodes = serializers.DictField(
        child=serializers.CharField(max_length=30), help_text="CML's state of each node, by label: `BOOTED`."
    )


class HeartbeatSerializer(serializers.Serializer[object]):
    version = serializers.CharField(
        max_length=60, allow_blank=True, default="", help_text="Versions on the worker."
    )
    capacity = ResourcesSerializer(required=False, allow_null=True, help_text="Capacity of the worker.")
    leaked_ports = serializers.ListField(
        child=LeakedPortSerializer(),
        required=False,
        allow_null=True,
        max_length=5_000,
        help_text="All ports in use without a session; omit if not observed.",
    )
    labs = serializers.ListField(
        child=WorkerLabSerializer(),
        required=False,
        allow_null=True,
        max_length=1_000,
        help_text="All labs of sessions on the worker, as old as the port observation; omit if not observed.",
    )
    ports_observed_seconds_ago = serializers.FloatField(
        required=False,
        allow_null=True,
        min_value=0,
        max_value=10**9,
        help_text="Age of the port observation at this heartbeat; default: five minutes.",
    )


class ControllerSlotSerializer(serializers.ModelSerializer[Slot]):
    """A slot with the fields that its controller needs."""

    name = serializers.CharField(read_only=True)
    pool = serializers.CharField(source="pool.name", read_only=True)

    class Meta:
        model = Slot
        fields = ["id", "name", "pool", "state", "endpoint", "version", "interruption_deadline"]


# A host name, an IPv4 address or an IPv6 address in brackets, and a port; no other URL component.
METRICS_ADDRESS = (
    r"^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])"
    r":([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$"
)


class LeaseRequestSerializer(serializers.Serializer[object]):
    holder = serializers.CharField(max_length=64, help_text="A name that no other controller has.")
    metrics_address = serializers.RegexField(
        METRICS_ADDRESS,
        max_length=200,
        required=False,
        default="",
        help_text="Host and port at which Prometheus can scrape it.",
    )
    clock_skew_seconds = serializers.DecimalField(
        max_digits=12,
        decimal_places=3,
        required=False,
        allow_null=True,
        default=None,
        help_text="How far its clock is ahead of LCM's, measured with the header `X-LCM-Time` of responses.",
    )


class PoolLeaseSerializer(serializers.Serializer[Any]):
    pool = serializers.CharField()
    held = serializers.BooleanField(help_text="The caller serves the pool until `expires_at`.")
    holder = serializers.CharField()
    expires_at = serializers.DateTimeField()


class BootTokenSerializer(serializers.Serializer[object]):
    slot_id = serializers.UUIDField()
    token = serializers.CharField(max_length=200)


class BootKeySerializer(serializers.Serializer[Any]):
    key = serializers.CharField(help_text="A controller's key; shown once.")
    expires_at = serializers.DateTimeField()
    slot = ControllerSlotSerializer()


class InterruptionSerializer(serializers.Serializer[object]):
    deadline = serializers.DateTimeField(help_text="When the provider terminates the worker.")


# --- reservations and ticks --------------------------------------------------------------------------


class ReservationSerializer(serializers.ModelSerializer[Reservation]):
    pool = serializers.CharField(source="pool.name", read_only=True)
    slot_name = serializers.CharField(source="slot.name", read_only=True, default=None, allow_null=True)
    resources = ResourcesSerializer(source="*", read_only=True)
    verdict = serializers.CharField(read_only=True)

    class Meta:
        model = Reservation
        fields = [
            "id", "pool", "session", "holder", "slot", "slot_name", "phase", "reason", "resources",
            "port_names", "priority", "preemptible", "spread", "labels", "devices", "held_slot", "held_until",
            "verdict", "attempt", "ttl_seconds", "created_at", "assigned_at",
            "expires_at", "released_at",
        ]  # fmt: skip


@extend_schema_field({"type": "integer", "minimum": 1, "maximum": MAX_TTL})
class TtlField(serializers.IntegerField):
    """Time to live in seconds; the service validates the range."""


class ReservationRequestSerializer(serializers.Serializer[object]):
    holder = serializers.CharField(
        max_length=100, required=False, help_text="The holder; default: the caller."
    )
    pool = serializers.CharField(
        max_length=63, allow_blank=True, default="", help_text="The name of a pool, or a system instead."
    )
    system = serializers.CharField(max_length=30, allow_blank=True, default="")
    resources = ResourcesSerializer()
    ttl = TtlField(default=DEFAULT_TTL, help_text="Seconds until it has to be renewed.")
    priority = serializers.ChoiceField(choices=Priority.choices, default=Priority.NORMAL)


class RenewSerializer(serializers.Serializer[object]):
    ttl = TtlField(
        required=False,
        help_text="Seconds from now until the reservation expires, for this renewal only. Default: the "
        "`ttl` that the reservation was made with.",
    )


class TickSerializer(serializers.ModelSerializer[TickRun]):
    pool = serializers.CharField(source="pool.name", read_only=True)
    step_ms = serializers.DictField(child=serializers.FloatField(), read_only=True)
    counts = serializers.DictField(child=serializers.IntegerField(), read_only=True)
    errors = serializers.DictField(child=serializers.CharField(), read_only=True)  # type: ignore[assignment]
    plugins = serializers.DictField(
        child=serializers.DictField(), read_only=True, help_text="Milliseconds and failures by plugin."
    )

    class Meta:
        model = TickRun
        fields = ["id", "pool", "started_at", "duration_ms", "step_ms", "counts", "errors", "plugins"]
