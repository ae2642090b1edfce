"""Default sizes of CML node definitions, for topologies that state none."""

from dataclasses import dataclass


@dataclass(frozen=True)
class NodeSize:
    """The default size of a node: virtual CPUs, RAM, boot disk and data volume."""

    cpus: int
    ram_mb: int
    disk_gb: int
    data_gb: int = 0


ZERO_SIZE = NodeSize(0, 0, 0)
UNKNOWN_NODE_SIZE = NodeSize(1, 2048, 16)

# Shown on the canvas, but run no VM, whatever sizes an export states for them.
DEFINITIONS_WITHOUT_VM = frozenset({"external_connector", "unmanaged_switch"})

NODE_SIZES: dict[str, NodeSize] = {
    # Routers
    "iosv": NodeSize(1, 768, 2),
    "iol-xe": NodeSize(1, 1024, 1),
    "csr1000v": NodeSize(1, 3072, 8),
    "cat8000v": NodeSize(1, 4096, 16),
    "iosxrv": NodeSize(1, 3072, 4),
    "iosxrv9000": NodeSize(4, 16384, 64),
    "xrd-control-plane": NodeSize(1, 2048, 4),
    "xrd-vrouter": NodeSize(2, 5120, 4),
    "xrd": NodeSize(1, 2048, 4),
    # Switches
    "iosvl2": NodeSize(1, 768, 2),
    "ioll2-xe": NodeSize(1, 1024, 1),
    "cat9000v": NodeSize(4, 18432, 16),
    "nxosv": NodeSize(1, 3072, 4),
    "nxosv9000": NodeSize(2, 10240, 16),
    "nxosv9000-lite": NodeSize(1, 8192, 16),
    "cat9800": NodeSize(2, 8192, 16),
    # SD-WAN
    "cat-sdwan-edge": NodeSize(2, 5120, 16),
    "cat-sdwan-vedge": NodeSize(1, 2048, 16),
    "cat-sdwan-controller": NodeSize(2, 4096, 16),
    "cat-sdwan-validator": NodeSize(2, 4096, 16),
    "cat-sdwan-manager": NodeSize(8, 16384, 32, 256),
    # Firewalls and security
    "asav": NodeSize(1, 2048, 8),
    "ftdv": NodeSize(4, 8192, 50),
    "fmcv": NodeSize(4, 32768, 16, 256),
    "ise": NodeSize(16, 16384, 300),
    # Servers, desktops and tools
    "ubuntu": NodeSize(1, 2048, 16),
    "alpine": NodeSize(1, 512, 1),
    "server": NodeSize(1, 128, 1),
    "desktop": NodeSize(1, 512, 4),
    "coreos": NodeSize(1, 2048, 8),
    "wan_emulator": NodeSize(1, 512, 1),
    "alpine-wanem": NodeSize(1, 512, 1),
    "trex": NodeSize(1, 2048, 2),
    "alpine-trex": NodeSize(1, 2048, 2),
    # Containers
    "chrome": NodeSize(1, 1024, 2),
    "firefox": NodeSize(1, 1024, 2),
    "frr": NodeSize(1, 256, 1),
    "net-tools": NodeSize(1, 256, 1),
    "nginx": NodeSize(1, 256, 1),
    "dnsmasq": NodeSize(1, 128, 1),
    "radius": NodeSize(1, 256, 1),
    "tacplus": NodeSize(1, 256, 1),
    "syslog": NodeSize(1, 256, 1),
}

# Variants share the size of their family: cat9000v-q200, cat9000v-uadp, iol-xe-serial-4eth, ubuntu-desktop...
FAMILIES = ("cat9000v-", "iol-xe-", "ioll2-xe-", "nxosv9", "xrd-", "ubuntu-", "alpine-")


def has_no_vm(definition: str) -> bool:
    """Return whether nodes of this definition run no VM."""
    return definition.lower() in DEFINITIONS_WITHOUT_VM


def default_node_size(definition: str) -> NodeSize | None:
    """Return the default size of a node definition, or None if it is unknown."""
    name = definition.lower()
    if name in DEFINITIONS_WITHOUT_VM:
        return ZERO_SIZE
    if name in NODE_SIZES:
        return NODE_SIZES[name]
    family = next((prefix for prefix in FAMILIES if name.startswith(prefix)), None)
    return NODE_SIZES["nxosv9000" if family == "nxosv9" else family.rstrip("-")] if family else None
