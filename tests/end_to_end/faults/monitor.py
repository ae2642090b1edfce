"""Reads facts from the database and the simulator during a run."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import httpx
import psycopg

from lcm.cml.simulator.admin_client import SimulatorAdmin
from lcm.domain.resources import RESOURCE_NAMES
from tests.end_to_end.faults import invariants
from tests.end_to_end.faults.bootstrap import POOL
from tests.end_to_end.faults.invariants import LabRecord, LeaseChange, Run, Step
from tests.end_to_end.faults.servers import Database

# A run without changes overwrites the row of the previous run, so triggers log all runs.
LOG = """
CREATE TABLE fault_run (name text, started_at timestamptz, recorded_at timestamptz, error text);
CREATE TABLE fault_lease (
  name text, at timestamptz, old_holder text, new_holder text, old_expires_at timestamptz);
CREATE FUNCTION log_observer_run() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO fault_run VALUES (NEW.observer, NEW.started_at, clock_timestamp(), NEW.error);
  RETURN NULL; END $$;
CREATE FUNCTION log_tick() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO fault_run VALUES ('tick', NEW.started_at, clock_timestamp(), NEW.errors::text);
  RETURN NULL; END $$;
CREATE FUNCTION log_lease() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO fault_lease VALUES (NEW.name, clock_timestamp(), '', NEW.holder, NULL);
  ELSIF NEW.holder <> OLD.holder THEN
    INSERT INTO fault_lease VALUES (NEW.name, clock_timestamp(), OLD.holder, NEW.holder, OLD.expires_at);
  END IF; RETURN NULL; END $$;
CREATE TRIGGER fault_observer AFTER INSERT OR UPDATE ON scheduling_observerrun
  FOR EACH ROW EXECUTE FUNCTION log_observer_run();
CREATE TRIGGER fault_tick AFTER INSERT OR UPDATE ON scheduling_tickrun
  FOR EACH ROW EXECUTE FUNCTION log_tick();
CREATE TRIGGER fault_lease AFTER INSERT OR UPDATE ON scheduling_lease
  FOR EACH ROW EXECUTE FUNCTION log_lease();
"""
LEASE_COUNTS = """
SELECT slot.id::text, slot.lease_count, count(reservation.id)
FROM scheduling_slot slot
LEFT JOIN scheduling_reservation reservation ON reservation.slot_id = slot.id AND reservation.phase = 'READY'
GROUP BY slot.id, slot.lease_count
"""
ENDED_PORTS = """
SELECT port.port, session.id::text, session.status
FROM scheduling_portallocation port JOIN lcm_labletsession session ON session.id = port.session_id
WHERE session.status = ANY(%s)
"""
# Usage of allocations, computed from their start and end.
HELD = ", ".join(f"coalesce(sum({name} * (ended_ms - started_ms)), 0)" for name in RESOURCE_NAMES)
SUMS = ", ".join(f"coalesce(sum({name}), 0)" for name in RESOURCE_NAMES)
_SESSION = re.compile(r"^lcm:([0-9a-f-]{36}):")


@dataclass
class Tally:
    """How often an invariant was checked, and its violations."""

    checks: int = 0
    violations: list[str] = field(default_factory=list)

    def add(self, checks: int, violations: list[str]) -> None:
        self.checks += checks
        self.violations += [each for each in violations if each not in self.violations]


class Monitor:
    """Checks invariants during the run. Each violation counts once."""

    def __init__(self, database: Database, simulator: SimulatorAdmin) -> None:
        self._database, self._simulator = database, simulator
        self._workers = Workers(simulator.url)
        self.tallies: dict[str, Tally] = defaultdict(Tally)

    def install(self) -> None:
        with self._database.connect() as connection:
            connection.execute(LOG)

    def read(self, query: str, values: Any = None) -> list[tuple[Any, ...]]:
        with self._database.connect() as connection:
            return connection.execute(query, values).fetchall()

    def check(self, acknowledged: set[str]) -> None:
        """Run one round of checks; none while the database is down."""
        try:
            self._check_leases()
            self._check_labs()
            stored = {key for (key,) in self.read("SELECT id::text FROM lcm_labletsession")}
        except (psycopg.OperationalError, httpx.HTTPError):
            return
        lost = [f"{key} is gone" for key in acknowledged if key not in stored]
        self.tallies["acknowledged requests exist"].add(len(acknowledged), lost)

    def _check_leases(self) -> None:
        rows = [(slot, count, held) for slot, count, held in self.read(LEASE_COUNTS)]
        self.tallies["each slot counts its leases right"].add(len(rows), invariants.wrong_lease_counts(rows))

    def _check_labs(self) -> None:
        """Check that a session that is RUNNING before and after the workers are read has a lab."""
        before = self._running()
        labs = self.labs()
        running = before & self._running()
        missing = invariants.running_without_lab(running, labs)
        self.tallies["each running session has its lab"].add(len(running), missing)
        self.tallies["no port is allocated twice"].add(len(labs), invariants.duplicate_ports(labs))

    def _running(self) -> set[str]:
        rows = self.read(
            "SELECT id::text FROM lcm_labletsession WHERE status = 'RUNNING' AND pool = %s", [POOL]
        )
        return {key for (key,) in rows}

    def labs(self) -> list[LabRecord]:
        found = []
        for worker, state in self._simulator.controllers().items():
            for lab_id, lab in state["labs"].items():
                if mark := _SESSION.match(lab["title"]):
                    # Tags are complete once the lab has started.
                    started = lab["state"] == "STARTED"
                    found.append(
                        LabRecord(worker, mark[1], self._workers.ports_of(worker, lab_id) if started else ())
                    )
        return found

    def statuses(self) -> dict[str, str]:
        return dict(self.read("SELECT id::text, status FROM lcm_labletsession WHERE pool = %s", [POOL]))

    def created(self) -> dict[str, float]:
        rows = self.read("SELECT id::text, created_at FROM lcm_labletsession WHERE pool = %s", [POOL])
        return {key: at.timestamp() for key, at in rows}

    def steps(self) -> dict[str, list[Step]]:
        query = "SELECT session_id::text, to_status, at, reason FROM lcm_sessiontransition ORDER BY at, id"
        found: dict[str, list[Step]] = defaultdict(list)
        for key, to, at, reason in self.read(query):
            found[key].append(Step(to, at.timestamp(), reason))
        return found

    def runs(self) -> list[Run]:
        rows = self.read("SELECT name, started_at, recorded_at, error FROM fault_run")
        return [Run(name, start.timestamp(), end.timestamp(), error) for name, start, end, error in rows]

    def lease_changes(self) -> list[LeaseChange]:
        query = (
            "SELECT name, at, old_holder, new_holder, old_expires_at FROM fault_lease"
            " WHERE old_expires_at IS NOT NULL"
        )
        return [
            LeaseChange(name, at.timestamp(), old, new, expires.timestamp())
            for name, at, old, new, expires in self.read(query)
        ]

    def leases_taken(self) -> int:
        return int(self.read("SELECT count(*) FROM fault_lease")[0][0])

    def ended_ports(self) -> list[str]:
        rows = self.read(ENDED_PORTS, [sorted(invariants.FINAL)])
        return [f"port {port} is still allocated to {key}, which is {status}" for port, key, status in rows]

    def usage_is_complete(self) -> bool:
        """Return whether all sessions have ended and their usage is recorded and summed."""
        query = (
            "SELECT (SELECT count(*) FROM fairshare_allocation WHERE NOT settled)"
            " + (SELECT count(*) FROM fairshare_usagebatch WHERE aggregated_at IS NULL)"
        )
        return bool(self.read(query)[0][0] == 0)

    def usage(self) -> dict[str, tuple[int, ...]]:
        """Return the sums of each resource: allocations, records and the buckets of each level."""
        totals = {
            "records": f"SELECT {SUMS} FROM fairshare_usagerecord",
            "allocations": f"SELECT {HELD} FROM fairshare_allocation",
            **{
                f"{level} buckets": f"SELECT {SUMS} FROM fairshare_usagebucket WHERE level = '{level}'"
                for level in ("user", "project", "domain")
            },
        }
        return {name: tuple(map(int, self.read(query)[0])) for name, query in totals.items()}


class Workers:
    """Reads the ports of labs from node tags on the simulated workers, once per lab."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=10, trust_env=False)
        self._keys: dict[str, str] = {}
        self._ports: dict[str, tuple[int, ...]] = {}

    def ports_of(self, worker: str, lab_id: str) -> tuple[int, ...]:
        if lab_id not in self._ports:
            response = self._get(worker, f"labs/{lab_id}/nodes?data=true")
            if response.status_code == httpx.codes.UNAUTHORIZED:
                del self._keys[worker]
                response = self._get(worker, f"labs/{lab_id}/nodes?data=true")
            if response.status_code != httpx.codes.OK:
                return ()
            self._ports[lab_id] = tuple(ports_in([tag for node in response.json() for tag in node["tags"]]))
        return self._ports[lab_id]

    def _get(self, worker: str, path: str) -> httpx.Response:
        if worker not in self._keys:
            login = {"username": "admin", "password": "simulated"}
            self._keys[worker] = self._http.post(f"/{worker}/api/v0/authenticate", json=login).json()
        return self._http.get(
            f"/{worker}/api/v0/{path}", headers={"Authorization": f"Bearer {self._keys[worker]}"}
        )


def ports_in(tags: list[str]) -> list[int]:
    """Return the outside ports in node tags such as `serial:5041` and `pat:2022:22`."""
    return [
        int(found[1])
        for tag in tags
        if (found := re.match(r"^(?:serial|vnc|pat):(?:(?:tcp|udp):)?(\d+)", tag))
    ]
