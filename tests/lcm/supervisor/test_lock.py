import os
from pathlib import Path

import pytest

from lcm.supervisor import lock


def test_a_second_supervisor_gets_the_process_id_of_the_first(tmp_path: Path) -> None:
    with (
        lock.hold_lock(tmp_path),
        pytest.raises(lock.AlreadyRunningError) as refusal,
        lock.hold_lock(tmp_path),
    ):
        pass
    assert str(refusal.value) == (
        f"LCM is already running on {tmp_path} (process {os.getpid()}). Stop it or set another DATA_DIR"
    )


def test_the_lock_is_released_afterwards(tmp_path: Path) -> None:
    for _ in range(2):
        with lock.hold_lock(tmp_path):
            assert (tmp_path / "up.lock").read_text() == str(os.getpid())
