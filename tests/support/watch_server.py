"""Requests to the watch process, without a server."""

from __future__ import annotations

import asyncio

import httpx

from lcm.api.watch.server import WatchServer

WATCH = "/api/internal/watch"


def request_watch(
    path: str = WATCH,
    *,
    key: str = "",
    method: str = "GET",
    base: str = "http://testserver",
    headers: dict[str, str] | None = None,
    client: tuple[str, int] = ("127.0.0.1", 123),
) -> httpx.Response:
    """Return the response of a new watch process."""

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(WatchServer(), client=client)
        sent = {"Authorization": f"Bearer {key}"} if key else {}
        async with httpx.AsyncClient(transport=transport, base_url=base) as http:
            return await http.request(method, path, headers={**sent, **(headers or {})}, timeout=60)

    return asyncio.run(send())
