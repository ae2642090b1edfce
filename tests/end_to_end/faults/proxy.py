"""A TCP proxy on loopback that can cut, stall and slow down connections."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

Mode = Literal["open", "refuse", "stall", "slow", "lose responses"]
BROKEN: tuple[Mode, ...] = ("refuse", "stall", "slow", "lose responses")
CHUNK = 65_536


class Proxy:
    """Forwards connections to one of the targets; `set_mode` breaks them.

    refuse: resets open and new connections. stall: forwards nothing, as a cut cable. slow: delays each piece.
    lose responses: forwards requests and resets the connection instead of the response.
    """

    def __init__(self, targets: Callable[[], list[int]], rng: random.Random) -> None:
        self._targets, self._rng = targets, rng
        self.mode: Mode = "open"
        self._unstalled = asyncio.Event()
        self._unstalled.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def set_mode(self, mode: Mode) -> None:
        self.mode = mode
        if mode == "stall":
            self._unstalled.clear()
        else:
            self._unstalled.set()
        if mode == "refuse":
            for writer in list(self._writers):
                writer.transport.abort()

    async def close(self) -> None:
        self.set_mode("refuse")
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.mode == "refuse":
            writer.transport.abort()
            return
        upstream = await self._connect()
        if upstream is None:
            writer.transport.abort()
            return
        up_reader, up_writer = upstream
        pair = {writer, up_writer}
        self._writers |= pair
        try:
            await asyncio.gather(
                self._pump(reader, up_writer, is_response=False),
                self._pump(up_reader, writer, is_response=True),
            )
        except asyncio.CancelledError:
            # The run has ended; asyncio would print a traceback for each connection.
            return
        finally:
            self._writers -= pair
            for each in pair:
                each.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Try the targets in random order, as a load balancer does."""
        ports = self._targets()
        self._rng.shuffle(ports)
        for port in ports:
            with suppress(OSError, TimeoutError):
                return await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), 2)
        return None

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_response: bool
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                if is_response and self.mode == "lose responses":
                    break
                if self.mode == "slow":
                    await asyncio.sleep(self._rng.uniform(0.2, 1.0))
                await self._unstalled.wait()
                writer.write(data)
                await writer.drain()
        if is_response:
            writer.transport.abort()
        else:
            with suppress(OSError, RuntimeError):
                writer.write_eof()
