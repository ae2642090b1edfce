"""Wrong passwords count against the client's address, or against a browser that has signed in before."""

from ipaddress import ip_network

import pytest
from django.test import Client, RequestFactory

from lcm.web.server.client_address import client_address
from tests.support.factories import PASSWORD

PROXIES = ["127.0.0.1", "10.0.0.0/24", "fd00::/8"]


@pytest.mark.parametrize(
    ("proxies", "peer", "forwarded", "address"),
    [
        ([], "127.0.0.1", "203.0.113.7", "127.0.0.1"),
        ([], "", "203.0.113.7", ""),
        (PROXIES, "", "203.0.113.7", ""),
        (PROXIES, "127.0.0.1", None, "127.0.0.1"),
        (PROXIES, "127.0.0.1", "203.0.113.7", "203.0.113.7"),
        (PROXIES, "198.51.100.1", "203.0.113.7", "198.51.100.1"),
        (PROXIES, "127.0.0.1", "8.8.8.8, 203.0.113.7", "203.0.113.7"),
        (PROXIES, "127.0.0.1", "8.8.8.8, 203.0.113.7, 10.0.0.9", "203.0.113.7"),
        (PROXIES, "127.0.0.1", "10.0.0.8,10.0.0.9", "10.0.0.8"),
        (PROXIES, "127.0.0.1", "203.0.113.7, nonsense, 10.0.0.9", "10.0.0.9"),
        (PROXIES, "127.0.0.1", "unknown", "127.0.0.1"),
        (PROXIES, "::ffff:127.0.0.1", "203.0.113.7:55123", "203.0.113.7"),
        (PROXIES, "fd00::1", "[2001:db8::7]:443", "2001:db8::7"),
    ],
)
def test_the_client_address_is_the_right_most_untrusted_one(settings, proxies, peer, forwarded, address):
    settings.CONFIG["TRUSTED_PROXIES"] = [ip_network(each) for each in proxies]
    headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
    assert client_address(RequestFactory().get("/", headers=headers, REMOTE_ADDR=peer)) == address


@pytest.mark.usefixtures("one_window")
@pytest.mark.parametrize(("trusted", "status"), [(["127.0.0.1"], 302), ([], 200)])
def test_behind_a_trusted_proxy_wrong_passwords_block_no_other_client(settings, viewer, trusted, status):
    settings.CONFIG["TRUSTED_PROXIES"] = [ip_network(each) for each in trusted]
    settings.CONFIG["LOGIN_FAILURE_RATE"] = "2/min"

    def sign_in(password, source):
        form = {"username": viewer.username, "password": password}
        return Client().post("/login", form, headers={"X-Forwarded-For": source}, REMOTE_ADDR="127.0.0.1")

    for _ in range(2):
        sign_in("wrong", "203.0.113.66")
    assert "Too many failed attempts" in sign_in("wrong", "203.0.113.66").content.decode()
    assert sign_in(PASSWORD, "203.0.113.7").status_code == status


@pytest.mark.usefixtures("one_window")
def test_a_browser_that_has_signed_in_is_not_blocked_by_others_at_its_address(settings, viewer, operator):
    settings.CONFIG["LOGIN_FAILURE_RATE"] = "2/min"

    def sign_in(person, password, cookie=""):
        client = Client()
        client.cookies["lcm_browser"] = cookie
        response = client.post("/login", {"username": person.username, "password": password})
        return response.cookies["lcm_browser"].value if response.status_code == 302 else ""

    cookie = sign_in(viewer, PASSWORD)
    for person in (viewer, operator) * 2:
        sign_in(person, "wrong")
    assert not sign_in(viewer, PASSWORD), "a browser that LCM does not know"
    assert not sign_in(viewer, PASSWORD, f"{cookie}x"), "a cookie that LCM did not sign"
    assert not sign_in(operator, PASSWORD, cookie), "the browser of another person"
    assert not sign_in(viewer, "wrong", cookie)
    assert sign_in(viewer, PASSWORD, cookie)
    assert not sign_in(viewer, "wrong", cookie)
    assert not sign_in(viewer, PASSWORD, cookie), "two wrong passwords came from this browser"
