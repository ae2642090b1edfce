"""An in-memory fake of LCM's internal API."""

import asyncio
import json
from collections import Counter
from datetime import UTC, datetime
from uuid import uuid4

import httpx

NOW = datetime(2026, 1, 1, tzinfo=UTC).isoformat()


def session(status="RUNNING", slot="slot-1", key=None, **fields):
    return {
        "id": key or str(uuid4()),
        "attempt": 1,
        "status": status,
        "status_since": NOW,
        "starts_at": NOW,
        "ends_at": NOW,
        "pool": "cml-eu",
        "slot": {"id": slot, "name": "cml-eu-01", "endpoint": "http://w"} if slot else None,
        **fields,
    }


async def until(condition):
    """Wait for a condition. The caller sets a deadline."""
    while not condition():
        await asyncio.sleep(0.01)


class FakeLcm:
    """In-memory fake of LCM's internal API."""

    def __init__(self):
        self.sessions, self.feed, self.calls = {}, [], Counter()
        self.failures = {}
        self.is_unavailable = False
        self.sends_time, self.now = True, lambda: datetime.now(UTC)
        self.posts = []
        self.leases = [{"pool": "cml-eu", "held": True, "holder": "me"}]
        self.page = 200

    def put(self, row):
        self.sessions[row["id"]] = row
        self.publish(row["id"])

    def publish(self, key):
        self.feed.append({"revision": len(self.feed) + 1, "kind": "session", "id": key, "pool": "cml-eu"})

    async def __call__(self, request):
        response = await self.respond(request)
        if self.sends_time:
            response.headers["X-LCM-Time"] = self.now().isoformat()
        return response

    async def respond(self, request):
        name = request.url.path.removeprefix("/api/internal/")
        self.calls[name] += 1
        status = self.failures.get(name)
        if callable(status):
            status = status()
        if status == "down" or self.is_unavailable:
            raise httpx.ConnectError("connection refused")
        if status:
            return httpx.Response(status, json={"code": "x", "message": "y", "details": {}})
        if request.method == "POST" and name.endswith("/heartbeat"):
            self.posts.append(("heartbeat", json.loads(request.content)))
            return httpx.Response(200, json={})
        if request.method == "POST" and name.startswith("lablet-sessions/"):
            return self.accept(name, json.loads(request.content))
        respond = getattr(self, name.replace("/", "_").replace("-", "_"))
        return httpx.Response(200, json=await respond(request))

    def accept(self, name, body):
        """Accept a transition, a failure or an observation of a session."""
        _, key, kind = name.split("/")
        self.posts.append((kind, body))
        if refusal := self.failures.get(kind):
            status, code = refusal
            return httpx.Response(status, json={"code": code, "message": "y", "details": {}})
        row = self.sessions[key]
        if kind == "transitions" and body.get("ends_at", row["ends_at"]) != row["ends_at"]:
            return httpx.Response(409, json={"code": "state_conflict", "message": "extended", "details": {}})
        if kind == "transitions":
            row["status"] = body["to_status"]
        if kind == "failures":
            row["status"], row["slot"] = "FAILED", None
        return httpx.Response(200, json=row if kind != "resource-observations" else {"observation_count": 1})

    async def watch(self, request):
        since = request.url.params.get("since")
        if since is None:
            return {"revision": len(self.feed), "changes": []}
        for _ in range(20):
            if self.feed[int(since) :]:
                break
            await asyncio.sleep(0.01)
        return {"revision": len(self.feed), "changes": self.feed[int(since) :]}

    async def lablet_sessions(self, request):
        ids = request.url.params.get("ids")
        rows = [row for row in self.sessions.values() if not ids or row["id"] in ids.split(",")]
        start = int(request.url.params.get("cursor", 0))
        next_page = f"http://x/?cursor={start + self.page}" if start + self.page < len(rows) else None
        return {"results": rows[start : start + self.page], "next": next_page}

    async def slots(self, request):
        return {
            "results": [
                {
                    "id": "slot-1",
                    "name": "cml-eu-01",
                    "pool": "cml-eu",
                    "endpoint": "http://w",
                    "state": "READY",
                },
                {
                    "id": "slot-2",
                    "name": "cml-eu-02",
                    "pool": "cml-eu",
                    "endpoint": "http://v",
                    "state": "BOOTING",
                },
            ],
            "next": None,
        }

    async def leases_hold(self, request):
        return self.leases
