"""Requests to webhooks: faults of a real receiver, and addresses that LCM refuses."""

from __future__ import annotations

import asyncio
import errno
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from ipaddress import ip_address, ip_network

import pytest

from lcm.events import webhook_client
from lcm.events.webhook_client import EndpointClient, is_allowed
from tests.support.certificates import make_certificate
from tests.support.webhook_receiver import Reply, send_request, webhook_receiver

LOOPBACK = [ip_network("127.0.0.0/8")]
V6_LOOPBACK = [ip_network("::1/128")]


@pytest.fixture
def receiver():
    with webhook_receiver() as found:
        yield found


def send(url, allowed=LOOPBACK, ca_file=""):
    return send_request(url, body=b"{}", headers={"X-Test": "1"}, allowed=allowed, ca_file=ca_file)


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
        (Reply(500, body=b"oops"), 500, "The endpoint responded 500 Internal Server Error."),
        (Reply(410), 410, "The endpoint responded 410 Gone."),
        (Reply(599), 599, "The endpoint responded 599."),
        (
            Reply(302, {"Location": "/elsewhere"}),
            302,
            "The endpoint responded 302 Found. LCM does not follow redirects; enter the final URL.",
        ),
        (Reply(cut=True), None, "The endpoint closed the connection before its response was complete."),
    ],
)
def test_a_fault_is_a_result_with_a_sentence(receiver, reply, status, error):
    receiver.plan = [reply]
    result = send(receiver.url)
    assert (result.status, result.error, result.is_delivered) == (status, error, False)
    assert len(receiver.requests) == 1


def fails_with(error):
    """Return a `getaddrinfo` that raises this error."""

    async def lookup(self, host, port, **kwargs):
        raise error

    return lookup


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
            "The host hooks.example.org was not found.",
        ),
        (
            socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
            "The name server did not respond to the lookup of hooks.example.org.",
        ),
        (OSError(errno.ENETUNREACH, "unreachable"), "There is no route to hooks.example.org:8443."),
        (OSError(errno.EMFILE, "Too many open files"), "The request failed: [Errno 24] Too many open files."),
        (UnicodeError("label too long"), "The URL is not valid."),
    ],
)
def test_an_error_before_the_request_is_a_sentence_without_the_path(error, text, monkeypatch):
    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", fails_with(error))
    assert send("https://hooks.example.org:8443/secret").error == text


def test_a_refused_connection_is_a_sentence():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert send(f"http://127.0.0.1:{port}/secret").error == f"127.0.0.1:{port} refused the connection."


def test_a_certificate_is_verified_with_the_cas_of_the_setting(tmp_path):
    server, ca = make_certificate(tmp_path)
    with webhook_receiver(server) as receiver:
        address = receiver.url.split("/")[2]
        assert send(receiver.url, ca_file=ca).error == ""
        unknown = send(receiver.url)
        unreadable = send(receiver.url, ca_file=str(tmp_path / "none.pem"))
        wrong_name = send(receiver.url.replace("127.0.0.1", "localhost"), [*LOOPBACK, *V6_LOOPBACK], ca)
        assert len(receiver.requests) == 1
    assert unknown.error == f"The certificate of {address} is from an unknown CA. WEBHOOK_CA_FILE adds CAs."
    assert unreadable.error.startswith("WEBHOOK_CA_FILE cannot be read: ")
    assert wrong_name.error == "The certificate of the server is not valid for the name localhost."


def test_a_server_without_tls_is_a_sentence(receiver):
    url = receiver.url.replace("http:", "https:")
    assert send(url).error.startswith(f"The TLS connection to {url.split('/')[2]} failed: ")


def test_requests_share_a_connection_until_one_fails_or_the_endpoint_closes_it(receiver):
    receiver.plan = [Reply(), Reply(close=True), Reply(), Reply(500), Reply()]

    async def send_five():
        client = EndpointClient(receiver.url, allowed=LOOPBACK)
        results = [await client.post(b"{}", {}) for _ in range(5)]
        await client.close()
        return results

    assert [each.status for each in asyncio.run(send_five())] == [204, 204, 204, 500, 204]
    clients = [each.client for each in receiver.requests]
    assert [clients.index(each) for each in clients] == [0, 0, 2, 2, 4]


@pytest.mark.parametrize("reply", [Reply(delay=1), Reply(200, body=b"x" * 100, drip=0.1)])
def test_the_total_time_is_limited_even_if_bytes_keep_coming(receiver, reply, monkeypatch):
    monkeypatch.setattr(webhook_client, "TIME_LIMIT_SECONDS", 0.3)
    receiver.plan = [reply]
    result = send(receiver.url)
    assert result.error == "The endpoint sent no complete response within 0.3 s."
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
        "::127.0.0.1", "::10.0.0.1", "64:ff9b:1::7f00:1", "fec0::1",
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
    assert result.error.startswith("LCM must not connect to 127.0.0.1 by http.")
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
    assert "connect to 10.0.0.1" in send(f"http://hooks.example.org:{port}").error
    assert len(receiver.requests) == 1


def test_one_internal_address_among_several_is_enough_to_refuse(receiver, monkeypatch):
    resolve, _ = resolver(["127.0.0.1", "192.168.0.9"])

    async def lookup(self, host, port, **kwargs):
        return resolve(host, port)

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", lookup)
    assert "192.168.0.9" in send(receiver.url.replace("127.0.0.1", "hooks.example.org")).error
    assert not receiver.requests
