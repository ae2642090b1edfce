import socket
from collections.abc import Iterator

import pytest

from lcm.supervisor.address import Address, AddressError, responds, watch_address


@pytest.fixture
def taken() -> Iterator[Address]:
    """An address on which another program listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Address("127.0.0.1", server.getsockname()[1])


@pytest.mark.parametrize(
    ("bind", "host", "port", "url"),
    [
        ("127.0.0.1:8000", "127.0.0.1", 8000, "http://127.0.0.1:8000/"),
        ("lab.example.org:80", "lab.example.org", 80, "http://lab.example.org:80/"),
        ("0.0.0.0:8000", "0.0.0.0", 8000, "http://127.0.0.1:8000/"),
        (":8000", "", 8000, "http://127.0.0.1:8000/"),
        ("[::1]:8000", "::1", 8000, "http://[::1]:8000/"),
        ("[::]:8000", "::", 8000, "http://[::1]:8000/"),
    ],
)
def test_an_address_is_parsed_and_formatted(bind: str, host: str, port: int, url: str) -> None:
    address = Address.parse(bind)
    assert (address.host, address.port, address.url, str(address)) == (host, port, url, bind)


@pytest.mark.parametrize(
    "bind", ["", "8000", "127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:0", "h:70000"]
)
def test_an_invalid_address_is_rejected_with_an_example(bind: str) -> None:
    with pytest.raises(AddressError, match=r"Use host:port, such as 127\.0\.0\.1:8000"):
        Address.parse(bind)


def test_a_port_in_use_is_reported_with_a_free_one(taken: Address) -> None:
    with pytest.raises(AddressError) as refusal:
        taken.require_free()
    message, _, other = str(refusal.value).partition("set WEB_BIND=")
    assert message == f"Port {taken.port} on 127.0.0.1 is in use. Stop the other program or "
    assert Address.parse(other).port > taken.port
    Address.parse(other).require_free()


def test_an_address_of_another_machine_is_not_reported_as_in_use() -> None:
    with pytest.raises(AddressError, match=r"cannot listen on 192\.0\.2\.1:8000"):
        Address("192.0.2.1", 8000).require_free()


def test_an_address_without_a_listener_does_not_respond(taken: Address) -> None:
    assert not responds(taken.at_port(1), "/healthz")
    assert not responds(taken, "/healthz", timeout=0.1)


@pytest.mark.parametrize(
    ("web", "watch", "expected"),
    [
        ("127.0.0.1:8000", "", "127.0.0.1:8001"),
        ("[::]:8222", "", "[::]:8223"),
        ("0.0.0.0:8000", "127.0.0.1:9000", "127.0.0.1:9000"),
    ],
)
def test_the_watch_process_listens_on_the_next_port_unless_another_is_set(
    web: str, watch: str, expected: str
) -> None:
    assert str(watch_address({"WEB_BIND": web, "WATCH_BIND": watch})) == expected


@pytest.mark.parametrize(("web", "watch"), [("127.0.0.1:65535", ""), ("127.0.0.1:8000", "8001")])
def test_an_invalid_watch_address_is_rejected_with_its_setting(web: str, watch: str) -> None:
    with pytest.raises(AddressError, match="WATCH_BIND="):
        watch_address({"WEB_BIND": web, "WATCH_BIND": watch})
