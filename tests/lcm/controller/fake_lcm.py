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


class Lcm:
    """In-memory fake of LCM's internal API."""

    def __init__(self):
        self.sessions, self.feed, self.calls = {}, [], Counter()
        self.trouble = {}
        self.is_away = False
        self.tells_time, self.now = True, lambda: datetime.now(UTC)
        self.posts = []
        self.leases = [{"pool": "cml-eu", "held": True, "holder": "me"}]
        self.page = 200

    def put(self, row):
        self.sessions[row["id"]] = row
        self.publish(row["id"])

    def publish(self, key):
        self.feed.append({"revision": len(self.feed) + 1, "kind": "session", "id": key, "pool": "cml-eu"})

    async def __call__(self, request):
        response = await self.answer(request)
        if self.tells_time:
            response.headers["X-LCM-Time"] = self.now().isoformat()
        return response

    async def answer(self, request):
        name = request.url.path.removeprefix("/api/internal/")
        self.calls[name] += 1
        status = self.trouble.get(name)
        if callable(status):
            status = status()
        if status == "down" or self.is_away:
            raise httpx.ConnectError("connection refused")
        if status:
            return httpx.Response(status, json={"code": "x", "message": "y", "details": {}})
        if request.method == "POST" and name.endswith("/heartbeat"):
            self.posts.append(("heartbeat", json.loads(request.content)))
            return httpx.Response(200, json={})
        if request.method == "POST" and name.startswith("lablet-sessions/"):
            return self.take(name, json.loads(request.content))
        answer = getattr(self, name.replace("/", "_").replace("-", "_"))
        return httpx.Response(200, json=await answer(request))

    def take(self, name, body):
        """Accept a transition, a failure or an observation of a session."""
        _, key, what = name.split("/")
        self.posts.append((what, body))
        if refusal := self.trouble.get(what):
            status, code = refusal
            return httpx.Response(status, json={"code": code, "message": "y", "details": {}})
        row = self.sessions[key]
        if what == "transitions" and body.get("ends_at", row["ends_at"]) != row["ends_at"]:
            return httpx.Response(409, json={"code": "state_conflict", "message": "extended", "details": {}})
        if what == "transitions":
            row["status"] = body["to_status"]
        if what == "failures":
            row["status"], row["slot"] = "FAILED", None
        return httpx.Response(200, json=row if what != "resource-observations" else {"observation_count": 1})

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
        more = f"http://x/?cursor={start + self.page}" if start + self.page < len(rows) else None
        return {"results": rows[start : start + self.page], "next": more}

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
