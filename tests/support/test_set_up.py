"""Setup of `make test` before the first test."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn
from unittest.mock import Mock

import pytest

from tests.support import Missing, chromium
from tests.support import __main__ as module
from tests.support.chromium import LIBATOMIC, driver_environment
from tests.support.parts import Outcome, Part


@contextmanager
def fake_server() -> Iterator[str]:
    yield "somewhere"


def no_browser() -> NoReturn:
    raise Missing("Chromium: install chromium")


@pytest.fixture
def started_parts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the parts that were run, on a machine without a browser."""
    names: list[str] = []

    def run(part: Part, extra: list[str]) -> Outcome:
        names.append(part.name)
        return Outcome(part.name, 0, 1)

    for name in ("valkey_server", "postgres_server"):
        monkeypatch.setattr(module, name, fake_server)
    for name in ("valkey_version", "postgres_version", "program_version", "playwright_version"):
        monkeypatch.setattr(module, name, Mock(return_value="1.0, here"))
    monkeypatch.setattr(module, "prometheus", lambda: "/programs")
    monkeypatch.setattr(module, "gettext_folder", lambda: "/programs")
    monkeypatch.setattr(module, "driver_environment", dict)
    monkeypatch.setattr(module, "chromium", no_browser)
    monkeypatch.setattr(Part, "run", run)
    return names


@pytest.mark.parametrize(
    ("environ", "code", "parts"), [({}, 0, ["PostgreSQL", "SQLite"]), ({"CI": "true"}, 1, [])]
)
def test_missing_programs_are_listed_first_and_fail_a_run_in_ci(
    environ: dict[str, str],
    code: int,
    parts: list[str],
    started_parts: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert module.main([], environ) == code
    assert started_parts == parts
    output = capsys.readouterr().out.partition("Summary")[0]
    assert output.splitlines()[:7] == [
        "The tests run on",
        "  Valkey: 1.0, here",
        "  PostgreSQL: 1.0, here",
        "  Prometheus: 1.0, here",
        "  GNU gettext: 1.0, here",
        "  Playwright: 1.0, here",
        "  missing: Chromium: install chromium",
    ]


@pytest.mark.parametrize(
    ("failures", "found"), [([""], {}), (["libatomic.so.1: cannot open", ""], {"LD_LIBRARY_PATH": "/lib/a"})]
)
def test_the_driver_gets_the_library_that_a_minimal_machine_lacks(
    failures: list[str], found: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    monkeypatch.setattr(chromium, "driver_failure", Mock(side_effect=failures))
    monkeypatch.setattr(type(LIBATOMIC), "download", Mock(return_value=Path("/lib/a/libatomic.so.1")))
    assert driver_environment() == found


def test_a_driver_that_does_not_start_is_reported_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chromium, "driver_failure", Mock(return_value="no libatomic.so.1"))
    monkeypatch.setattr(type(LIBATOMIC), "download", Mock(return_value=Path("/lib/a/libatomic.so.1")))
    with pytest.raises(Missing, match=r"^Playwright: its driver does not start: no libatomic.so.1$"):
        driver_environment()
