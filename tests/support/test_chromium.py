import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support import Missing
from tests.support.chromium import chromium


def program(folder: Path, name: str) -> str:
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def only_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CHROMIUM", raising=False)


def test_a_configured_path_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "chromium")
    monkeypatch.setenv("CHROMIUM", program(tmp_path, "my-browser"))
    assert chromium() == str(tmp_path / "my-browser")


def test_a_wrong_path_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHROMIUM", "/nowhere/chromium")
    with pytest.raises(Missing, match="CHROMIUM=/nowhere/chromium is no program"):
        chromium()


def test_chromium_is_found_on_the_path(tmp_path: Path) -> None:
    program(tmp_path, "google-chrome")
    assert chromium() == str(tmp_path / "google-chrome")


@pytest.mark.parametrize(("user", "tried"), [(1000, []), (0, ["update", "install"])])
def test_only_root_installs_chromium(
    user: int, tried: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def note(argv: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        calls.append(argv[2])
        return subprocess.CompletedProcess(argv, 100, "", "E: nothing can be installed")

    program(tmp_path, "apt-get")
    monkeypatch.setattr("os.geteuid", lambda: user)
    monkeypatch.setattr(subprocess, "run", note)
    with pytest.raises(Missing, match="install chromium or set CHROMIUM"):
        chromium()
    assert calls == tried
