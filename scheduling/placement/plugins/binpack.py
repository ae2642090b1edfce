"""Plugin that fills slots, so that others stay empty."""

from __future__ import annotations

from dataclasses import dataclass

from scheduling.options import number
from scheduling.placement.framework.plugin import Plugin, register_plugin
from scheduling.placement.framework.session import SchedulingSession
from scheduling.placement.plugins.fill_level import FillLevel


@register_plugin("binpack")
@dataclass(frozen=True)
class BinpackPlugin(Plugin):
    """Prefer the slot that is fullest with the task on it."""

    weight: float = number(1, 0, 100)
    cpu_cores: float = number(1, 0, 100)
    memory_gb: float = number(1, 0, 100)
    storage_gb: float = number(0, 0, 100)
    gpu: float = number(0, 0, 100)

    def on_session_open(self, ssn: SchedulingSession) -> None:
        filling = FillLevel(ssn, (self.cpu_cores, self.memory_gb, self.storage_gb, self.gpu))
        ssn.add_node_order_fn(filling.of, batch=filling.of_all, weight=self.weight, ranks_by=filling.ranks_by)
