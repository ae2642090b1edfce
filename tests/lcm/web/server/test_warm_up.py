"""Preparation of a web process before its first request."""

from __future__ import annotations

import subprocess
import sys

import pytest
from heroicons import IconDoesNotExist
from heroicons.templatetags.heroicons import heroicon_outline

from lcm.templatetags.lcm import icon
from tests.support.environment import clean_environment

WARM = """
import gc, sys
import lcm.wsgi
from lcm.web.server.warm_up import warm_up
before = "scheduling.pages.pools" in sys.modules
warm_up()
after = "scheduling.pages.pools" in sys.modules
print(before, after, gc.get_freeze_count() > 50_000, len(gc.get_objects()) < 5_000)
class Ring:
    living = most = 0
    def __init__(self):
        self.ring = self
        Ring.living += 1
        Ring.most = max(Ring.most, Ring.living)
    def __del__(self):
        Ring.living -= 1
# Half of them survive the first collection, as objects of requests under way do.
kept = []
for number in range(400_000):
    kept.append(Ring())
    if len(kept) > 12_500:
        kept.clear()
print(Ring.most < 130_000)
"""


@pytest.mark.once
def test_a_warm_process_has_loaded_its_pages_and_limits_uncollected_cycles(tmp_path):
    env = clean_environment(DATA_DIR=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", WARM], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "True", "True", "True"]


def test_a_cached_icon_equals_the_icon_of_the_package():
    drawn = heroicon_outline("server", size=24, stroke_width=1.5)
    assert icon("server", size=24, stroke_width=1.5) == drawn
    assert icon("server", size=24, stroke_width=1.5) == drawn
    assert icon("server", size=16, stroke_width=1.5) != drawn
    with pytest.raises(IconDoesNotExist):
        icon("no-such-icon")
