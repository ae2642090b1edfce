"""Addresses of a node's ports, in plain Python."""

import pytest

from lcm.cml.access import NodeAddress, console_of, host_of, node_addresses


@pytest.mark.parametrize(
    ("endpoint", "host", "console"),
    [
        ("https://cml-1.example.org", "cml-1.example.org", "https://cml-1.example.org"),
        ("http://127.0.0.1:8080/w1", "127.0.0.1", "http://127.0.0.1:8080/w1"),
        ("https://[fd00::7]:443", "[fd00::7]", "https://[fd00::7]:443"),
        ("cml-1.example.org", "", ""),
        ("https://[broken", "", ""),
        ("", "", ""),
    ],
)
def test_the_host_and_the_console_of_an_endpoint(endpoint, host, console):
    assert (host_of(endpoint), console_of(endpoint)) == (host, console)


@pytest.mark.parametrize(
    ("protocol", "inside", "transport", "url"),
    [
        ("serial", 0, "tcp", "telnet://cml:5041"),
        ("vnc", None, "tcp", "vnc://cml:5041"),
        ("ssh", 22, "tcp", "ssh://cml:5041"),
        ("telnet", 23, "tcp", "telnet://cml:5041"),
        ("https", 8443, "tcp", "https://cml:5041"),
        ("pat", 22, "tcp", "ssh://cml:5041"),
        ("pat", 443, "tcp", "https://cml:5041"),
        ("pat", 5432, "tcp", "cml:5041"),
        ("pat", 22, "udp", "cml:5041"),
    ],
)
def test_the_url_of_a_port(protocol, inside, transport, url):
    assert NodeAddress("x", protocol, transport, inside, "cml", 5041).url == url


@pytest.mark.parametrize(("host", "port"), [("", 5041), ("cml", None), ("", None)])
def test_an_unknown_part_leaves_no_url(host, port):
    assert NodeAddress("x", "ssh", "tcp", 22, host, port).url == ""


def test_each_node_has_the_ports_of_the_template_on_its_own_host():
    template = [
        {"name": "r1_serial", "node_label": "r1", "protocol": "serial"},
        {"name": "r2_vnc", "node_label": "r2", "protocol": "vnc", "inside": None, "transport": "tcp"},
        {"name": "r2_pat", "node_label": "r2", "protocol": "pat", "inside": 161, "transport": "udp"},
    ]
    found = node_addresses(template, {"r1_serial": 2000, "r2_vnc": 2001}, {"r1": "a", "r2": "[::1]"})
    assert {label: [each.url for each in ports] for label, ports in found.items()} == {
        "r1": ["telnet://a:2000"],
        "r2": ["vnc://[::1]:2001", ""],
    }
