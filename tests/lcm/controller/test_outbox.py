"""Posts survive an LCM outage and a killed controller: in order, once each, and bounded."""

import asyncio
import json
import subprocess
import sys

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm.controller.config import Config
from lcm.controller.lcm_client import LcmClient
from lcm.controller.outbox import Outbox
from lcm.controller.spool import Post, Spool, SpoolFull
from tests.support.control_plane import ROOT


def open_spool(folder, entries=100, size=10**6):
    return Spool(folder, max_entries=entries, max_bytes=size)


def post(number=1, session="s1"):
    return Post(session, 1, f"lablet-sessions/{session}/x", {"n": number}, f"key-{session}-{number}")


def store(spool, post):
    number, data = spool.reserve(post)
    spool.write(number, data)
    return number


def test_posts_survive_a_crash_in_order(tmp_path):
    first = open_spool(tmp_path)
    numbers = [store(first, post(n)) for n in range(12)]
    assert numbers == sorted(numbers)
    second = open_spool(tmp_path)
    assert [each.body["n"] for _, each in second.load()] == list(range(12))
    second.remove(numbers[0])
    third = open_spool(tmp_path)
    assert store(third, post(99)) > numbers[-1]
    assert [each.body["n"] for _, each in third.load()] == [*range(1, 12), 99]


def test_partial_and_broken_files_are_ignored(tmp_path):
    store(open_spool(tmp_path), post(1))
    (tmp_path / "000000000002.json.new").write_text("{")
    (tmp_path / "000000000007.new").write_text("{")
    (tmp_path / "000000000003.json").write_text('{"session_id": "s1"')
    (tmp_path / "000000000004.json").write_text('{"who": 1}')
    fresh = open_spool(tmp_path)
    assert [each.body["n"] for _, each in fresh.load()] == [1]
    assert len(fresh) == 1
    assert len(list(tmp_path.glob("*.bad"))) == 2


def test_the_spool_is_bounded_in_number_and_size(tmp_path):
    few = open_spool(tmp_path / "few", entries=2)
    store(few, post(1))
    last = store(few, post(2))
    with pytest.raises(SpoolFull):
        store(few, post(3))
    few.remove(last)
    store(few, post(4))
    small = open_spool(tmp_path / "small", size=300)
    store(small, post(1))
    with pytest.raises(SpoolFull):
        store(small, Post("s", 1, "p", {"text": "x" * 300}, "k"))


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(st.one_of(st.none(), st.integers(0, 5)), max_size=30))
def test_remaining_posts_are_always_in_order(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("spool")
    spool, left = open_spool(folder), []
    for step in steps:
        if step is None:
            left.append((store(spool, post(len(left))), len(left)))
        elif step < len(left):
            number, _ = left.pop(step)
            spool.remove(number)
    again = open_spool(folder)
    assert [number for number, _ in again.load()] == [number for number, _ in left]
    assert len(again) == len(left)


class PostReceiver:
    """Responds to posts as configured, and records them."""

    def __init__(self):
        self.received, self.statuses = [], []

    def __call__(self, request):
        self.received.append(
            (request.url.path, json.loads(request.content), request.headers["Idempotency-Key"])
        )
        status = self.statuses.pop(0) if self.statuses else 200
        if status == "down":
            raise httpx.ConnectError("connection refused")
        body = {"code": "state_conflict", "message": "no", "details": {}} if status >= 400 else {"ok": True}
        return httpx.Response(status, json=body)


@pytest.fixture
def lcm(monkeypatch):
    monkeypatch.setattr("lcm.controller.outbox.SEND_TIMEOUT", 0.3)
    monkeypatch.setattr("lcm.controller.backoff.random.random", lambda: 0.0)
    return PostReceiver()


def with_outbox(folder, lcm, scenario, notices=None, **token):
    async def wrapped():
        client = LcmClient(Config(**token or {"token": "lcm_x"}), transport=httpx.MockTransport(lcm))
        outbox = Outbox(open_spool(folder), client, (notices if notices is not None else []).append)
        running = asyncio.create_task(outbox.run())
        try:
            return await asyncio.wait_for(scenario(outbox), 15)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await client.aclose()

    return asyncio.run(wrapped())


def test_an_accepted_post_is_returned_and_removed(tmp_path, lcm):
    async def scenario(outbox):
        outcome = await outbox.send("s1", 1, "lablet-sessions/s1/transitions", {"to": "READY"}, "step")
        assert outcome.response == {"ok": True}
        assert (len(outbox.spool), outbox.pending_posts("s1")) == (0, [])

    with_outbox(tmp_path, lcm, scenario)
    assert lcm.received[0][:2] == ("/api/internal/lablet-sessions/s1/transitions", {"to": "READY"})


def test_the_same_post_has_the_same_key_after_a_restart(tmp_path, lcm):
    async def scenario(outbox):
        await outbox.send("s1", 1, "x", {}, "step")
        await outbox.send("s1", 2, "x", {}, "step")

    with_outbox(tmp_path, lcm, scenario)
    with_outbox(tmp_path, lcm, scenario)
    keys = [key for *_, key in lcm.received]
    assert keys[:2] == keys[2:]
    assert keys[0] != keys[1]


@pytest.mark.parametrize("failure", ["down", 500, 502, 503, 429, 401, 403])
def test_a_post_that_lcm_cannot_accept_is_kept_and_sent_later(tmp_path, lcm, failure):
    lcm.statuses = [failure]
    notices = []

    async def scenario(outbox):
        outcome = await outbox.send("s1", 1, "x", {"n": 1}, "one")
        assert outcome.kept
        assert len(outbox.pending_posts("s1")) == 1
        while outbox.pending_posts("s1"):
            await asyncio.sleep(0.05)

    with_outbox(tmp_path, lcm, scenario, notices)
    assert [body["n"] for _, body, _ in lcm.received] == [1, 1]
    assert lcm.received[0][2] == lcm.received[1][2]
    assert notices == ["s1"]


@pytest.mark.parametrize(("failure", "is_warning"), [(401, True), (403, True), (503, False)])
def test_a_rejected_token_is_logged_as_a_warning(tmp_path, lcm, caplog, failure, is_warning):
    lcm.statuses = [failure]

    async def scenario(outbox):
        assert (await outbox.send("s1", 1, "x", {}, "one")).kept

    with_outbox(tmp_path, lcm, scenario)
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert ["token was rejected" in text for text in warnings] == [True] * is_warning


def test_an_empty_token_file_is_a_temporary_failure(tmp_path, lcm):
    file = tmp_path / "token"
    file.write_text("")

    async def scenario(outbox):
        assert (await outbox.send("s1", 1, "x", {}, "one")).kept
        file.write_text("lcm_new")
        while outbox.pending_posts("s1"):
            await asyncio.sleep(0.05)

    with_outbox(tmp_path / "spool", lcm, scenario, token_file=str(file))
    assert len(lcm.received) == 1


def test_unsent_posts_are_sent_by_the_next_run_in_order(tmp_path, lcm):
    lcm.statuses = ["down"] * 20

    async def leave(outbox):
        for n in range(3):
            assert (await outbox.send("s1", 1, "x", {"n": n}, str(n))).kept

    with_outbox(tmp_path, lcm, leave)
    lcm.statuses, lcm.received = [], []

    async def resume(outbox):
        while outbox.pending_posts("s1"):
            await asyncio.sleep(0.02)

    with_outbox(tmp_path, lcm, resume)
    assert [body["n"] for _, body, _ in lcm.received] == [0, 1, 2]


def test_a_rejected_post_is_returned_and_does_not_block_later_posts(tmp_path, lcm):
    lcm.statuses = [409]
    notices = []

    async def scenario(outbox):
        rejected = await outbox.send("s1", 1, "x", {"n": 1}, "one")
        assert (rejected.rejection.status, rejected.rejection.code) == (409, "state_conflict")
        assert (await outbox.send("s1", 1, "x", {"n": 2}, "two")).response

    with_outbox(tmp_path, lcm, scenario, notices)
    assert notices == ["s1"]


FULL_DISK = """
import asyncio, json, resource, sys
from pathlib import Path
from lcm.controller import outbox as module
from tests.lcm.controller import test_outbox as t

async def scenario(outbox):
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
    accepted = await outbox.send("s1", 1, "x", {"n": 1}, "one")
    lcm.statuses = ["down"] * 3
    kept = [(await outbox.send("s1", 1, "x", {"n": n}, str(n))).kept for n in (2, 3)]
    depth = outbox.depth()
    module.MAX_IN_MEMORY = 2
    try:
        await outbox.send("s2", 1, "x", {}, "one")
        full = ""
    except t.SpoolFull as error:
        full = str(error)
    while outbox.pending_posts("s1"):
        await asyncio.sleep(0.05)
    after = await outbox.send("s2", 1, "x", {"n": 4}, "one")
    files = [path.name for path in folder.iterdir()]
    print(json.dumps([bool(accepted.response), kept, depth, full, bool(after.response), files]))

module.SEND_TIMEOUT = 0.3
folder, lcm = Path(sys.argv[1]), t.PostReceiver()
t.with_outbox(folder, lcm, scenario)
print(json.dumps([body["n"] for _, body, _ in lcm.received]))
"""


def test_a_full_disk_delays_no_post_and_leaves_no_files(tmp_path):
    """Limit file writes to 64 bytes, which simulates a full disk even for root."""
    result = subprocess.run(
        [sys.executable, "-c", FULL_DISK, tmp_path], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    result, sent = map(json.loads, result.stdout.splitlines())
    accepted, kept, depth, full, after, files = result
    assert (accepted, kept, depth, after, files) == (True, [True, True], 2, True, [])
    assert "no room for the post on disk or in memory" in full
    assert "File too large" in full
    assert list(dict.fromkeys(sent)) == [1, 2, 3, 4], "in order"


def test_a_failing_session_does_not_delay_another(tmp_path, lcm):
    lcm.statuses = ["down"]

    async def scenario(outbox):
        assert (await outbox.send("s1", 1, "x", {"n": 1}, "one")).kept
        assert (await outbox.send("s2", 1, "x", {"n": 2}, "one")).response

    with_outbox(tmp_path, lcm, scenario)
