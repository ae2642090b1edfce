"""Lifecycle handlers: transitions that no controller or user makes, one handler per file."""

from scheduling.coordination.handlers.end_running import EndRunning
from scheduling.coordination.handlers.expire_pending import ExpirePending
from scheduling.coordination.handlers.finish_stopping import FinishStopping
from scheduling.coordination.handlers.no_show_ready import NoShowReady
from scheduling.coordination.handlers.requeue_instantiating import RequeueInstantiating
from scheduling.coordination.handlers.requeue_scheduled import RequeueScheduled

BUILT_IN = (ExpirePending, RequeueScheduled, RequeueInstantiating, NoShowReady, EndRunning, FinishStopping)

__all__ = ["BUILT_IN"]
