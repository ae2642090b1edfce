"""User data of new instances."""

from __future__ import annotations

import json
import re
from string import Template

# The worker image waits for this file. Everyone on the instance can read its user data, so the only secret in
# it is a token that works once.
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
    """Return a cloud-init document with the worker's slot, LCM's address and the boot token."""
    worker = json.dumps({"slot_id": slot_id, "controller_url": controller_url, "token": token})
    return TEMPLATE.substitute(worker=yaml_quoted(worker))


def yaml_quoted(text: str) -> str:
    """Quote text as a YAML double-quoted scalar."""
    return '"' + re.sub(r"[^ !#-\[\]-~]", lambda match: f"\\U{ord(match[0]):08x}", text) + '"'
