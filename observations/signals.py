"""Signals sent inside the transaction that records an observation."""

from django.dispatch import Signal

# session, observation, now: an observation was recorded.
resources_observed = Signal()
# session, drift (a list of items), now: observed ports differ from the allocated ones.
port_drift_detected = Signal()
