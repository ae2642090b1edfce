"""What other apps may hear of, inside the transaction that recorded it."""

from django.dispatch import Signal

# session, observation, now: an observation was recorded.
resources_observed = Signal()
# session, drift (a list of items), now: the ports of a session are not those it was given.
port_drift_detected = Signal()
