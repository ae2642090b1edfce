"""The body of an observation in the OpenAPI document.

These serializers only describe the body. `lcm.cml.observation.model` parses it, which is several times
faster. A test compares the fields of both.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from lcm.cml.json_values import MAX_TEXT
from lcm.cml.observation.json_schema import MAX_CORES, MAX_MEGABYTES, OBSERVERS
from lcm.cml.ports import MAX_PORT
from observations.services.observation_validation import MAX_NODES

OPTIONAL: dict[str, Any] = {"required": False, "allow_null": True}


def _number(most: int | None = None) -> dict[str, Any]:
    """Return the schema of a number that may also be sent as a string."""
    number = {"type": "number", "minimum": 0} | ({} if most is None else {"maximum": most})
    return {"oneOf": [number, {"type": "string", "format": "decimal"}], "nullable": True}


@extend_schema_field(_number(MAX_CORES))
class CoresField(serializers.Field[Any, Any, Any, Any]):
    """Cores, as a number or as a string."""


@extend_schema_field(_number())
class PercentField(serializers.Field[Any, Any, Any, Any]):
    """A percentage, as a number or as a string."""


def _text(help_text: str, **options: Any) -> serializers.CharField:
    return serializers.CharField(allow_blank=True, max_length=MAX_TEXT, help_text=help_text, **options)


def _texts(help_text: str) -> serializers.ListField:
    child = serializers.CharField(allow_blank=True, max_length=MAX_TEXT)
    return serializers.ListField(child=child, help_text=help_text, **OPTIONAL)


def _megabytes(help_text: str) -> serializers.IntegerField:
    return serializers.IntegerField(min_value=0, max_value=MAX_MEGABYTES, help_text=help_text, **OPTIONAL)


def _whole(help_text: str, most: int | None = None) -> serializers.IntegerField:
    return serializers.IntegerField(min_value=0, max_value=most, help_text=help_text, **OPTIONAL)


def _cores(help_text: str) -> CoresField:
    return CoresField(help_text=help_text, **OPTIONAL)


def _percent(help_text: str) -> PercentField:
    return PercentField(help_text=help_text, **OPTIONAL)


def _ports(help_text: str) -> serializers.DictField:
    port = serializers.IntegerField(min_value=1, max_value=MAX_PORT)
    return serializers.DictField(child=port, help_text=help_text, **OPTIONAL)


class InterfaceObservationSerializer(serializers.Serializer[Any]):
    interface_id = _text("Id of the interface in CML.")
    label = _text("Name of the interface.")  # type: ignore[assignment]
    slot = _whole("Number of the interface on its node.")
    state = _text("State in CML, for example STARTED.", **OPTIONAL)
    is_connected = serializers.BooleanField(help_text="Whether a link ends here.", **OPTIONAL)
    mac_address = _text("MAC address in use.", **OPTIONAL)
    ip4 = _texts("IPv4 addresses that CML has seen. Null: not read.")
    ip6 = _texts("IPv6 addresses that CML has seen. Null: not read.")


class NodeObservationSerializer(serializers.Serializer[Any]):
    node_id = _text("Id of the node in CML.")
    label = _text("Name of the node.")  # type: ignore[assignment]
    node_definition = _text("Node definition in CML, for example iosv.")
    image_definition = _text("Image definition in CML.", **OPTIONAL)
    state = _text("State in CML, for example BOOTED.", **OPTIONAL)
    compute_id = _text("Id of the compute host.", **OPTIONAL)
    cpus = _whole("Virtual CPUs.", MAX_CORES)
    cpu_limit = _whole("Percentage of its CPUs that the node may use, as in CML.")
    cpu_cores = _cores("Allocated cores: cpus × cpu_limit ÷ 100.")
    ram_mb = _megabytes("Allocated memory in MB.")
    storage_mb = _megabytes("Allocated storage in MB.")
    cpu_usage_percent = _percent("CPU usage in percent of its CPUs, as CML measures it.")
    memory_usage_percent = _percent("Memory usage in percent of its memory, as CML measures it.")
    used_cpu_cores = _cores("Used cores.")
    used_memory_mb = _megabytes("Used memory in MB.")
    used_storage_mb = _megabytes("Used storage in MB.")
    tags = _texts("Tags of the node, with the port tags.")
    ports = _ports("Ports of the node by name.")
    interfaces = InterfaceObservationSerializer(
        many=True, help_text="Interfaces of the node. Null: not read.", **OPTIONAL
    )


class PoolUsageSerializer(serializers.Serializer[Any]):
    pool_id = _text("Id of the resource pool in CML.")
    label = _text("Name of the resource pool.")  # type: ignore[assignment]
    licenses_used = _whole("Licences in use, by all labs in the pool.")
    licenses_limit = _whole("Licences at most. Null: no limit, or unknown.")
    storage_used_mb = _whole("Storage in use in MB, by all labs in the pool.")
    storage_limit_mb = _whole("Storage at most in MB. Null: no limit, or unknown.")


class MissingPartSerializer(serializers.Serializer[Any]):
    part = _text("The part that could not be read.")
    message = _text("Why it could not be read.")


class ObservationSerializer(serializers.Serializer[Any]):
    """An observation of a running lab. Unknown values are null or omitted, never 0."""

    observed_at = serializers.DateTimeField(help_text="Time of the observation, with a UTC offset.")
    observer = serializers.ChoiceField(
        choices=OBSERVERS, help_text="“manual” if a person requested the observation."
    )
    controller = _text("Name of the controller.", **OPTIONAL)
    lab_id = _text("Id of the lab in CML.", **OPTIONAL)
    cml_version = _text("Version of CML.", **OPTIONAL)
    total_cpu_cores = _cores("Cores allocated to all nodes.")
    total_memory_mb = _megabytes("Memory allocated to all nodes, in MB.")
    total_storage_mb = _megabytes("Storage allocated to all nodes, in MB.")
    used_cpu_cores = _cores("Cores used by all nodes.")
    used_memory_mb = _megabytes("Memory used by all nodes, in MB.")
    used_storage_mb = _megabytes("Storage used by all nodes, in MB.")
    nodes = NodeObservationSerializer(
        many=True, help_text=f"Nodes of the lab, at most {MAX_NODES:,}.", **OPTIONAL
    )
    actual_node_count = _whole("Number of nodes, including unreadable nodes.")
    node_definitions_used = _texts("Names of the node definitions in the lab.")
    observed_ports = _ports("Ports of the lab by the names of the port template. Null: not read.")
    simulation_stats = serializers.DictField(
        help_text="Statistics as CML returns them. LCM stores them unchecked.", **OPTIONAL
    )
    resource_pool_usage = PoolUsageSerializer(
        many=True, help_text="Resource pools of the CML host, over all their labs.", **OPTIONAL
    )
    incomplete = _texts("Fields that are null or too small because a part could not be read.")
    errors = MissingPartSerializer(  # type: ignore[assignment]
        many=True, help_text="Parts that could not be read.", **OPTIONAL
    )
