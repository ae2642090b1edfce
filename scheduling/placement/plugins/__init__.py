"""The built-in plugins; importing this package registers them."""
# ruff: noqa: F401

from scheduling.placement.plugins import (
    fairshare,
    fill_level,
    gpus,
    job_orders,
    quota,
    resources,
    slot_properties,
    spot,
    timeslot,
)
