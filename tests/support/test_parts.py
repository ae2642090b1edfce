import pytest

from tests.support.parts import Outcome, Part, plan


def marks(parts: list[Part]) -> list[tuple[str, set[str]]]:
    return [(part.name, set(part.without)) for part in parts]


def test_tests_run_on_postgresql_and_database_tests_on_sqlite_too() -> None:
    parts = plan(base={}, postgres="postgres://x", lacking=[])
    assert marks(parts) == [
        ("PostgreSQL", {"sqlite"}),
        ("SQLite", {"browser", "integration", "once", "plain", "postgres", "prometheus"}),
    ]
    assert parts[0].env == {"DATABASE_URL": "postgres://x"}
    assert "DATABASE_URL" not in parts[1].env


def test_without_a_browser_browser_tests_are_excluded() -> None:
    parts = plan(base={}, postgres="postgres://x", lacking=["browser"])
    assert marks(parts)[0] == ("PostgreSQL", {"browser", "sqlite"})


def test_without_postgresql_the_other_tests_run_on_sqlite() -> None:
    assert marks(plan(base={}, postgres=None, lacking=["postgres"])) == [("SQLite", {"postgres"})]


def test_the_fast_run_starts_no_servers() -> None:
    parts = plan(base={}, postgres=None, lacking=[], fast=True)
    assert marks(parts) == [("SQLite", {"browser", "integration", "once", "postgres", "prometheus", "slow"})]


def test_marks_become_a_pytest_expression() -> None:
    command = Part("SQLite", {}, ("browser", "postgres")).command(["-x"])
    assert command[-3:] == ["-m", "not browser and not postgres", "-x"]
    assert "-m" not in Part("PostgreSQL", {}).command([])[3:]


@pytest.mark.parametrize(("code", "text"), [(0, "passed in 3 s"), (1, "FAILED (pytest exit code 1) in 3 s")])
def test_an_outcome_shows_result_and_duration(code: int, text: str) -> None:
    assert str(Outcome("SQLite", code, 3.2)) == f"SQLite: {text}"


@pytest.mark.xdist_group("together")
def test_groups_stay_on_one_worker(request: pytest.FixtureRequest) -> None:
    """The scheduler of pytest-xdist reads the group from the end of the test id."""
    if not hasattr(request.config, "workerinput"):
        pytest.skip("one process runs everything")
    assert request.node.nodeid.endswith("@together")
