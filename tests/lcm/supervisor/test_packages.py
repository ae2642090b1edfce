"""Debian and Ubuntu packages without root, with an apt-get that fails in every way."""

import shutil
from pathlib import Path

import pytest

from lcm.supervisor.debian_packages import DownloadError, Package
from tests.lcm.supervisor.apt import build_package, path_with_apt

pytestmark = pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="not a Debian or Ubuntu")

HELLO = Package("hello", "usr/bin/hello", is_program=True)
WORKS = "#!/bin/sh\nexit 0\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "programs"


def use_apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    monkeypatch.setenv("PATH", path_with_apt(tmp_path, script))


def serve_archive(archive: Path) -> str:
    return f'case "$*" in *download*) cp {archive} hello_1_all.deb;; esac'


def is_clean(folder: Path) -> bool:
    return [path.name for path in folder.iterdir()] == ["hello.lock"]


def test_a_package_is_downloaded_once(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = build_package(tmp_path, "hello", {"usr/bin/hello": WORKS})
    use_apt(tmp_path, monkeypatch, serve_archive(archive))
    found = HELLO.download(folder, report=print)
    assert found == HELLO.find(folder) == folder / "hello" / "usr" / "bin" / "hello"
    assert HELLO.download(folder, report=print) == found
    assert len((tmp_path / "calls").read_text().splitlines()) == 1
    assert sorted(path.name for path in folder.iterdir()) == ["hello", "hello.lock"]


def test_without_package_lists_private_ones_are_created(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a new machine apt-get does not know the package, and only root can update the lists."""
    archive = build_package(tmp_path, "hello", {"usr/bin/hello": WORKS})
    unknown = 'case "$*" in *Dir::State::lists=*) ;; *) echo half >hello_1_all.deb; exit 100;; esac\n'
    use_apt(tmp_path, monkeypatch, unknown + serve_archive(archive))
    assert HELLO.download(folder, report=print).exists()
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [call.split()[-1] for call in calls] == ["hello", "update", "hello"]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo E: Unable to locate package hello >&2; exit 100", "Unable to locate package hello"),
        ("exec sleep 60", "apt-get took too long"),
        ("exit 0", "0 archives of hello"),
        ('case "$*" in *download*) echo garbage >hello_1_all.deb;; esac', "archive"),
    ],
    ids=["fails", "hangs", "nothing", "garbage"],
)
def test_a_failed_download_leaves_no_files(
    script: str, reason: str, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_apt(tmp_path, monkeypatch, script)
    with pytest.raises(DownloadError, match=reason):
        HELLO.download(folder, report=print, seconds=2)
    assert HELLO.find(folder) is None
    assert is_clean(folder)


def test_a_program_that_does_not_run_is_not_used(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = build_package(tmp_path, "hello", {"usr/bin/hello": "#!/bin/sh\nexit 1\n"})
    use_apt(tmp_path, monkeypatch, serve_archive(archive))
    with pytest.raises(DownloadError, match="does not work on this machine"):
        HELLO.download(folder, report=print)
    assert is_clean(folder)


def test_broken_or_interrupted_downloads_are_repeated(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = folder / "hello" / "usr" / "bin" / "hello"
    broken.parent.mkdir(parents=True)
    broken.touch(mode=0o755)
    broken.write_bytes(b"\x7fELF")
    (folder / "hello.partial").mkdir()
    (folder / "hello.partial" / "hello_1_all.deb").write_text("half")
    assert HELLO.find(folder) is None
    use_apt(tmp_path, monkeypatch, serve_archive(build_package(tmp_path, "hello", {"usr/bin/hello": WORKS})))
    assert HELLO.download(folder, report=print).read_text() == WORKS


def test_a_read_only_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DownloadError, match="Not a directory"):
        HELLO.download(tmp_path / "file" / "programs", report=print)
