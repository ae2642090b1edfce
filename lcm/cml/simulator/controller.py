"""A simulated controller: its labs, users and operations."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from lcm.cml.simulator.edits import Edit, edit_lab, random_edit
from lcm.cml.simulator.http_messages import ApiError
from lcm.cml.simulator.lab_import import LabBuilder, import_topology
from lcm.cml.simulator.labs import SimLab, SimNode
from lcm.cml.simulator.node_lifecycle import DEFINED, RUNNING, STARTED
from lcm.cml.simulator.options import ControllerOptions, OptionError
from lcm.cml.simulator.seeded_random import random_fraction, random_uuid
from lcm.cml.simulator.users import SimulatedUser, Users


class SimulatedController:
    """One simulated CML. There is no background work: states and usage are computed from the clock."""

    def __init__(
        self,
        name: str = "",
        options: ControllerOptions | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.options = options or ControllerOptions()
        self.clock = clock
        self.started_at = clock()
        self.users = Users(self.options.users, self.options.token_seconds, self.options.seed)
        self.labs: dict[str, SimLab] = {}
        self.imports = 0
        self.compute_id = random_uuid(self.options.seed, name, "compute")

    @property
    def now(self) -> float:
        return self.clock()

    @property
    def is_ready(self) -> bool:
        return self.now - self.started_at >= self.options.ready_after_seconds

    def import_lab(self, text: bytes, *, title: str, user: SimulatedUser) -> tuple[SimLab, list[str]]:
        self.imports += 1
        builder = LabBuilder(self.options, f"{self.name} {self.imports}")
        created = datetime.now(UTC).isoformat(timespec="seconds")
        lab, warnings = import_topology(text, title=title, owner=user.name, created=created, builder=builder)
        self.labs[lab.id] = lab
        return lab, warnings

    def visible_labs(self, user: SimulatedUser, *, show_all: bool) -> list[SimLab]:
        """Return the user's own labs, or all labs if an administrator requests them."""
        everything = show_all and user.is_admin
        return [lab for lab in self.labs.values() if everything or lab.owner == user.name]

    def lab(self, lab_id: str, user: SimulatedUser) -> SimLab:
        lab = self.labs.get(lab_id)
        if lab is None or not (user.is_admin or lab.owner == user.name):
            raise ApiError(404, f"Lab not found: {lab_id}")
        self._edit_if_due(lab)
        return lab

    def start(self, lab: SimLab) -> None:
        """Start all nodes or none. Reject the call if resources are insufficient."""
        now = self.now
        self._check_resources([node for node in lab.nodes.values() if node.life.state(now) not in RUNNING])
        for node in lab.nodes.values():
            node.life.start(now)
        self._plan_disturbances(lab, now)

    def stop(self, lab: SimLab) -> None:
        for node in lab.nodes.values():
            node.life.stop(self.now)

    def wipe(self, lab: SimLab) -> None:
        """Wipe a stopped lab."""
        if busy := [node.label for node in lab.nodes.values() if node.life.state(self.now) in RUNNING]:
            raise ApiError(400, f"Bad Request: Lab is not stopped: {', '.join(busy[:3])} still running.")
        for node in lab.nodes.values():
            node.life.wipe()

    def delete(self, lab: SimLab) -> None:
        """Remove a lab that was stopped and wiped."""
        state = lab.state(self.now)
        if state != DEFINED:
            problem = "Lab is not stopped" if state == STARTED else "Lab is not wiped"
            raise ApiError(400, f"Bad Request: {problem}: {lab.id} is {state}.")
        del self.labs[lab.id]

    def running_nodes(self) -> list[SimNode]:
        now = self.now
        nodes = (node for lab in self.labs.values() for node in lab.nodes.values())
        return [node for node in nodes if node.life.state(now) in RUNNING]

    def _check_resources(self, nodes: list[SimNode]) -> None:
        running = [*self.running_nodes(), *nodes]
        needed = {
            "CPUs": (sum(node.cpus * node.cpu_limit / 100 for node in running), self.options.cpus),
            "MB of memory": (sum(node.ram for node in running), self.options.memory_mb),
            "GB of disk": (
                sum(node.boot_disk_size + node.data_volume for node in running),
                self.options.disk_gb,
            ),
        }
        for unit, (required, free) in needed.items():
            if nodes and required > free:
                raise ApiError(
                    400,
                    f"Bad Request: Insufficient resources: {required:g} {unit} needed, {free:g} available.",
                )

    def _plan_disturbances(self, lab: SimLab, now: float) -> None:
        """Decide by the title whether this lab is edited later, and whether a node overuses resources."""
        seed = self.options.seed
        if lab.edit_at is None and random_fraction(seed, "edit", lab.title) * 100 < self.options.edit_percent:
            lab.edit_at = now + self.options.edit_after_seconds
        if random_fraction(seed, "overuse", lab.title) * 100 < self.options.overuse_percent:
            with suppress(OptionError):
                edit_lab(lab, Edit.OVERUSE, self.options, now)

    def _edit_if_due(self, lab: SimLab) -> None:
        now = self.now
        if lab.edit_at is not None and lab.edit_at <= now and lab.state(now) == "STARTED":
            lab.edit_at = float("inf")
            edit_lab(lab, random_edit(lab, self.options), self.options, now)
