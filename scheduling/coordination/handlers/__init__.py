"""Lifecycle handlers: transitions that no controller or user makes."""

from scheduling.coordination.handlers.timeouts import FinishStopping, RequeueInstantiating, RequeueScheduled
from scheduling.coordination.handlers.timeslots import EndRunning, ExpirePending, NoShowReady

BUILT_IN = (ExpirePending, RequeueScheduled, RequeueInstantiating, NoShowReady, EndRunning, FinishStopping)
