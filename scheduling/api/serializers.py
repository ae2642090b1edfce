"""Serializers of pools, slots, reservations and ticks. The rules are in the services."""

from __future__ import annotations

from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from lcm.models import Priority
from scheduling.models import LaunchAttempt, Pool, PortAllocation, Reservation, Slot, SpotPolicy, TickRun
from scheduling.placement.framework.configuration import MAX_CHARACTERS
from scheduling.selectors.pools import POOL_STATES
from scheduling.services.pools import EDITABLE
from scheduling.services.reservations import DEFAULT_TTL, MAX_TTL


def limits_of(name: str) -> dict[str, Any]:
    """Return the minimum and maximum of an integer field of a pool."""
    field: Any = Pool._meta.get_field(name)
    least = [each.limit_value for each in field.validators if isinstance(each, MinValueValidator)]
    largest = [each.limit_value for each in field.validators if isinstance(each, MaxValueValidator)]
    return {"min_value": max(least), "max_value": min(largest)}


MOST_SLOTS = limits_of("max_slots")["max_value"]
AMOUNTS = ("cpu_cores", "memory_gb", "storage_gb", "gpu")


class ResourcesSerializer(serializers.Serializer[Any]):
    cpu_cores = serializers.DecimalField(max_digits=8, decimal_places=2, required=False)
    memory_gb = serializers.DecimalField(max_digits=8, decimal_places=2, required=False)
    storage_gb = serializers.DecimalField(max_digits=10, decimal_places=2, required=False)
    gpu = serializers.DecimalField(max_digits=6, decimal_places=2, required=False)


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


class PoolChangeSerializer(serializers.Serializer[Any]):
    """Fields of a pool that an Admin may change. The model defines the limits."""

    description = serializers.CharField(max_length=300, allow_blank=True, required=False)
    enabled = serializers.BooleanField(required=False)
    runtime_settings = serializers.DictField(required=False, help_text="Settings of the pool's runtime.")
    spot_policy = serializers.ChoiceField(choices=SpotPolicy.choices, required=False)
    scheduler = serializers.CharField(
        max_length=MAX_CHARACTERS,
        allow_blank=True,
        required=False,
        trim_whitespace=False,
        help_text="Actions and plugins as YAML; empty for the default.",
    )
    min_slots = serializers.IntegerField(required=False, min_value=0, max_value=MOST_SLOTS)
    warm_slots = serializers.IntegerField(required=False, min_value=0, max_value=MOST_SLOTS)
    max_slots = serializers.IntegerField(required=False, **limits_of("max_slots"))
    max_leases = serializers.IntegerField(required=False, **limits_of("max_leases"))
    cpu_cores = serializers.DecimalField(max_digits=8, decimal_places=2, min_value=0, required=False)
    memory_gb = serializers.DecimalField(max_digits=8, decimal_places=2, min_value=0, required=False)
    storage_gb = serializers.DecimalField(max_digits=10, decimal_places=2, min_value=0, required=False)
    gpu = serializers.DecimalField(max_digits=6, decimal_places=2, min_value=0, required=False)
    first_port = serializers.IntegerField(required=False, min_value=1024, max_value=65_535)
    last_port = serializers.IntegerField(required=False, min_value=1024, max_value=65_535)
    idle_seconds = serializers.IntegerField(required=False, **limits_of("idle_seconds"))
    target_wait_seconds = serializers.IntegerField(
        required=False,
        help_text="Seconds; the overview shows sessions that wait longer.",
        **limits_of("target_wait_seconds"),
    )
    launch_timeout = serializers.IntegerField(required=False, **limits_of("launch_timeout"))
    boot_timeout = serializers.IntegerField(required=False, **limits_of("boot_timeout"))
    binding_timeout = serializers.IntegerField(required=False, **limits_of("binding_timeout"))
    drain_timeout = serializers.IntegerField(required=False, **limits_of("drain_timeout"))
    terminate_timeout = serializers.IntegerField(required=False, **limits_of("terminate_timeout"))
    reason = serializers.CharField(
        max_length=500,
        allow_blank=True,
        required=False,
        help_text="Recorded in the change log. Required to disable the pool, to lower `max_slots` and to "
        "change `runtime_settings` or `scheduler`.",
    )


class PoolRequestSerializer(PoolChangeSerializer):
    name = serializers.CharField(max_length=63)
    system = serializers.CharField(max_length=30, required=False, help_text="Default: `cml`.")
    runtime = serializers.CharField(max_length=30, required=False, help_text="Default: `simulated`.")
    reason = None  # type: ignore[assignment]


# --- slots -------------------------------------------------------------------------------------------


class SlotSerializer(serializers.ModelSerializer[Slot]):
    name = serializers.CharField(read_only=True)
    pool = serializers.CharField(source="pool.name", read_only=True)
    pool_id = serializers.UUIDField(read_only=True)

    class Meta:
        model = Slot
        fields = [
            "id", "name", "pool", "pool_id", "number", "state", "reason", "cordoned", "instance_id",
            "endpoint", "version", "offering", "is_spot", "labels", *AMOUNTS, "max_leases", "lease_count",
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


class LabelsSerializer(serializers.Serializer[Any]):
    labels = serializers.DictField(child=serializers.CharField(max_length=63))
    reason = serializers.CharField(max_length=500, help_text="Recorded in the change log.")


class SessionMoveSerializer(serializers.Serializer[Any]):
    pool = serializers.CharField(max_length=63, help_text="The new pool.")
    reason = serializers.CharField(max_length=500, help_text="Recorded in the change log.")


class LeakedPortSerializer(serializers.Serializer[Any]):
    port = serializers.IntegerField(min_value=1, max_value=65_535)
    name = serializers.CharField(max_length=200, help_text="Where the port was found: lab, node and tag.")


class HeartbeatSerializer(serializers.Serializer[Any]):
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


class LeaseRequestSerializer(serializers.Serializer[Any]):
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


class BootTokenSerializer(serializers.Serializer[Any]):
    slot_id = serializers.UUIDField()
    token = serializers.CharField(max_length=200)


class BootKeySerializer(serializers.Serializer[Any]):
    key = serializers.CharField(help_text="A controller's key; shown once.")
    expires_at = serializers.DateTimeField()
    slot = ControllerSlotSerializer()


class InterruptionSerializer(serializers.Serializer[Any]):
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


class ReservationRequestSerializer(serializers.Serializer[Any]):
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


class RenewSerializer(serializers.Serializer[Any]):
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
