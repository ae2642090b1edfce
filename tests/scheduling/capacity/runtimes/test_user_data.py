"""User data preserves any text."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from scheduling.capacity.runtimes.user_data import user_data, yaml_quoted


def parse_user_data(document):
    (file,) = yaml.safe_load(document)["write_files"]
    return file, json.loads(file["content"])


def test_user_data_contains_the_slot_the_address_and_the_token():
    document = user_data(slot_id="slot-1", controller_url="https://lcm.example.org", token="once")
    file, values = parse_user_data(document)
    assert document.startswith("#cloud-config\n")
    assert (file["path"], file["permissions"]) == ("/etc/lcm/worker.json", "0600")
    assert values == {"slot_id": "slot-1", "controller_url": "https://lcm.example.org", "token": "once"}


@pytest.mark.parametrize(
    "text",
    [
        '"',
        "\\",
        "\n",
        "$worker",
        "${token}",
        "'}\nruncmd: [reboot]",
        "# x",
        "\x00\x7f\x85\u2028",
        "😀",
        "{{ x }}",
    ],
)
def test_special_characters_stay_inside_their_value(text):
    document = user_data(slot_id=text, controller_url=text, token=text)
    assert set(yaml.safe_load(document)) == {"write_files"}
    assert parse_user_data(document)[1] == dict.fromkeys(("slot_id", "controller_url", "token"), text)


@given(st.text(), st.text(), st.text())
def test_any_text_is_preserved(slot_id, controller_url, token):
    document = user_data(slot_id=slot_id, controller_url=controller_url, token=token)
    values = {"slot_id": slot_id, "controller_url": controller_url, "token": token}
    assert parse_user_data(document)[1] == values
    assert document.isascii()


@given(st.text())
def test_any_text_can_be_quoted(text):
    assert yaml.safe_load(yaml_quoted(text)) == text
