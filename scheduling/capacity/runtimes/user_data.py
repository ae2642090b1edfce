"""User data: what a new instance is told when it boots."""

from __future__ import annotations

import json
import re
from string import Template

# The worker image waits for this file. Everyone on the instance can read its user data for as long as it
# lives, so the only secret in it is a token that is worth nothing once it has been used.
TEMPLATE = Template(
    """\
#cloud-config
write_files:
  - path: /etc/lcm/worker.json
    owner: "root:root"
    permissions: "0600"
    content: $worker
"""
)


def user_data(*, slot_id: str, controller_url: str, token: str) -> str:
    """A cloud-init document that tells a worker which slot it fills, whom to call and how to prove it."""
    worker = json.dumps({"slot_id": slot_id, "controller_url": controller_url, "token": token})
    return TEMPLATE.substitute(worker=yaml_quoted(worker))


def yaml_quoted(text: str) -> str:
    """Text as a YAML scalar in double quotes that means exactly this text, whatever is in it."""
    return '"' + re.sub(r"[^ !#-\[\]-~]", lambda found: f"\\U{ord(found[0]):08x}", text) + '"'
