"""Connection test of a worker before it is listed in a pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduling.capacity.runtimes.base import Health
from scheduling.capacity.runtimes.health import probe_cml
from scheduling.capacity.runtimes.static import StaticWorker
from scheduling.options import InvalidOptions, read_options

# Seconds: a person waits for the result.
TIMEOUT = 3.0


def check_worker(values: Mapping[str, Any]) -> Health:
    """Request `system_information` of a worker, like the health probe of its slot, and return the result."""
    try:
        worker = read_options(StaticWorker, {"name": "worker", **values})
    except InvalidOptions as error:
        return Health(False, str(error))
    return probe_cml(worker.endpoint, worker.ca, timeout=TIMEOUT)
