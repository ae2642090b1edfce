"""What a node of each definition usually takes, for topologies that leave the figures to the controller."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Usual:
    """The usual size of a node: virtual CPUs, RAM, boot disk and data volume."""

    cpus: int
    ram_mb: int
    disk_gb: int
    data_gb: int = 0


NOTHING = Usual(0, 0, 0)
UNKNOWN = Usual(1, 2048, 16)

# These are drawn on the canvas but run no machine, whatever figures an export gives for them.
WEIGHTLESS = frozenset({"external_connector", "unmanaged_switch"})

USUAL: dict[str, Usual] = {
    # Routers
    "iosv": Usual(1, 768, 2),
    "iol-xe": Usual(1, 1024, 1),
    "csr1000v": Usual(1, 3072, 8),
    "cat8000v": Usual(1, 4096, 16),
    "iosxrv": Usual(1, 3072, 4),
    "iosxrv9000": Usual(4, 16384, 64),
    "xrd-control-plane": Usual(1, 2048, 4),
    "xrd-vrouter": Usual(2, 5120, 4),
    "xrd": Usual(1, 2048, 4),
    # Switches
    "iosvl2": Usual(1, 768, 2),
    "ioll2-xe": Usual(1, 1024, 1),
    "cat9000v": Usual(4, 18432, 16),
    "nxosv": Usual(1, 3072, 4),
    "nxosv9000": Usual(2, 10240, 16),
    "nxosv9000-lite": Usual(1, 8192, 16),
    "cat9800": Usual(2, 8192, 16),
    # SD-WAN
    "cat-sdwan-edge": Usual(2, 5120, 16),
    "cat-sdwan-vedge": Usual(1, 2048, 16),
    "cat-sdwan-controller": Usual(2, 4096, 16),
    "cat-sdwan-validator": Usual(2, 4096, 16),
    "cat-sdwan-manager": Usual(8, 16384, 32, 256),
    # Firewalls and security
    "asav": Usual(1, 2048, 8),
    "ftdv": Usual(4, 8192, 50),
    "fmcv": Usual(4, 32768, 16, 256),
    "ise": Usual(16, 16384, 300),
    # Servers, desktops and tools
    "ubuntu": Usual(1, 2048, 16),
    "alpine": Usual(1, 512, 1),
    "server": Usual(1, 128, 1),
    "desktop": Usual(1, 512, 4),
    "coreos": Usual(1, 2048, 8),
    "wan_emulator": Usual(1, 512, 1),
    "alpine-wanem": Usual(1, 512, 1),
    "trex": Usual(1, 2048, 2),
    "alpine-trex": Usual(1, 2048, 2),
    # Containers
    "chrome": Usual(1, 1024, 2),
    "firefox": Usual(1, 1024, 2),
    "frr": Usual(1, 256, 1),
    "net-tools": Usual(1, 256, 1),
    "nginx": Usual(1, 256, 1),
    "dnsmasq": Usual(1, 128, 1),
    "radius": Usual(1, 256, 1),
    "tacplus": Usual(1, 256, 1),
    "syslog": Usual(1, 256, 1),
}

# Variants of these share one size: cat9000v-q200, cat9000v-uadp, iol-xe-serial-4eth, ubuntu-desktop...
FAMILIES = ("cat9000v-", "iol-xe-", "ioll2-xe-", "nxosv9", "xrd-", "ubuntu-", "alpine-")


def is_weightless(definition: str) -> bool:
    """Whether nodes of this definition run no machine."""
    return definition.lower() in WEIGHTLESS


def usual_size(definition: str) -> Usual | None:
    """What a node of this definition usually takes, or None when we do not know it."""
    name = definition.lower()
    if name in WEIGHTLESS:
        return NOTHING
    if name in USUAL:
        return USUAL[name]
    family = next((prefix for prefix in FAMILIES if name.startswith(prefix)), None)
    return USUAL["nxosv9000" if family == "nxosv9" else family.rstrip("-")] if family else None
