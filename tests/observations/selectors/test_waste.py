"""Waste is the requirement above the peak; a lower bound where use was not measured."""

from decimal import Decimal

import pytest
from django.urls import reverse

from observations.arithmetic.measures import CPU, MEMORY
from observations.models import DefinitionAssessment
from observations.services.samples import SessionSample, wasted

REQUIRED = {CPU: 400, MEMORY: 350, "storage_gb": 700}


@pytest.mark.parametrize(
    ("amounts", "seconds", "waste"),
    [
        ({(CPU, "used"): 100, (MEMORY, "used"): 150}, 10, (3000, 2000)),
        (
            {(CPU, "used"): 100, (CPU, "allocated"): 400},
            10,
            (3000, 0),
        ),  # used takes precedence over allocated
        ({(CPU, "allocated"): 300, (MEMORY, "allocated"): 350}, 10, (1000, 0)),
        ({(CPU, "used"): 0}, 10, (4000, 0)),  # measured, and idle
        ({(CPU, "used"): 500, (MEMORY, "used"): 351}, 10, (0, 0)),  # use above the requirement is not waste
        ({}, 10, (0, 0)),
        ({(CPU, "used"): 100}, 0, (0, 0)),
    ],
)
def test_waste_sums_the_unused_amounts_over_time(amounts, seconds, waste):
    assert wasted(SessionSample("r1", 1, amounts, seconds), REQUIRED) == waste


@pytest.mark.parametrize(
    ("waste", "source", "known"),
    [
        (Decimal(3), "used", Decimal(3)),
        (Decimal(0), "used", Decimal(0)),
        (Decimal(3), "allocated", Decimal(3)),
        (Decimal(0), "allocated", None),
        (Decimal(0), None, None),
    ],
)
def test_zero_waste_is_known_only_with_measured_use(waste, source, known):
    sources = {} if source is None else {"memory_gb": source}
    assert DefinitionAssessment(waste_memory=waste, sources=sources).wasted("memory_gb") == known


def waste_cells(client, viewer):
    """Return the cells of CPU and memory waste in the list of definitions."""
    client.force_login(viewer)
    text = client.get(reverse("definition_list")).content.decode()
    cells = [text.split(f'data-label="{name} waste">')[1].split("</td>")[0] for name in ("CPU", "Memory")]
    return [" ".join(_plain(cell)) for cell in cells]


def _plain(html):
    return "".join(part.split(">")[-1] for part in html.split("<")).split()


@pytest.mark.parametrize(
    ("figures", "total", "shown"),
    [
        ({"cpu": "1.00", "memory": 1536}, 3584, ["6 core-h", "4 GB-h"]),
        ({"cpu": "4.00", "memory": 3584}, 3584, ["none", "none"]),
        ({"cpu": "1.00", "memory": None}, 3584, ["6 core-h", "unknown"]),
        ({"cpu": "1.00", "memory": None}, 1536, ["6 core-h", "at least 4 GB-h"]),
    ],
)
def test_the_list_shows_known_waste(
    figures, total, shown, client, viewer, active_definition, project, operator, now
):
    from tests.support.observed_labs import HOUR, make_past_session, post, seen

    for hours in (1, 2):
        at = now - hours * HOUR
        session = make_past_session(active_definition, project, operator, ended=at)
        post(session, {**seen(at, **figures), "total_memory_mb": total}, now)
    assert waste_cells(client, viewer) == shown


def test_waste_without_observations_is_unknown(client, viewer, active_definition):
    assert waste_cells(client, viewer) == ["unknown", "unknown"]
