"""A CML simulator, and a controller that tests drive step by step."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lcm.controller.scene import Scene
from tests.support.simulator import SimulatorProcess

INSTANT = {"boot_seconds": 0, "queue_seconds": 0, "starting_seconds": 0, "stop_seconds": 0}


@pytest.fixture(scope="module")
def simulator() -> Iterator[SimulatorProcess]:
    with SimulatorProcess() as running:
        yield running


@pytest.fixture
def worker(simulator: SimulatorProcess, request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"w-{abs(hash(request.node.name)) % 10**8}"
    simulator.admin.add(name, **INSTANT)
    yield name
    simulator.admin.remove(name)


@pytest.fixture
def play(
    tmp_path: Path, simulator: SimulatorProcess, worker: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    """`play(scenario)` runs a coroutine with a Scene whose outbox runs and whose lease is held."""
    monkeypatch.setattr("lcm.controller.outbox.SEND_TIMEOUT", 0.3)

    def run(scenario: Callable[[Scene], Awaitable[None]], **settings: Any) -> None:
        async def wrapped() -> None:
            scene = Scene(tmp_path, simulator, worker, **settings)
            await scene.leases.renew()
            sending_posts = asyncio.create_task(scene.outbox.run())
            try:
                await asyncio.wait_for(scenario(scene), 60)
            finally:
                sending_posts.cancel()
                await asyncio.gather(sending_posts, return_exceptions=True)
                await scene.client.aclose()
                await scene.inventory.aclose()

        asyncio.run(wrapped())

    return run
