"""Client of LCM's internal API."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import httpx

from lcm.controller.clock import HEADER as TIME_HEADER
from lcm.controller.clock import LcmClock
from lcm.controller.config import Config, ConfigError
from lcm.controller.model import Session, SlotInfo

PAGE = 200
IDS_AT_ONCE = 100
UNAUTHORIZED_STATUSES = (401, 403)
REDIRECT = 307
LIMITS = httpx.Limits(max_connections=32, max_keepalive_connections=16)


class LcmCallError(Exception):
    """A call to LCM failed."""


class LcmUnavailable(LcmCallError):
    """LCM did not respond or asked to retry later. A retry may succeed."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TokenRejected(LcmUnavailable):
    """The token is missing or was rejected. A rotated token may be accepted."""


class LcmRejected(LcmCallError):
    """LCM rejected the request. A retry does not help."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code


class RevisionExpired(LcmRejected):
    """The watch revision is too old. List again."""


class WatchedChange(NamedTuple):
    kind: str
    id: str


@dataclass(frozen=True)
class LeaseStatus:
    """Whether this controller holds the lease of a pool."""

    pool: str
    held: bool
    holder: str


class LcmClient:
    """Client of the internal API. Raises only LcmUnavailable and LcmRejected."""

    def __init__(
        self,
        config: Config,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: LcmClock | None = None,
    ) -> None:
        self._config = config
        self.clock = clock or LcmClock()
        # URL of LCM's watch process, after a redirect to it.
        self._watch_url: str | None = None
        verify: ssl.SSLContext | bool = True
        if config.lcm_ca_file:
            verify = ssl.create_default_context(cafile=config.lcm_ca_file)
        self._http = httpx.AsyncClient(
            base_url=f"{config.lcm_url.rstrip('/')}/api/internal/",
            timeout=httpx.Timeout(15, connect=5),
            verify=verify,
            limits=LIMITS,
            transport=transport,
            trust_env=False,
        )

    async def aclose(self) -> None:
        await self._http.aclose()

    async def sessions(self, ids: Iterable[str] | None = None) -> list[Session]:
        """Return the sessions on the controller's slots, optionally only these ids."""
        if ids is None:
            return [Session.read(row) for row in await self._pages("lablet-sessions", {})]
        session_ids, rows = list(ids), []
        for start in range(0, len(session_ids), IDS_AT_ONCE):
            part = ",".join(session_ids[start : start + IDS_AT_ONCE])
            rows += await self._pages("lablet-sessions", {"ids": part})
        return [Session.read(row) for row in rows]

    async def slots(self) -> list[SlotInfo]:
        return [SlotInfo.read(row) for row in await self._pages("slots", {})]

    async def revision(self) -> int:
        """Return the current revision of the change feed."""
        return int((await self._call_watch({}, timeout=15))["revision"])

    async def watch(self, since: int, wait: float) -> tuple[int, list[WatchedChange]]:
        """Return changes after `since`, waiting up to `wait` seconds for the first."""
        params = {"since": since, "wait": wait}
        payload = await self._call_watch(params, timeout=wait + 10)
        return int(payload["revision"]), [
            WatchedChange(change["kind"], change["id"]) for change in payload["changes"]
        ]

    async def renew_leases(self, holder: str) -> list[LeaseStatus]:
        """Take or renew the pool leases, and report the metrics address and the clock skew."""
        body: dict[str, object] = {"holder": holder}
        if address := self._config.metrics_target():
            body["metrics_address"] = address
        if (skew := self.clock.skew()) is not None:
            body["clock_skew_seconds"] = round(skew, 3)
        rows = await self._call("POST", "leases/hold", json=body)
        return [LeaseStatus(row["pool"], row["held"], row["holder"]) for row in rows]

    async def release_leases(self, holder: str) -> None:
        await self._call("POST", "leases/release", json={"holder": holder})

    async def heartbeat(self, slot_id: str, body: Mapping[str, object]) -> None:
        await self._call("POST", f"slots/{slot_id}/heartbeat", json=body)

    async def post(self, path: str, body: Mapping[str, object], key: str) -> Any:
        """Send an idempotent POST. The key stays valid across token rotation."""
        try:
            return await self._call("POST", path, json=body, headers={"Idempotency-Key": key})
        except LcmRejected as error:
            if error.status in UNAUTHORIZED_STATUSES:
                raise TokenRejected(f"the controller's token was rejected: {error}") from error
            raise

    async def _pages(self, path: str, params: dict[str, object]) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = []
        payload = await self._call("GET", path, params={**params, "page_size": PAGE})
        while True:
            rows += payload["results"]
            following = payload.get("next")
            if not following:
                return rows
            cursor = httpx.URL(following).params["cursor"]
            payload = await self._call("GET", path, params={**params, "page_size": PAGE, "cursor": cursor})

    async def _call_watch(self, params: Mapping[str, object], timeout: float) -> Any:
        """Call the watch. Without a proxy, LCM redirects the first call to its watch process."""
        # The URL is kept only after a success. After an error LCM names it again.
        known, self._watch_url = self._watch_url, None
        response = await self._request("GET", known or "watch", params=params, timeout=timeout)
        if response.status_code == REDIRECT:
            known = self._redirect_target(response)
            response = await self._request("GET", known, params=params, timeout=timeout)
        payload = _content("GET", "watch", response)
        self._watch_url = known
        return payload

    def _redirect_target(self, response: httpx.Response) -> str:
        """Return the URL without its query. Never send the token over HTTP if LCM's URL is HTTPS."""
        target = response.url.join(response.headers.get("Location", ""))
        if response.url.scheme == "https" and target.scheme != "https":
            raise LcmUnavailable(f"GET watch: LCM redirects from HTTPS to {target}")
        return str(target.copy_with(query=None))

    async def _call(self, method: str, path: str, **options: Any) -> Any:
        return _content(method, path, await self._request(method, path, **options))

    async def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            headers = {"Authorization": f"Bearer {self._config.api_token()}", **options.pop("headers", {})}
            sent = self.clock.monotonic()
            response = await self._http.request(method, path, headers=headers, **options)
            self.clock.sample(response.headers.get(TIME_HEADER), sent=sent, received=self.clock.monotonic())
            return response
        except ConfigError as error:
            # A token file may be empty or missing for a moment while it is rotated.
            raise TokenRejected(f"{method} {path}: {error}") from error
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise _unavailable(method, path, error) from error


def _content(method: str, path: str, response: httpx.Response) -> Any:
    """Return the body of a successful response, else raise the error."""
    if not response.is_success:
        raise _problem(method, path, response)
    try:
        return response.json() if response.content else None
    except ValueError as error:
        raise _unavailable(method, path, error) from error


def _unavailable(method: str, path: str, error: Exception) -> LcmUnavailable:
    return LcmUnavailable(f"{method} {path}: {error or type(error).__name__}")


def _problem(method: str, path: str, response: httpx.Response) -> LcmCallError:
    code, message = _error_of(response)
    if response.status_code == 410:
        return RevisionExpired(410, code, message)
    if response.status_code >= 500 or response.status_code in (408, 425, 429):
        wait = response.headers.get("Retry-After", "")
        text = f"{method} {path}: {response.status_code} {message}"
        return LcmUnavailable(text, float(wait) if wait.isdigit() else None)
    return LcmRejected(response.status_code, code, message)


def _error_of(response: httpx.Response) -> tuple[str, str]:
    try:
        body = response.json()
        return str(body["code"]), str(body["message"])
    except (ValueError, KeyError, TypeError):
        return "unreadable", response.text[:200]
