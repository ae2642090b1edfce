import shutil
from pathlib import Path

import pytest

from tests.lcm.supervisor.apt import build_package, path_with_apt
from tests.support import Missing
from tests.support import prometheus as module
from tests.support.prometheus import prometheus
from tests.support.test_chromium import program


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the download folder of this test."""
    monkeypatch.setattr(module, "PROGRAMS", tmp_path / "programs")
    return tmp_path / "programs"


def test_both_programs_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    program(tmp_path, "prometheus")
    with pytest.raises(Missing, match=r"install prometheus and promtool .*\(.*apt-get"):
        prometheus()
    program(tmp_path, "promtool")
    assert prometheus() == str(tmp_path)


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="not a Debian or Ubuntu")
def test_the_programs_are_downloaded_without_installing_a_service(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = build_package(tmp_path, "prometheus", {"usr/bin/prometheus": "#!/bin/sh\n"})
    monkeypatch.setenv("PATH", path_with_apt(tmp_path, f"cp {archive} prometheus_1_all.deb"))
    assert prometheus() == str(programs / "prometheus" / "usr" / "bin")
    assert "install" not in (tmp_path / "calls").read_text()
