"""The table in docs/api.md agrees with the filters and sorts of the lists."""

import re

from fairshare.api import urls as fairshare
from lcm.api import urls as core
from lcm.web.added_filters import with_added_filters
from observations.api import urls as observations
from scheduling.api import urls as capacity
from tests.support.control_plane import ROOT


def documented_lists():
    """Return the filters and sorts of each list in the table."""
    lists = (ROOT / "docs" / "api.md").read_text().partition("\n## Lists\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split("|") for line in lists.splitlines() if line.startswith("| `")]
    return {
        re.search("`(.+?)`", name)[1]: (set(re.findall("`(.+?)`", filters)), re.findall("`(.+?)`", sorts))
        for name, filters, sorts in rows
    }


def actual_lists():
    registered = [each for app in (core, capacity, fairshare, observations) for each in app.router.registry]
    lists = {name: view for name, view, _ in registered if hasattr(view, "list")}
    return {
        name: (set(with_added_filters(view.filterset_class).base_filters), list(view.sorts))
        for name, view in lists.items()
        if getattr(view, "filterset_class", None)
    }


def test_the_guide_shows_every_list_with_its_filters_and_sorts():
    assert documented_lists() == actual_lists()
