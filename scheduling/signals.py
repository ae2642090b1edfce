"""What other apps may hear of: sent inside the transaction of what happens, so receivers commit with it."""

from django.dispatch import Signal

# session_ids: their labs are gone, and the ports they were given are free in a moment.
ports_going_free = Signal()
