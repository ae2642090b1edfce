"""The controller's posts to LCM about sessions: kept on disk, sent in order.

A post that cannot be written to disk is sent from memory. It is lost if the process ends first.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lcm.controller.backoff import Backoff
from lcm.controller.lcm_client import LcmClient, LcmRefused, LcmUnavailable, TokenRejected
from lcm.controller.spool import Post, Spool, SpoolFull

logger = logging.getLogger(__name__)

# Under it the keys of posts are made: the same post has the same key after a restart.
KEYS = uuid.UUID("6f0f3a0e-8f56-4d7c-9a63-2b1f4a1d5c11")
SENDERS = 8
SEND_TIMEOUT = 10.0
MAX_IN_MEMORY = 500


@dataclass(frozen=True)
class PostResult:
    """What became of a post: LCM took it, refused it, or has not answered yet and it is kept."""

    answer: Any = None
    refused: LcmRefused | None = None

    @property
    def kept(self) -> bool:
        return self.answer is None and self.refused is None


@dataclass
class _SessionQueue:
    """The posts of one session, in order: a later one waits for those before it."""

    # The number is that of the file; None: in memory only.
    posts: deque[tuple[int | None, Post, asyncio.Future[PostResult] | None]] = field(default_factory=deque)
    backoff: Backoff = field(default_factory=Backoff)


class Outbox:
    """`on_news` hears of sessions of which LCM thinks otherwise, or answered when nobody waited any more."""

    def __init__(self, spool: Spool, client: LcmClient, on_news: Callable[[str], None]) -> None:
        self.spool = spool
        self._client = client
        self._on_news = on_news
        self._lines: dict[str, _SessionQueue] = {}
        self._due: asyncio.Queue[str] = asyncio.Queue()
        for number, post in spool.load():
            self._append(number, post, None)

    def waiting(self, session_id: str) -> list[Post]:
        """What LCM has not been told of a session yet."""
        line = self._lines.get(session_id)
        return [post for _, post, _ in line.posts] if line else []

    def depth(self) -> int:
        """How many posts LCM has not taken yet."""
        return sum(len(line.posts) for line in self._lines.values())

    async def send(
        self, session_id: str, attempt: int, path: str, body: dict[str, Any], name: str
    ) -> PostResult:
        """Keep a post and send it; comes back when LCM answered, or after a while when it does not.

        Raises SpoolFull if there is no room for it on disk or in memory.
        `name` says which post of the attempt this is: a repeat under the same name is the same post.
        """
        key = str(uuid.uuid5(KEYS, f"{session_id} {attempt} {name}"))
        done: asyncio.Future[PostResult] = asyncio.get_running_loop().create_future()
        post = Post(session_id, attempt, path, body, key)
        self._append(await self._write(post), post, done)
        try:
            return await asyncio.wait_for(asyncio.shield(done), SEND_TIMEOUT)
        except TimeoutError:
            return PostResult()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(SENDERS):
                group.create_task(self._sender())

    async def _write(self, post: Post) -> int | None:
        """Write a post to disk; None when it can only be kept in memory."""
        try:
            number, data = self.spool.reserve(post)
        except SpoolFull as error:
            self._check_memory(post, error)
            return None
        try:
            await asyncio.to_thread(self.spool.write, number, data)
        except OSError as error:
            self.spool.remove(number)
            self._check_memory(post, error)
            return None
        return number

    def _check_memory(self, post: Post, why: Exception) -> None:
        """Raise SpoolFull unless memory has room for a post that cannot be written."""
        kept = sum(number is None for line in self._lines.values() for number, _, _ in line.posts)
        if kept >= MAX_IN_MEMORY:
            raise SpoolFull(f"there is no room for the post, neither on disk nor in memory: {why}") from why
        logger.warning("%s is kept in memory only: %s", post.path, why)

    def _append(self, number: int | None, post: Post, done: asyncio.Future[PostResult] | None) -> None:
        line = self._lines.setdefault(post.session_id, _SessionQueue())
        line.posts.append((number, post, done))
        if len(line.posts) == 1:
            self._due.put_nowait(post.session_id)

    async def _sender(self) -> None:
        while True:
            session_id = await self._due.get()
            pause = await self._send_first(session_id)
            if pause is None:
                continue
            if pause:
                asyncio.get_running_loop().call_later(pause, self._due.put_nowait, session_id)
            else:
                self._due.put_nowait(session_id)

    async def _send_first(self, session_id: str) -> float | None:
        """Send the first post of a line; in how many seconds the line is due again, None when it is empty."""
        line = self._lines[session_id]
        number, post, done = line.posts[0]
        try:
            outcome = PostResult(answer=await self._client.post(post.path, post.body, post.key) or {})
        except LcmUnavailable as error:
            level = logging.WARNING if isinstance(error, TokenRejected) else logging.INFO
            logger.log(level, "LCM does not take %s, it is kept: %s", post.path, error)
            _settle(done, PostResult())
            return error.retry_after or line.backoff.next()
        except LcmRefused as error:
            outcome = PostResult(refused=error)
        line.backoff.reset()
        late = done is None or done.done()
        self._remove_first(session_id, line, number, done, outcome)
        if outcome.refused:
            logger.info("LCM refuses %s: %s", post.path, outcome.refused)
        if outcome.refused or late:
            self._on_news(session_id)
        return 0 if line.posts else None

    def _remove_first(
        self,
        session_id: str,
        line: _SessionQueue,
        number: int | None,
        done: asyncio.Future[PostResult] | None,
        outcome: PostResult,
    ) -> None:
        line.posts.popleft()
        if number is not None:
            self.spool.remove(number)
        if not line.posts:
            del self._lines[session_id]
        _settle(done, outcome)


def _settle(done: asyncio.Future[PostResult] | None, outcome: PostResult) -> None:
    if done is not None and not done.done():
        done.set_result(outcome)
