"""The data folder is private to LCM's user and has one supervisor."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcm.config.data_folder import AlreadyRunningError, hold_lock, make_private

# Files that other users could read.
FILES = [
    "lcm.sqlite3",
    "lcm.sqlite3-wal",
    "lcm.sqlite3-shm",
    "secret-key",
    "up.lock",
    "celerybeat-schedule.db",
    "valkey/appendonlydir/appendonly.aof.1.incr.aof",
    "valkey/valkey.log",
    "metrics/counter_1.db",
    "controller/token",
    "controller/spool/1.json",
    "prometheus/data/wal/00000001",
]


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_folder_and_new_files_are_private(tmp_path: Path) -> None:
    assert make_private(tmp_path / "srv" / "lcm") == []
    (tmp_path / "srv" / "lcm" / "new").touch()
    assert mode(tmp_path / "srv" / "lcm") == 0o700
    assert mode(tmp_path / "srv" / "lcm" / "new") == 0o600
    assert mode(tmp_path / "srv") == 0o755, "only the data folder is LCM's own"


def test_existing_files_become_private(tmp_path: Path) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o664)
    assert make_private(tmp_path) == []
    assert {name: mode(tmp_path / name) for name in FILES} == dict.fromkeys(FILES, 0o600)
    folders = [path for path in (tmp_path, *tmp_path.rglob("*")) if path.is_dir()]
    assert {mode(path) for path in folders} == {0o700}


def test_shared_folders_and_link_targets_are_unchanged(tmp_path: Path) -> None:
    shared, target = tmp_path / "shared", tmp_path / "elsewhere"
    shared.mkdir()
    shared.chmod(0o1777)
    target.mkdir()
    target.chmod(0o755)
    (shared / "valkey").symlink_to(target)
    assert make_private(shared) == [shared]
    assert mode(shared) == 0o1777
    assert mode(target) == 0o755


def test_a_second_supervisor_gets_the_process_id_of_the_first(tmp_path: Path) -> None:
    with (
        hold_lock(tmp_path),
        pytest.raises(AlreadyRunningError) as refusal,
        hold_lock(tmp_path),
    ):
        pass
    assert str(refusal.value) == (
        f"LCM is already running on {tmp_path} (process {os.getpid()}). Stop it or set another DATA_DIR"
    )


def test_the_lock_is_released_afterwards(tmp_path: Path) -> None:
    for _ in range(2):
        with hold_lock(tmp_path):
            assert (tmp_path / "up.lock").read_text() == str(os.getpid())
