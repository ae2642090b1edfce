"""Bodies of webhook requests by format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lcm.models import WebhookFormat

CONTENT_TYPES = {
    WebhookFormat.CLOUDEVENTS: "application/cloudevents+json",
    WebhookFormat.SLACK: "application/json",
}


def request_body(event: Mapping[str, Any], form: str) -> str:
    """Return a CloudEvent in the format of a webhook."""
    content = _slack_message(event) if form == WebhookFormat.SLACK else event
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _slack_message(event: Mapping[str, Any]) -> dict[str, str]:
    data = event["data"]
    name = _escaped(data["name"])
    title = f"<{data['url']}|{name}>" if data["url"] else name
    reason = f" ({_escaped(data['reason'])})" if data["reason"] else ""
    return {"text": f"*{title}*: {_escaped(data['message'])}{reason}"}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
