import subprocess
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.bench import Missing
from tests.bench import prometheus as module
from tests.bench.prometheus import prometheus
from tests.bench.test_chromium import program


@pytest.fixture(autouse=True)
def only_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


def test_both_programs_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    program(tmp_path, "prometheus")
    with pytest.raises(Missing, match="install prometheus"):
        prometheus()
    program(tmp_path, "promtool")
    assert prometheus() == str(tmp_path)


@pytest.mark.parametrize(("user", "tried"), [(1000, []), (0, ["update", "install"])])
def test_only_root_tries_to_install_it(
    user: int, tried: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    policies: list[str] = []
    policy = tmp_path / "policy-rc.d"

    def note(argv: list[str], **options: Any) -> None:
        calls.append(argv[2])
        policies.append(policy.read_text())

    program(tmp_path, "apt-get")
    monkeypatch.setattr(module, "POLICY", policy)
    monkeypatch.setattr("os.geteuid", lambda: user)
    monkeypatch.setattr(subprocess, "run", note)
    with pytest.raises(Missing, match="install prometheus"):
        prometheus()
    assert calls == tried
    assert set(policies) <= {module.NO_SERVICES}
    assert not policy.exists()


def test_a_policy_that_is_there_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = tmp_path / "policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 0\n")
    program(tmp_path, "apt-get")
    monkeypatch.setattr(module, "POLICY", policy)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(subprocess, "run", Mock())
    with pytest.raises(Missing):
        prometheus()
    assert policy.read_text() == "#!/bin/sh\nexit 0\n"
