"""`scheduler_snapshot`: a pool's next cycle as a document that gives the same result on another machine."""

from __future__ import annotations

import json
from io import StringIO
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from scheduling.models import Decision, Reservation
from scheduling.placement.framework.snapshot_json import read_snapshot, write_snapshot

RECLAIMING = """\
actions: [allocate, reclaim]
plugins: [cordon, leases, ports, resources, priority, fairshare, binpack]
"""


def snapshot_text(pool: str) -> str:
    output = StringIO()
    call_command("scheduler_snapshot", pool, stdout=output)
    return output.getvalue()


def replay_verdicts(text: str, config: str, tmp_path) -> dict[UUID, dict]:
    snapshot, configuration, output = tmp_path / "snapshot.json", tmp_path / "pool.yaml", StringIO()
    snapshot.write_text(text)
    configuration.write_text(config)
    call_command("scheduler_replay", str(snapshot), "--config", str(configuration), "--json", stdout=output)
    return {UUID(verdict["job"]): verdict for verdict in json.loads(output.getvalue())["verdicts"]}


@pytest.mark.django_db
def test_an_unknown_pool_is_reported():
    with pytest.raises(CommandError, match=r"There is no pool “nowhere”. There are: none."):
        call_command("scheduler_snapshot", "nowhere")


@pytest.mark.parametrize("config", ["", RECLAIMING], ids=["default", "with running jobs"])
def test_a_replay_gives_the_same_result_as_the_tick(configure_pool, config, tmp_path):
    fleet = configure_pool(scheduler=config, max_slots=2)
    fleet.slot()
    fleet.slot(cordoned=True)
    running = fleet.reservation(10)
    fleet.tick_without_errors()
    waiting = [fleet.reservation(cores) for cores in (4, 8, 2, 16)]
    text = snapshot_text(fleet.pool.name)
    assert write_snapshot(read_snapshot(text)) == text
    verdicts = replay_verdicts(text, config, tmp_path)
    assert running.pk not in verdicts
    fleet.tick_without_errors()
    decisions = {row.reservation_id: row for row in Decision.objects.order_by("at", "pk")}
    for reservation in waiting:
        row = Reservation.objects.select_related("slot").get(pk=reservation.pk)
        verdict = verdicts[reservation.pk]
        assert verdict["outcome"] == decisions[reservation.pk].outcome
        assert list(verdict.get("nodes", {})) == ([f"cml-eu-{row.slot.number:02}"] if row.slot else [])
    assert sorted(verdict["outcome"] for verdict in verdicts.values()) == [
        "placed", "placed", "waiting", "waiting",
    ]  # fmt: skip


def test_taking_a_snapshot_changes_nothing(fleet):
    fleet.slot()
    reservation = fleet.reservation(2)
    assert snapshot_text(fleet.pool.name)
    reservation.refresh_from_db()
    assert reservation.slot is None
    assert not Decision.objects.exists()
