"""Parsing and validation of posted observations: types, sizes, ranges and times."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from pydantic import ValidationError

from lcm.cml.observation.model import (
    ObservationMalformed,
    ResourceObservation,
    observation_adapter,
    observation_problems,
    read_moment,
)
from lcm.domain.errors import Unprocessable
from observations.arithmetic.measures import (
    ALLOCATED,
    CPU,
    MEMORY,
    STORAGE,
    USED,
    Amounts,
    gigabytes,
    hundredths,
)

MAX_NODES = 1_000
MAX_INTERFACES = 20_000
CLOCK_SKEW = timedelta(minutes=5)
MAX_AGE = timedelta(days=30)
# Field of an observation that holds the total of a resource and source.
TOTALS = {
    (CPU, ALLOCATED): "total_cpu_cores",
    (CPU, USED): "used_cpu_cores",
    (MEMORY, ALLOCATED): "total_memory_mb",
    (MEMORY, USED): "used_memory_mb",
    (STORAGE, ALLOCATED): "total_storage_mb",
    (STORAGE, USED): "used_storage_mb",
}


def parse_observation(body: object, *, now: datetime) -> ResourceObservation:
    """Return the observation of a posted body, or raise an error that lists every problem."""
    _check_sizes(body)
    try:
        observation = observation_adapter().validate_python(body)
    except ValidationError as error:
        problems = observation_problems(error)
        observed_at = read_moment(body.get("observed_at")) if isinstance(body, dict) else None
        raise _refused(problems | _time_problem(observed_at, now)) from error
    if problem := _time_problem(observation.observed_at, now):
        raise _refused(problem)
    return observation


def amounts_of(observation: ResourceObservation) -> Amounts:
    """Return the totals that were read completely, in hundredths of a core or GB."""
    found: dict[tuple[str, str], int] = {}
    for key, name in TOTALS.items():
        value = getattr(observation, name)
        if value is not None and name not in observation.incomplete:
            found[key] = hundredths(value) if key[0] == CPU else gigabytes(value)
    return found


def _check_sizes(body: object) -> None:
    """Limit the number of nodes and interfaces before parsing them."""
    nodes = body.get("nodes") if isinstance(body, dict) else None
    if not isinstance(nodes, list):
        return
    if len(nodes) > MAX_NODES:
        raise _refused({"nodes": f"must be at most {MAX_NODES:,} nodes, not {len(nodes):,}."})
    lists = (node.get("interfaces") for node in nodes if isinstance(node, dict))
    interfaces = sum(len(each) for each in lists if isinstance(each, list))
    if interfaces > MAX_INTERFACES:
        raise _refused({"nodes": f"must have at most {MAX_INTERFACES:,} interfaces, not {interfaces:,}."})


def _time_problem(observed_at: datetime | None, now: datetime) -> dict[str, str]:
    if observed_at is not None and observed_at - now > CLOCK_SKEW:
        return {"observed_at": "is in the future; check the clock of the controller."}
    if observed_at is not None and now - observed_at > MAX_AGE:
        return {"observed_at": f"is more than {MAX_AGE.days} days ago."}
    return {}


def _refused(problems: Mapping[str, str]) -> Unprocessable:
    error = ObservationMalformed(problems)
    details = {place: [problem] for place, problem in error.problems.items()}
    return Unprocessable(str(error), details=details)
