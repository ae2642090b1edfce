"""Requests to webhooks: faults of a real receiver, and addresses that LCM refuses."""

from __future__ import annotations

import asyncio
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from ipaddress import ip_address, ip_network

import pytest

from lcm.events import webhook_client
from lcm.events.webhook_client import is_allowed, send_request
from tests.support.webhook_receiver import Reply, webhook_receiver

LOOPBACK = [ip_network("127.0.0.0/8")]


@pytest.fixture
def receiver():
    with webhook_receiver() as found:
        yield found


def send(url, allowed=LOOPBACK):
    return send_request(url, body=b"{}", headers={"X-Test": "1"}, allowed=allowed)


def test_a_success_has_no_error_and_keeps_the_first_kilobyte_of_the_response(receiver):
    receiver.plan = [Reply(200, body=b"x" * 5000)]
    result = send(receiver.url)
    assert (result.status, result.error, result.is_delivered) == (200, "", True)
    assert result.response == "x" * 1024
    (request,) = receiver.requests
    assert request.headers["Host"] == receiver.url.removeprefix("http://").removesuffix("/hook")


@pytest.mark.parametrize(
    ("reply", "status", "error"),
    [
        (Reply(500, body=b"oops"), 500, "HTTP 500"),
        (Reply(410), 410, "HTTP 410"),
        (Reply(302, {"Location": "/elsewhere"}), 302, "HTTP 302: redirects are not followed"),
        (Reply(cut=True), None, "disconnected"),
    ],
)
def test_a_fault_is_a_result_with_its_error(receiver, reply, status, error):
    receiver.plan = [reply]
    result = send(receiver.url)
    assert (result.status, result.is_delivered) == (status, False)
    assert error in result.error
    assert len(receiver.requests) == 1


@pytest.mark.parametrize("reply", [Reply(delay=1), Reply(200, body=b"x" * 100, drip=0.1)])
def test_the_total_time_is_limited_even_if_bytes_keep_coming(receiver, reply, monkeypatch):
    monkeypatch.setattr(webhook_client, "TIME_LIMIT_SECONDS", 0.3)
    receiver.plan = [reply]
    result = send(receiver.url)
    assert result.error == "no complete response within 0.3 s"
    assert 250 <= result.duration_ms < 900


def test_retry_after_is_a_number_of_seconds_or_a_date(receiver):
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    receiver.plan = [Reply(503, {"Retry-After": value}) for value in ("7", date, "soon")]
    first, second, third = (send(receiver.url).retry_after for _ in range(3))
    assert (first, third) == (7, None)
    assert 60 < second <= 90


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "::1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "fe80::1", "fd00::1",
        "0.0.0.0", "::", "224.0.0.1", "ff02::1", "100.64.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
        "2002:7f00:1::", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "255.255.255.255", "240.0.0.1",
    ],
)  # fmt: skip
def test_an_internal_address_is_refused_unless_its_network_is_allowed(address):
    assert not is_allowed(ip_address(address), [], is_https=True)


def test_public_addresses_need_https_and_allowed_networks_do_not():
    public = ip_address("93.184.216.34")
    assert is_allowed(public, [], is_https=True)
    assert not is_allowed(public, LOOPBACK, is_https=False)
    assert is_allowed(ip_address("::ffff:127.0.0.1"), LOOPBACK, is_https=False)


def test_nothing_is_sent_to_an_address_that_is_not_allowed(receiver):
    result = send(receiver.url, allowed=[])
    assert "127.0.0.1 is not allowed for http" in result.error
    assert not receiver.requests


def resolver(*answers):
    """Return a `getaddrinfo` that returns these results in turn, and the list of names it received."""
    names, rest = [], list(answers)

    def resolve(host, port, *args, **kwargs):
        names.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in rest.pop(0)]

    return resolve, names


def test_a_name_is_resolved_once_so_that_it_cannot_change_after_the_check(receiver, monkeypatch):
    resolve, names = resolver(["127.0.0.1"], ["10.0.0.1"])

    async def lookup(self, host, port, **kwargs):
        return resolve(host, port)

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", lookup)
    port = receiver.url.split(":")[-1]
    result = send(f"http://hooks.example.org:{port}")
    assert (result.error, names) == ("", ["hooks.example.org"])
    assert receiver.requests[0].headers["Host"] == f"hooks.example.org:{port.split('/')[0]}"
    assert "10.0.0.1 is not allowed" in send(f"http://hooks.example.org:{port}").error
    assert len(receiver.requests) == 1


def test_one_internal_address_among_several_is_enough_to_refuse(receiver, monkeypatch):
    resolve, _ = resolver(["127.0.0.1", "192.168.0.9"])

    async def lookup(self, host, port, **kwargs):
        return resolve(host, port)

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", lookup)
    assert "192.168.0.9" in send(receiver.url.replace("127.0.0.1", "hooks.example.org")).error
    assert not receiver.requests


def test_an_unknown_host_is_a_result(monkeypatch):
    async def lookup(self, host, port, **kwargs):
        raise socket.gaierror("Name or service not known")

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", lookup)
    assert "Name or service not known" in send("https://nowhere.example.org/").error
