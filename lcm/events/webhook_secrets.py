"""Secrets of webhooks, and the signature of their requests by Standard Webhooks."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

from django.utils.crypto import salted_hmac
from standardwebhooks import Webhook as Signer

from lcm.models import Webhook

PREFIX = "whsec_"


def secret_of(webhook: Webhook) -> str:
    return _secret(webhook, webhook.salt)


def signed_headers(webhook: Webhook, *, message_id: str, body: str, now: datetime) -> dict[str, str]:
    """Return the headers with one signature for each valid secret."""
    at = now.astimezone(UTC)
    signatures = [Signer(secret).sign(message_id, at, body) for secret in _valid_secrets(webhook, now)]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


def _valid_secrets(webhook: Webhook, now: datetime) -> list[str]:
    salts = [webhook.salt]
    if webhook.previous_until and now < webhook.previous_until:
        salts.append(webhook.previous_salt)
    return [_secret(webhook, salt) for salt in salts]


def _secret(webhook: Webhook, salt: str) -> str:
    key = salted_hmac("lcm.webhook", f"{webhook.pk}:{salt}", algorithm="sha256").digest()
    return PREFIX + base64.b64encode(key).decode()
