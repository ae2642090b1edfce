"""Signals for other apps, sent inside the transaction of the event."""

from django.dispatch import Signal

# session_ids: the labs are gone, and their ports are about to be released.
ports_going_free = Signal()
