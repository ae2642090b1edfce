"""The code of docs/plugins.md, run from a package that is installed beside LCM."""

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
SPOT_VERSIONS = [text for name, text in CODE if name == "spot.py"]
FINAL_CODE = dict(CODE)


def install(folder: Path, spot: str) -> Path:
    """The package of the guide."""
    points = tomllib.loads(FINAL_CODE["pyproject.toml"])["project"]["entry-points"]
    return install_package(folder, "own_plugins", {"spot.py": spot, "gpus.py": FINAL_CODE["gpus.py"]}, points)


def replay(folder: Path, cluster, config: str) -> subprocess.CompletedProcess[str]:
    """Run in a separate process, which finds the package on its path."""
    (folder / "snapshot.json").write_text(write_snapshot(cluster))
    (folder / "pool.yaml").write_text(config)
    return subprocess.run(
        [sys.executable, "manage.py", "scheduler_replay", str(folder / "snapshot.json"), "--config",
         str(folder / "pool.yaml"), "--json"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(folder), "SECRET_KEY": "x" * 50},
    )  # fmt: skip


def cluster():
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


def load_module(text: str, monkeypatch) -> ModuleType:
    module = ModuleType("guide")
    monkeypatch.setitem(sys.modules, "guide", module)
    exec(compile(text, "guide.py", "exec"), vars(module))
    return module


def test_every_code_block_belongs_to_a_file_and_runs(monkeypatch):
    assert len(SPOT_VERSIONS) == 4
    assert GUIDE.count("```python") == len([name for name, _ in CODE if name.endswith(".py")])
    assert all(load_module(text, monkeypatch) for name, text in CODE if name.endswith(".py"))


def test_a_plugin_of_another_package_is_found_configured_called_and_named(tmp_path):
    completed = replay(install(tmp_path, FINAL_CODE["spot.py"]), cluster(), FINAL_CODE["pool.yaml"])
    assert completed.returncode == 0, completed.stderr
    result = json.loads(completed.stdout)
    assert result["failures"] == {}
    verdicts = {verdict["job"]: verdict for verdict in result["verdicts"]}
    # The argument reverses the preference: preemptible jobs prefer the spot slot.
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


def test_the_arguments_of_an_installed_plugin_are_validated(tmp_path):
    config = FINAL_CODE["pool.yaml"].replace("prefer: true", "prefer: 3")
    completed = replay(install(tmp_path, FINAL_CODE["spot.py"]), cluster(), config)
    assert completed.returncode == 1
    assert "Line 5: “prefer” must be true or false, but is 3." in completed.stderr


def test_a_package_that_cannot_be_loaded_does_not_affect_other_plugins(tmp_path):
    completed = replay(install(tmp_path, "raise RuntimeError('no')"), cluster(), FINAL_CODE["pool.yaml"])
    assert completed.returncode == 1
    assert (
        "The plugin “own_spot” cannot be used: own_plugins.spot:OwnSpotPlugin: RuntimeError: no"
        in completed.stderr
    )
    config = FINAL_CODE["pool.yaml"].replace("  - name: own_spot\n    arguments: {prefer: true}\n", "")
    assert replay(tmp_path, cluster(), config).returncode == 0


@pytest.mark.parametrize("text", SPOT_VERSIONS[1:], ids=["a rule", "a preference", "quick"])
def test_every_step_of_the_guide_keeps_exams_off_spot_slots(text, monkeypatch):
    plugin = load_module(text, monkeypatch).OwnSpotPlugin()
    only_spot = snapshot([node("spot", spot=True)], [job("exam"), job("practice", preemptible=True)])
    cycle = run_with(only_spot, plugin)
    assert [(verdict.job.id, verdict.outcome.value) for verdict in cycle.verdicts] == [
        ("exam", "impossible"), ("practice", "placed"),
    ]  # fmt: skip
    assert "spot slot" in cycle.verdicts[0].why.message
    both = snapshot([node("a", spot=True), node("b")], [job("practice", preemptible=True)])
    if "score" in text:
        assert run_with(both, plugin).placed[0].parts[0].node == "b"
