"""Labs, nodes, interfaces and links of a simulated controller."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lcm.cml.node_sizes import UNKNOWN_NODE_SIZE, NodeSize, default_node_size, has_no_vm
from lcm.cml.simulator.node_lifecycle import DEFINED, OPERATIONAL, RUNNING, STARTED, STOPPED, NodeLifecycle

CONFIGURABLE = ("cpus", "cpu_limit", "ram", "boot_disk_size", "data_volume")


@dataclass
class SimInterface:
    """An interface. Loopbacks have no slot and no link."""

    id: str
    node_id: str
    label: str
    slot: int | None
    type: str
    configured_mac: str | None
    live_mac: str


@dataclass
class SimNode:
    """A node: configured sizes (None: default of the definition), tags and lifecycle."""

    id: str
    label: str
    node_definition: str
    life: NodeLifecycle
    image_definition: str | None = None
    x: int = 0
    y: int = 0
    tags: list[str] = field(default_factory=list)
    configured: dict[str, int | None] = field(default_factory=dict)
    configuration: list[dict[str, object]] = field(default_factory=list)
    parameters: dict[str, object] = field(default_factory=dict)
    hide_links: bool = False
    interfaces: list[SimInterface] = field(default_factory=list)
    overuses: bool = False

    @property
    def has_no_vm(self) -> bool:
        return has_no_vm(self.node_definition)

    @property
    def cpus(self) -> int:
        return self._size("cpus", self._default.cpus)

    @property
    def cpu_limit(self) -> int:
        return self.configured.get("cpu_limit") or 100

    @property
    def ram(self) -> int:
        return self._size("ram", self._default.ram_mb)

    @property
    def boot_disk_size(self) -> int:
        return self._size("boot_disk_size", self._default.disk_gb)

    @property
    def data_volume(self) -> int:
        return self._size("data_volume", self._default.data_gb)

    @property
    def _default(self) -> NodeSize:
        return default_node_size(self.node_definition) or UNKNOWN_NODE_SIZE

    def _size(self, name: str, default: int) -> int:
        return 0 if self.has_no_vm else self.configured.get(name) or default


@dataclass
class SimLink:
    """A link between two interfaces."""

    id: str
    label: str
    a: SimInterface
    b: SimInterface


@dataclass
class SimLab:
    """A lab with its owner. Times are seconds of the controller's clock."""

    id: str
    title: str
    description: str
    notes: str
    owner: str
    created: str
    schema_version: str = "0.3.0"
    nodes: dict[str, SimNode] = field(default_factory=dict)
    links: dict[str, SimLink] = field(default_factory=dict)
    edit_at: float | None = None

    def interfaces(self) -> Iterator[SimInterface]:
        for node in self.nodes.values():
            yield from node.interfaces

    def is_connected(self, interface: SimInterface) -> bool:
        return any(interface in (link.a, link.b) for link in self.links.values())

    def state(self, now: float) -> str:
        """Return STARTED if any node runs; a lab is never BOOTED."""
        states = {node.life.state(now) for node in self.nodes.values()}
        if states & RUNNING:
            return STARTED
        return STOPPED if STOPPED in states else DEFINED

    def is_converged(self, now: float) -> bool:
        return all(node.life.is_settled(now) for node in self.nodes.values())

    def interface_state(self, interface: SimInterface, now: float) -> str:
        """Return the state, which follows the node's."""
        state = self.nodes[interface.node_id].life.state(now)
        return STARTED if state in OPERATIONAL else DEFINED if state == DEFINED else STOPPED

    def link_state(self, link: SimLink, now: float) -> str:
        """Return STARTED if both ends are started."""
        ends = {self.interface_state(end, now) for end in (link.a, link.b)}
        if ends == {STARTED}:
            return STARTED
        return STOPPED if STOPPED in ends else DEFINED
