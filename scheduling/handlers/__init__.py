"""What moves sessions on when nobody else does, one handler a file."""

from scheduling.handlers.end_running import EndRunning
from scheduling.handlers.expire_pending import ExpirePending
from scheduling.handlers.finish_stopping import FinishStopping
from scheduling.handlers.no_show_ready import NoShowReady
from scheduling.handlers.requeue_instantiating import RequeueInstantiating
from scheduling.handlers.requeue_scheduled import RequeueScheduled

BUILT_IN = (ExpirePending, RequeueScheduled, RequeueInstantiating, NoShowReady, EndRunning, FinishStopping)

__all__ = ["BUILT_IN"]
