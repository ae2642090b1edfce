"""docs/plugins.md is run as written, from a package that is installed beside LCM."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from scheduling.placement.framework.snapshot_json import write_snapshot
from tests.scheduling.placement.inline_plugins import job, node, run_with, snapshot
from tests.support.packages import install_package

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "plugins.md").read_text()
BLOCK = re.compile(r"```(?P<language>\w+)\n# file: (?P<name>[\w.]+)\n(?P<text>.*?)```", re.DOTALL)
CODE = [(match["name"], match["text"]) for match in BLOCK.finditer(GUIDE)]
SPOT = [text for name, text in CODE if name == "spot.py"]
LAST = dict(CODE)


def install(folder: Path, spot: str) -> Path:
    """The package of the guide."""
    points = tomllib.loads(LAST["pyproject.toml"])["project"]["entry-points"]
    return install_package(folder, "own_plugins", {"spot.py": spot, "gpus.py": LAST["gpus.py"]}, points)


def replay(folder: Path, world, config: str) -> subprocess.CompletedProcess[str]:
    """Run in a separate process, which finds the package on its path."""
    (folder / "snapshot.json").write_text(write_snapshot(world))
    (folder / "pool.yaml").write_text(config)
    return subprocess.run(
        [sys.executable, "manage.py", "scheduler_replay", str(folder / "snapshot.json"), "--config",
         str(folder / "pool.yaml"), "--json"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(folder), "SECRET_KEY": "x" * 50},
    )  # fmt: skip


def world():
    half = (50,)
    nodes = [
        node("plain", 2),
        node("spot", 2, gpu=1, spot=True, taken=(0, 0, 0, *half), taken_devices=((0, *half),)),
    ]
    return snapshot(
        nodes,
        [
            job("practice", 1, preemptible=True),
            job("exam", 2, created=1),
            job("exam-2", 2, created=2),
            job("part", 0.5, gpu=0.25, preemptible=True, created=3),
            job("crowded", 0.5, gpu=0.5, preemptible=True, created=4),
        ],
    )


def loaded(text: str, monkeypatch) -> ModuleType:
    module = ModuleType("guide")
    monkeypatch.setitem(sys.modules, "guide", module)
    exec(compile(text, "guide.py", "exec"), vars(module))
    return module


def test_every_block_of_code_is_of_a_file_and_run(monkeypatch):
    assert len(SPOT) == 4
    assert GUIDE.count("```python") == len([name for name, _ in CODE if name.endswith(".py")])
    assert all(loaded(text, monkeypatch) for name, text in CODE if name.endswith(".py"))


def test_a_plugin_of_another_package_is_found_configured_called_and_named(tmp_path):
    done = replay(install(tmp_path, LAST["spot.py"]), world(), LAST["pool.yaml"])
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["failures"] == {}
    verdicts = {verdict["job"]: verdict for verdict in result["verdicts"]}
    # Its argument turns the preference round: the spot slot is taken first by who may be there.
    assert list(verdicts["practice"]["nodes"]) == ["spot"]
    assert verdicts["practice"]["scores"]["own_spot"] == 1_000_000_000
    assert list(verdicts["exam"]["nodes"]) == ["plain"]
    assert list(verdicts["part"]["nodes"]) == ["spot"]
    assert ("own_spot", "own_spot") in {
        (each["code"], each["plugin"]) for each in verdicts["exam-2"]["reasons"]
    }
    assert "1 spot slot" in verdicts["exam-2"]["why"]
    assert ("crowded-gpu", "own_gpus") in {
        (each["code"], each["plugin"]) for each in verdicts["crowded"]["reasons"]
    }


def test_its_arguments_are_checked_like_other_plugins_arguments(tmp_path):
    config = LAST["pool.yaml"].replace("prefer: true", "prefer: 3")
    done = replay(install(tmp_path, LAST["spot.py"]), world(), config)
    assert done.returncode == 1
    assert "Line 5: “prefer” must be true or false, but is 3." in done.stderr


def test_a_package_that_cannot_be_loaded_does_not_take_the_others_with_it(tmp_path):
    done = replay(install(tmp_path, "raise RuntimeError('no')"), world(), LAST["pool.yaml"])
    assert done.returncode == 1
    assert (
        "The plugin “own_spot” cannot be used: own_plugins.spot:OwnSpotPlugin: RuntimeError: no"
        in done.stderr
    )
    config = LAST["pool.yaml"].replace("  - name: own_spot\n    arguments: {prefer: true}\n", "")
    assert replay(tmp_path, world(), config).returncode == 0


@pytest.mark.parametrize("text", SPOT[1:], ids=["a rule", "a preference", "quick"])
def test_every_step_of_the_guide_keeps_exams_off_spot_slots(text, monkeypatch):
    plugin = loaded(text, monkeypatch).OwnSpotPlugin()
    only_spot = snapshot([node("spot", spot=True)], [job("exam"), job("practice", preemptible=True)])
    cycle = run_with(only_spot, plugin)
    assert [(verdict.job.id, verdict.outcome.value) for verdict in cycle.verdicts] == [
        ("exam", "impossible"), ("practice", "placed"),
    ]  # fmt: skip
    assert "spot slot" in cycle.verdicts[0].why.message
    both = snapshot([node("a", spot=True), node("b")], [job("practice", preemptible=True)])
    if "score" in text:
        assert run_with(both, plugin).placed[0].parts[0].node == "b"
