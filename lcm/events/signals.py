"""What other apps may hear of: sent inside the transaction of what happened, so receivers commit with it."""

from django.dispatch import Signal

# session, actor, now: a session was asked for. A receiver may refuse by raising InvalidInput.
session_created = Signal()
# session_ids, old, new, now, lab_is_gone: sessions took a step together; `session_ids` is a list of ids.
# `lab_is_gone`: it is certain that nothing of them is left on the workers.
sessions_moved = Signal()
# definition, revision, now: it asks for something else from now on.
definition_revised = Signal()
# session, now: someone wants a running session observed; its controller has to hear of it.
observation_requested = Signal()
# kind, name, address, token, now: a process runs; its metrics are at this address, if it has one. `token` is
# that of a controller, None for LCM's own processes. A receiver may refuse by raising StateConflict.
process_heartbeat = Signal()
# kind, name, token, now: a process has ended. A receiver may refuse by raising StateConflict.
process_stopped = Signal()
