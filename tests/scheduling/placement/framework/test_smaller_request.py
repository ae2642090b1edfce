"""The smallest reduction that lets a task fit, by a table."""

import pytest

from scheduling.placement.framework.configuration import read_configuration
from scheduling.placement.framework.explanation import smaller_request
from scheduling.placement.framework.model import Job, Node, Snapshot, Task
from scheduling.placement.framework.session import SchedulingSession
from tests.scheduling.placement.inline_plugins import units

REQUEST = units(400, 800, 1000, 0)


def suggested_request(*free, request=REQUEST, labels=(), cordoned=()):
    nodes = [
        Node(f"n{number}", capacity, cordoned=number in cordoned) for number, capacity in enumerate(free, 1)
    ]
    job = Job("job", "", (Task("job", request),), labels=labels)
    ssn = SchedulingSession(Snapshot(now=0.0, nodes=nodes, queues={}, jobs=[job]))
    ssn.open(read_configuration("").plugins())
    suggestion = smaller_request(ssn, job.whole, job)
    return (suggestion.request, suggestion.changed, suggestion.nodes) if suggestion else None


@pytest.mark.parametrize(
    ("free", "expected"),
    [
        ([units(300, 800, 1000, 0)], (units(300, 800, 1000, 0), ("cpu_cores",), 1)),
        # The smallest reduction, and every node that then fits.
        (
            [units(100, 800, 1000, 0), units(300, 900, 1000, 0), units(300, 800, 2000, 0)],
            (units(300, 800, 1000, 0), ("cpu_cores",), 2),
        ),
        ([units(300, 400, 1000, 0)], (units(300, 400, 1000, 0), ("cpu_cores", "memory_gb"), 1)),
        # A resource is used up: no smaller request helps.
        ([units(0, 800, 1000, 0)], None),
        # The request fits without a reduction.
        ([units(400, 800, 1000, 0)], None),
        ([], None),
    ],
)
def test_the_smallest_reduction_is_suggested(free, expected):
    assert suggested_request(*free) == expected


def test_a_smaller_request_does_not_help_other_reasons():
    assert suggested_request(units(300, 800, 1000, 0), labels=(("rack", "b"),)) is None
    assert suggested_request(units(300, 800, 1000, 0), cordoned=(1,)) is None
    assert suggested_request(units(300, 800, 1000, 0), units(200, 800, 1000, 0), cordoned=(1,)) == (
        units(200, 800, 1000, 0),
        ("cpu_cores",),
        1,
    )


def test_gpus_are_not_reduced_to_fractions():
    assert suggested_request(units(300, 800, 1000, 100), request=units(400, 800, 1000, 200)) is None
