"""Signals for other apps. Senders send them in the transaction of the change, so receivers commit with it."""

from django.dispatch import Signal

# session, actor, now: a session was requested. A receiver may reject it by raising InvalidInput.
session_created = Signal()
# session_ids, old, new, now, lab_removed: these sessions made the same transition.
# `lab_removed`: their labs are known to be removed from the workers.
sessions_moved = Signal()
# definition, revision, now: the definition has a new current revision.
definition_revised = Signal()
# session, now: an observation of a running session was requested; its controller must be notified.
observation_requested = Signal()
# kind, name, address, token, now: a process is running; `address` serves its metrics and may be empty.
# `token` is a controller's token, None for LCM's own processes. A receiver may reject it with StateConflict.
process_heartbeat = Signal()
# kind, name, token, now: a process has ended. A receiver may reject it with StateConflict.
process_stopped = Signal()
