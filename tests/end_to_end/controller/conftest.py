"""One control plane for all tests of a controller process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.controller_plane import Plane


@pytest.fixture(scope="package")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    folder = Path(tmp_path_factory.mktemp("plane"))
    plane = Plane(folder)
    try:
        yield plane
    finally:
        plane.close()
