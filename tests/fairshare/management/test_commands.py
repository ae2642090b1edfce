"""Management commands of fair share."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from fairshare.management.commands.rebuild_usage import ProgressBar
from fairshare.models import UsageBatch, UsageBucket, UsageCheck
from tests.fairshare.arithmetic.test_factor import SLURM, SSHARE_OUTPUT
from tests.support.control_plane import ROOT
from tests.support.environment import clean_environment
from tests.support.fairshare_setup import check_all_charged


def run(*arguments, **options):
    out = io.StringIO()
    call_command(*arguments, stdout=out, **options)
    return out.getvalue()


@pytest.fixture
def days(stage):
    """Three days of a session of four cores."""
    stage.start()
    stage.clock.advance(days=2, hours=10)
    stage.run("record", "aggregate")
    return stage


def test_a_check_reports_that_records_and_buckets_are_equal(days):
    assert run("rebuild_usage", "--check") == (
        "Records and buckets from 2026-03-02 to 2026-03-04 are equal.\n"
    )
    assert UsageCheck.objects.get().difference_count == 0


def test_a_check_prints_differences_and_changes_nothing(days):
    UsageBucket.objects.filter(level="user", day="2026-03-03").update(cpu_cores=5)
    out = io.StringIO()
    with pytest.raises(CommandError, match=r"1 bucket from .* differs from its records"):
        call_command("rebuild_usage", "--check", stdout=out)
    assert "2026-03-03 cml-eu user" in out.getvalue()
    assert "cpu_cores 5 in the bucket, 34,560,000,000 in records" in out.getvalue()
    assert UsageBucket.objects.filter(cpu_cores=5).exists()


def test_a_rebuild_repairs_buckets(days):
    UsageBucket.objects.filter(level="user", day="2026-03-03").update(cpu_cores=5)
    UsageBucket.objects.filter(level="domain").delete()
    assert "Repaired 4 buckets from 2026-03-02 to 2026-03-04." in run("rebuild_usage")
    check_all_charged(days)


def test_a_rebuild_of_one_day_does_not_change_other_days(days):
    UsageBucket.objects.all().update(gpu=5)
    out = run("rebuild_usage", "--from", "2026-03-03", "--to", "2026-03-03")
    assert "Repaired 3 buckets from 2026-03-03 to 2026-03-03." in out
    assert set(UsageBucket.objects.filter(gpu=5).values_list("day", flat=True).distinct()).__len__() == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "2026-03-01"], "Records before 2026-03-02 were removed"),
        (["--from", "2026-03-04", "--to", "2026-03-03"], "2026-03-04 is after 2026-03-03"),
        (["--from", "yesterday"], "not a date"),
    ],
)
def test_invalid_days_are_rejected(arguments, message, days):
    with pytest.raises(CommandError, match=message):
        run("rebuild_usage", *arguments)


def test_days_whose_records_were_removed_keep_their_buckets(days):
    before = list(UsageBucket.objects.order_by("pk").values())
    UsageBatch.objects.filter(last_day="2026-03-02").update(removed_at=days.clock())
    with pytest.raises(CommandError, match="Records before 2026-03-03 were removed"):
        run("rebuild_usage", "--from", "2026-03-02")
    run("rebuild_usage")
    assert list(UsageBucket.objects.order_by("pk").values()) == before


def test_without_records_there_is_nothing_to_rebuild(db):
    with pytest.raises(CommandError, match="no record"):
        run("rebuild_usage")


def test_retention_prints_the_deleted_rows(days, time_machine):
    time_machine.move_to(days.clock() + timedelta(days=91), tick=False)
    assert run("usage_retention").startswith("Removed 2,0")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_a_progress_bar():
    stream = Terminal()
    with ProgressBar(4, "day", stream) as progress:
        for _ in range(4):
            progress.step()
    shown = stream.getvalue().split("\r")
    assert shown[1].endswith("░ 0 of 4 days")
    assert shown[-1] == f"{'█' * 30} 4 of 4 days\n"


def test_a_log_shows_no_progress_bar():
    stream = io.StringIO()
    with ProgressBar(4, "day", stream) as progress:
        progress.step()
    assert stream.getvalue() == ""


# --- simulation ----------------------------------------------------------------------------------------


def document(rows=SLURM, **more):
    """Convert a flat table of paths to the nested document of the command."""
    nodes = {}
    top = []
    for path, weight, usage in rows:
        node = {"name": path.rsplit("/", 1)[-1], "weight": weight, "usage": usage, "children": []}
        nodes[path] = node
        above = path.rsplit("/", 1)[0] if "/" in path else ""
        (nodes[above]["children"] if above else top).append(node)
    return {"tree": top, **more}


@pytest.fixture
def file(tmp_path):
    def write(content):
        path = tmp_path / "tree.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    return write


def test_a_simulation_gives_the_output_of_sshare(file):
    rows = json.loads(run("fairshare_simulate", file(document(unattributed=30)), "--json"))
    found = {"/".join(row["path"]): row for row in rows}
    for path, (share, effective, factor) in SSHARE_OUTPUT.items():
        row = found[path]
        shown = [f"{row[name]:.6f}" for name in ("norm_share", "effective_usage", "factor")]
        assert shown == [f"{value:.6f}" for value in (share, effective, factor)]
    assert found["A/C/user-3"]["level_fair_share"] is None
    assert (found["A/C"]["level_share"], found["A/C/user-3"]["level_share"]) == (0.25, 0.5)


def test_a_simulation_is_printed_as_a_table(file):
    lines = run("fairshare_simulate", file(document(unattributed=30))).splitlines()
    assert lines[0].split() == [
        "Subject",
        "Weight",
        "Level",
        "share",
        "Norm",
        "share",
        "Usage",
        "Norm",
        "usage",
        "Effective",
        "Factor",
        "Level",
        "FS",
        "Rank",
    ]
    first = next(line for line in lines if "user-1" in line)
    assert " ".join(first.split()) == "user-1 1 1 0.300000 20 0.200000 0.387500 0.408479 1 3"
    assert next(line for line in lines if "user-3" in line).split()[-2:] == ["inf", "4"]


def test_a_simulation_can_normalise_by_capacity(file):
    rows = [("d", None, 0), ("d/p", None, 0), ("d/p/u", 2, 200)]
    content = document(rows, policy={"normalisation": "capacity"}, capacity={"cpu_cores": 800})
    found = json.loads(run("fairshare_simulate", file(content), "--json"))
    assert found[2]["effective_usage"] == 0.25
    assert found[2]["factor"] == pytest.approx(2**-0.125)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "JSON object"),
        ({}, "list of nodes"),
        ({"tree": []}, "list of nodes"),
        ({"tree": [{"weight": 1}]}, "no name"),
        ({"tree": [{"name": "a", "weight": 1e-9}]}, "The weight of a: It must be between 0.000001 and"),
        ({"tree": [{"name": "a", "weight": "NaN"}]}, "must be between .* but is NaN"),
        ({"tree": [{"name": "a", "usage": -1}]}, "not an amount"),
        ({"tree": [{"name": "a", "usage": {"ram": 1}}]}, "“ram”"),
        ({"tree": [{"name": "a", "colour": 1}]}, "“colour”"),
        ({"tree": [{"name": "a"}, {"name": "a"}]}, "twice"),
        ({"tree": [{"name": "a", "children": 1}]}, "must be a list"),
        ({"tree": [{"name": "a"}], "policy": {"half_life_days": 0}}, "policy.half_life_days"),
        ({"tree": [{"name": "a"}], "policy": {"mood": 1}}, "“mood”"),
        ({"tree": [{"name": "a"}], "policy": {"normalisation": "capacity"}}, "needs “capacity”"),
    ],
)
def test_invalid_documents_are_rejected(content, message, file):
    with pytest.raises(CommandError, match=message):
        run("fairshare_simulate", file(content))


def test_a_tree_with_more_than_three_levels_is_rejected(file):
    with pytest.raises(CommandError, match="only three levels"):
        run(
            "fairshare_simulate",
            file(document([("a", 1, 0), ("a/b", 1, 0), ("a/b/c", 1, 0), ("a/b/c/d", 1, 0)])),
        )


def test_a_missing_file_is_reported():
    with pytest.raises(CommandError, match="cannot be read"):
        run("fairshare_simulate", "/no/such/file.json")


def test_a_simulation_needs_no_database(file, tmp_path):
    """Run as a process with a database that does not exist."""
    done = subprocess.run(
        [sys.executable, "manage.py", "fairshare_simulate", file(document()), "--json"],
        cwd=ROOT,
        env=clean_environment(DATABASE_URL="postgres://lcm@127.0.0.1:1/missing", DATA_DIR=str(tmp_path)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) == len(SLURM)
