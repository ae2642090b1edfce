"""The client and the observation depend on httpx and pydantic only."""

import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

MODULES = [
    "client.client",
    "client.endpoint",
    "client.errors",
    "observation.live_ports",
    "observation.model",
    "observation.observer",
    "ports",
]
FORBIDDEN = ["django", "yaml", "rest_framework", "celery", "gunicorn", "redis", "prometheus_client"]


def requirements_of(name, seen):
    """Return the distributions that one needs on this Python, including itself."""
    found = distribution(name)
    seen[re.sub(r"[-_.]+", "-", name).lower()] = found
    for text in found.requires or ():
        requirement = Requirement(text)
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if applies and re.sub(r"[-_.]+", "-", requirement.name).lower() not in seen:
            requirements_of(requirement.name, seen)
    return seen


@pytest.fixture(scope="module")
def isolated_python(tmp_path_factory):
    """Return the Python of a virtual environment with httpx, pydantic, their dependencies and the sources."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    for each in (requirements_of("httpx", {}) | requirements_of("pydantic", {})).values():
        for top in {Path(file.parts[0]) for file in each.files or () if ".." not in file.parts}:
            source = Path(each.locate_file(top))
            if source.suffix != ".dist-info" and not (site / top).exists():
                (site / top).symlink_to(source)
    (site / "lcm").symlink_to(Path("lcm").resolve())
    return folder / "bin" / "python"


def run_isolated(python, code):
    return subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_with_httpx_and_pydantic_only(isolated_python, name):
    result = run_isolated(isolated_python, f"import lcm.cml.{name}")
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("name", FORBIDDEN)
def test_forbidden_modules_are_not_installed(isolated_python, name):
    assert "ModuleNotFoundError" in run_isolated(isolated_python, f"import {name}").stderr


def test_an_observation_works_with_httpx_and_pydantic_only(isolated_python):
    code = """
import asyncio, httpx
from lcm.cml.client.client import CmlClient
from lcm.cml.observation.observer import observe_lab
from lcm.cml.client.endpoint import CmlEndpoint

def response(request):
    if request.url.path.endswith("/nodes"):
        running = {"cpus": 2, "cpu_limit": 50, "ram": 512}
        node = {"id": "n", "label": "R1", "node_definition": "iosv", "tags": ["serial:5001"]}
        return httpx.Response(200, json=[{**node, "state": "BOOTED", "operational": running}])
    return httpx.Response(200, json="token" if request.method == "POST" else {})

async def go():
    worker = CmlEndpoint("w", "http://x", "a", "b")
    async with CmlClient(worker, transport=httpx.MockTransport(response)) as cml:
        seen = await observe_lab(cml, "lab")
        print(seen.total_cpu_cores, seen.total_memory_mb, seen.observed_ports)

asyncio.run(go())
"""
    result = run_isolated(isolated_python, code)
    assert (result.stdout, result.stderr) == ("1.00 512 {'R1_serial': 5001}\n", "")
