"""Tags that request ports, and the names of the ports."""

import re
from contextlib import suppress
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.cml.ports import PROTOCOLS, PortTag, TagError, format_tag, parse_tag, port_template


@dataclass(frozen=True)
class Tagged:
    label: str
    tags: tuple[str, ...]


def names(*nodes: tuple[str, list[str]]) -> list[str]:
    return [entry.name for entry in port_template([Tagged(label, tuple(tags)) for label, tags in nodes])]


@pytest.mark.parametrize(
    ("tag", "port"),
    [
        ("serial:5041", PortTag("serial", 5041)),
        ("serial:5041:0", PortTag("serial", 5041, 0)),
        ("serial:5041:1", PortTag("serial", 5041, 1)),
        ("vnc:5044", PortTag("vnc", 5044)),
        ("pat:2022:22", PortTag("pat", 2022, 22)),
        ("pat:tcp:2022:22", PortTag("pat", 2022, 22, "tcp")),
        ("pat:udp:2161:161", PortTag("pat", 2161, 161, "udp")),
        ("ssh:5022", PortTag("ssh", 5022)),
        ("ssh:5022:22", PortTag("ssh", 5022, 22)),
        ("https:8443:443", PortTag("https", 8443, 443)),
        ("telnet:1", PortTag("telnet", 1)),
        ("http:65535:65535", PortTag("http", 65535, 65535)),
        ("SSH:5022", PortTag("ssh", 5022)),
    ],
)
def test_a_port_tag_is_parsed(tag, port):
    assert parse_tag(tag) == port


@pytest.mark.parametrize(
    "tag",
    [
        "",
        "core",
        "serial",
        "ssh",
        "site:paris",
        "serial-5041",
        ":5041",
        "https://example.org/lab",
        "rdp:3389",
    ],
)
def test_any_other_tag_is_not_a_port(tag):
    assert parse_tag(tag) is None


@pytest.mark.parametrize(
    ("tag", "reason"),
    [
        ("serial:", 'must have a number instead of ""'),
        ("serial:abc", 'must have a number instead of "abc"'),
        ("serial: 5041", "must have a number"),
        ("serial:５０４１", "must have a number"),
        ("serial:-1", "must have a number"),
        ("serial:50.5", "must have a number"),
        ("serial:0", "the number 0 is out of range: 1 to 65535"),
        ("vnc:65536", "the number 65536 is out of range"),
        ("ssh:99999999999999999999", "out of range"),
        ("ssh:5022:0", "the number 0 is out of range"),
        ("serial:5041:16", "the number 16 is out of range: 0 to 15"),
        ("serial:5041:1:2", "not of the form serial:<port> or serial:<port>:<line>"),
        ("vnc:5044:1", "not of the form vnc:<port>"),
        ("ssh:5022:22:1", "not of the form ssh:<outside> or ssh:<outside>:<inside>"),
        ("pat:2022", "not of the form pat:<outside>:<inside>"),
        ("pat:tcp:2022", "not of the form pat:"),
        ("pat:udp:2022:161:1", "not of the form pat:"),
        ("pat:sctp:2022:22", "not of the form pat:"),
    ],
)
def test_a_malformed_port_tag_is_an_error_with_its_reason(tag, reason):
    with pytest.raises(TagError, match=re.escape(reason)):
        parse_tag(tag)


def test_an_error_does_not_repeat_a_very_long_tag():
    with pytest.raises(TagError) as caught:
        parse_tag("serial:" + "9" * 100_000)
    assert len(str(caught.value)) < 200


ports = st.integers(1, 65535)
port_tags = st.one_of(
    st.builds(PortTag, st.just("serial"), ports, st.none() | st.integers(0, 15)),
    st.builds(PortTag, st.just("vnc"), ports),
    st.builds(PortTag, st.just("pat"), ports, ports, st.sampled_from(["tcp", "udp"])),
    st.builds(PortTag, st.sampled_from(["ssh", "telnet", "http", "https"]), ports, st.none() | ports),
)
near_tags = st.lists(st.sampled_from([*PROTOCOLS, "tcp", "udp", "", "22", "0", "70000", "x", "²"])).map(
    ":".join
)


@given(port_tags)
def test_format_and_parse_are_inverse(port):
    assert parse_tag(format_tag(port)) == port


@given(st.text() | near_tags)
def test_no_text_raises_anything_but_the_tag_error(text):
    with suppress(TagError):
        port = parse_tag(text)
        assert port is None or parse_tag(format_tag(port)) == port


def test_a_port_is_named_after_its_node_and_protocol():
    assert names(("R1", ["serial:5001", "core", "vnc:5002"])) == ["R1_serial", "R1_vnc"]


def test_characters_a_name_cannot_have_become_underscores():
    assert names(("core sw/1 é", ["ssh:5001"])) == ["core_sw_1___ssh"]


def test_a_second_port_of_a_protocol_is_named_by_its_inside_port():
    assert names(("R1", ["pat:2022:22", "pat:2080:80"])) == ["R1_pat", "R1_pat_80"]


def test_a_second_port_without_an_inside_port_is_numbered():
    tags = ["serial:5001", "serial:5002", "serial:5003"]
    assert names(("R1", tags)) == ["R1_serial", "R1_serial_2", "R1_serial_3"]


def test_names_do_not_depend_on_the_order_in_which_a_controller_returns_the_tags():
    tags = ["pat:2080:80", "pat:udp:2161:161", "serial:5002:1", "pat:2022:22", "serial:5001"]

    def by_port(order: list[str]) -> dict[int, str]:
        return {entry.outside: entry.name for entry in port_template([Tagged("R1", tuple(order))])}

    assert by_port(tags) == by_port(tags[::-1]) == by_port(sorted(tags))


def test_labels_that_look_alike_get_different_names():
    found = names(("R 1", ["serial:1"]), ("R_1", ["serial:2"]), ("R/1", ["serial:3"]))
    assert sorted(found) == ["R_1_serial", "R_1_serial_2", "R_1_serial_3"]


def test_a_name_made_unique_does_not_collide_with_another_label():
    found = names(("R1", ["pat:2022:22", "pat:2080:80", "pat:udp:2080:80"]), ("R1_pat", ["pat:1:80"]))
    assert len(set(found)) == 4


def test_a_number_used_by_an_inside_port_is_skipped():
    tags = ["pat:1:2", "pat:2:3", "pat:3:3", "pat:udp:4:3"]
    assert names(("A", tags)) == ["A_pat", "A_pat_3", "A_pat_2", "A_pat_4"]


def test_the_entries_keep_the_order_of_the_file():
    entries = port_template([Tagged("B", ("pat:udp:2161:161",)), Tagged("A", ("serial:5001",))])
    assert [entry.to_dict() for entry in entries] == [
        {
            "name": "B_pat",
            "node_label": "B",
            "protocol": "pat",
            "outside": 2161,
            "inside": 161,
            "transport": "udp",
        },
        {
            "name": "A_serial",
            "node_label": "A",
            "protocol": "serial",
            "outside": 5001,
            "inside": None,
            "transport": "tcp",
        },
    ]


labels = st.text(alphabet="R1_ é/-", min_size=1, max_size=5)
tagged_nodes = st.builds(Tagged, labels, st.lists(port_tags.map(format_tag), max_size=6).map(tuple))


@given(st.lists(tagged_nodes, max_size=6))
def test_names_are_unique_and_have_plain_characters(nodes):
    found = [entry.name for entry in port_template(nodes)]
    assert len(set(found)) == len(found)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", name) for name in found)
