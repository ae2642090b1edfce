"""Labs of sessions on their workers."""

from __future__ import annotations

from django.db import models

from lcm.models import LabletSession
from lcm.models.base import IdModel
from scheduling.models.slots import Slot


class SessionLab(IdModel):
    """The lab of a session on a worker, as the last survey of the worker found it."""

    session = models.ForeignKey(LabletSession, on_delete=models.CASCADE, related_name="+", db_index=False)
    slot = models.ForeignKey(Slot, on_delete=models.CASCADE, related_name="labs")
    attempt = models.PositiveSmallIntegerField()
    # The id that the worker gave to the lab.
    lab = models.CharField(max_length=64)
    # The worker's state of each node, by label.
    node_states = models.JSONField(default=dict)
    observed_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "slot"], name="lab_once_on_slot")]

    def __str__(self) -> str:
        return f"lab {self.lab} of {self.session} on {self.slot}"
