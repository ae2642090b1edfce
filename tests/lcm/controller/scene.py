"""A session on a real simulator, with an in-memory LCM."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import httpx

from lcm.controller.config import Config, Credentials
from lcm.controller.inventory import Inventory
from lcm.controller.lcm_client import LcmClient
from lcm.controller.metrics import Metrics
from lcm.controller.model import Session, SlotInfo
from lcm.controller.outbox import Outbox
from lcm.controller.pool_leases import PoolLeases
from lcm.controller.reconciler import Reconciler
from lcm.controller.spool import Spool
from lcm.controller.stage_context import StageContext
from lcm.controller.watcher import Watcher
from tests.lcm.controller.fake_lcm import FakeLcm, session
from tests.support.factories import LAB

PORTS = {"r1_serial": 2001, "host_pat": 2002}
TEMPLATE = [
    {"name": "r1_serial", "node_label": "r1", "protocol": "serial", "inside": None, "transport": "tcp"},
    {"name": "host_pat", "node_label": "host", "protocol": "pat", "inside": 22, "transport": "tcp"},
]


class Scene:
    """One session on one worker, reconciled step by step."""

    def __init__(self, folder, simulator, worker, machine=None, **settings):
        """With `machine`, its clocks replace the time that a test sets."""
        self.simulator, self.worker, self.lcm = simulator, worker, FakeLcm()
        values = {"data_dir": str(folder), "name": "me", **settings}
        self.config = Config(token="lcm_x", workers=Credentials(password="simulated"), **values)
        clock = machine.clock if machine else None
        if machine:
            self.lcm.now = machine.lcm_now
        self.client = LcmClient(self.config, transport=httpx.MockTransport(self.lcm), clock=clock)
        self.inventory = Inventory(self.config, lambda _: None)
        spool = Spool(folder / "spool", max_entries=100, max_bytes=10**8)
        self.outbox = Outbox(spool, self.client, lambda _: None)
        watcher = Watcher(self.config, self.client, self.inventory)
        self.now = machine.lcm_now() if machine else datetime.now(UTC)
        self.clock = clock or SimpleNamespace(now=lambda: self.now, is_known=True, is_steady=True)
        self.context = StageContext(
            self.config, self.inventory, self.outbox, Metrics(), self.clock, watcher.refresh
        )
        self.leases = PoolLeases(self.client, "me")
        self.reconciler = Reconciler(self.context, self.leases)
        address = simulator.admin.address_of(worker)
        self.inventory.replace_slots([SlotInfo("slot-1", "eu-01", "cml-eu", address)])

    def put(self, status, *, ends_in=600.0, starts_in=-60.0, since=0.0, is_inherited=False, **fields):
        row = session(
            status,
            starts_at=(self.now + timedelta(seconds=starts_in)).isoformat(),
            ends_at=(self.now + timedelta(seconds=ends_in)).isoformat(),
            status_since=(self.now - timedelta(seconds=since)).isoformat(),
            topology=LAB,
            port_template=TEMPLATE,
            allocated_ports=PORTS,
            definition_name="campus",
            **fields,
        )
        self.lcm.put(row)
        self.key = row["id"]
        self.inventory.put(Session.read(row))
        if not is_inherited:
            self.context.state_of(Session.read(row)).settled_at = self.now
        return self.key

    async def reconcile(self, times=1):
        for _ in range(times):
            again = await self.reconciler.reconcile(self.key)
        return again

    async def until(self, status, times=60):
        for _ in range(times):
            await self.reconcile()
            if self.lcm.sessions[self.key]["status"] == status:
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"{self.lcm.sessions[self.key]['status']}, {self.lcm.posts}")

    def labs(self):
        return self.simulator.admin.controllers()[self.worker]["labs"]

    def steps(self):
        return [body["to_status"] for kind, body in self.lcm.posts if kind == "transitions"]

    def posted(self, kind):
        return [body for posted_kind, body in self.lcm.posts if posted_kind == kind]

    async def import_lab(self, title):
        worker = self.inventory.worker("slot-1")
        return await worker.cml.import_lab(LAB, title=title)
