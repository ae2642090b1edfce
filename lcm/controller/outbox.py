"""Outbox for posts about sessions: stored on disk, sent to LCM in order.

A post that cannot be written to disk is sent from memory and is lost if the process ends first.
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
from lcm.controller.lcm_client import LcmClient, LcmRejected, LcmUnavailable, TokenRejected
from lcm.controller.spool import Post, Spool, SpoolFull

logger = logging.getLogger(__name__)

# Namespace of idempotency keys. A post has the same key after a restart.
KEYS = uuid.UUID("6f0f3a0e-8f56-4d7c-9a63-2b1f4a1d5c11")
SENDERS = 8
SEND_TIMEOUT = 10.0
MAX_IN_MEMORY = 500


@dataclass(frozen=True)
class PostResult:
    """Result of a post: accepted, rejected, or kept in the outbox because LCM has not responded."""

    response: Any = None
    rejection: LcmRejected | None = None

    @property
    def kept(self) -> bool:
        return self.response is None and self.rejection is None


@dataclass
class _SessionQueue:
    """Posts of one session in order. Each waits for the previous one."""

    # The number names the file on disk; None if the post is in memory only.
    posts: deque[tuple[int | None, Post, asyncio.Future[PostResult] | None]] = field(default_factory=deque)
    backoff: Backoff = field(default_factory=Backoff)


class Outbox:
    """`reload_session` is called if LCM rejects a post or responds after the caller's timeout."""

    def __init__(self, spool: Spool, client: LcmClient, reload_session: Callable[[str], None]) -> None:
        self.spool = spool
        self._client = client
        self._reload_session = reload_session
        self._queues: dict[str, _SessionQueue] = {}
        self._due: asyncio.Queue[str] = asyncio.Queue()
        for number, post in spool.load():
            self._append(number, post, None)

    def pending_posts(self, session_id: str) -> list[Post]:
        """Return the posts of a session that LCM has not accepted yet."""
        queue = self._queues.get(session_id)
        return [post for _, post, _ in queue.posts] if queue else []

    def depth(self) -> int:
        """Return how many posts LCM has not accepted yet."""
        return sum(len(queue.posts) for queue in self._queues.values())

    async def send(
        self, session_id: str, attempt: int, path: str, body: dict[str, object], name: str
    ) -> PostResult:
        """Store and send a post. Return LCM's response, or an empty result after SEND_TIMEOUT.

        Raises SpoolFull if neither disk nor memory has room.
        `name` identifies the post within the attempt: a repeat with the same name is the same post.
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
        """Write a post to disk; None if it can only be kept in memory."""
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

    def _check_memory(self, post: Post, cause: Exception) -> None:
        """Raise SpoolFull unless memory has room for a post that could not be written."""
        kept = sum(number is None for queue in self._queues.values() for number, _, _ in queue.posts)
        if kept >= MAX_IN_MEMORY:
            raise SpoolFull(f"no room for the post on disk or in memory: {cause}") from cause
        logger.warning("%s is kept in memory only: %s", post.path, cause)

    def _append(self, number: int | None, post: Post, done: asyncio.Future[PostResult] | None) -> None:
        queue = self._queues.setdefault(post.session_id, _SessionQueue())
        queue.posts.append((number, post, done))
        if len(queue.posts) == 1:
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
        """Send the first post of a session. Return the delay to the next, or None if the queue is empty."""
        queue = self._queues[session_id]
        number, post, done = queue.posts[0]
        try:
            result = PostResult(response=await self._client.post(post.path, post.body, post.key) or {})
        except LcmUnavailable as error:
            level = logging.WARNING if isinstance(error, TokenRejected) else logging.INFO
            logger.log(level, "LCM did not accept %s, it stays in the outbox: %s", post.path, error)
            _settle(done, PostResult())
            return error.retry_after or queue.backoff.next()
        except LcmRejected as error:
            result = PostResult(rejection=error)
        queue.backoff.reset()
        late = done is None or done.done()
        queue.posts.popleft()
        if number is not None:
            self.spool.remove(number)
        if not queue.posts:
            del self._queues[session_id]
        _settle(done, result)
        if result.rejection:
            logger.info("LCM rejected %s: %s", post.path, result.rejection)
        if result.rejection or late:
            self._reload_session(session_id)
        return 0 if queue.posts else None


def _settle(done: asyncio.Future[PostResult] | None, result: PostResult) -> None:
    if done is not None and not done.done():
        done.set_result(result)
