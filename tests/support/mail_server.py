"""An SMTP server that keeps messages and answers as planned."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.controller import Controller

ACCEPTED = "250 accepted"


@dataclass
class MailServer:
    """`recipients` and `messages_plan` give the next responses to RCPT and DATA; then all are accepted."""

    url: str = ""
    messages: list[EmailMessage] = field(default_factory=list)
    # Message-IDs as received, also of messages without a response yet.
    received: list[str] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    messages_plan: list[str] = field(default_factory=list)
    # Seconds before each response to DATA.
    delay: float = 0

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        reply = self.recipients.pop(0) if self.recipients else ACCEPTED
        if reply.startswith("2"):
            envelope.rcpt_tos.append(address)
        return reply

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        message = message_from_bytes(envelope.content, policy=default)
        assert isinstance(message, EmailMessage)
        self.received.append(message["Message-ID"])
        await asyncio.sleep(self.delay)
        reply = self.messages_plan.pop(0) if self.messages_plan else ACCEPTED
        if reply.startswith("2"):
            self.messages.append(message)
        return reply


@contextmanager
def smtp_server() -> Iterator[MailServer]:
    """Start a server on loopback."""
    handler = MailServer()
    controller = Controller(handler, hostname="127.0.0.1", port=_free_port())
    controller.start()
    handler.url = f"smtp://127.0.0.1:{controller.port}"
    try:
        yield handler
    finally:
        controller.stop()


@contextmanager
def mail_server(settings: Any) -> Iterator[MailServer]:
    """Start a server on loopback and configure LCM to use it."""
    with smtp_server() as handler:
        settings.CONFIG["EMAIL_URL"] = handler.url
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", int(handler.url.rpartition(":")[2])
        yield handler


def _free_port() -> int:
    """The controller connects to the port that it is given, so 0 is not possible."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def part_of(message: EmailMessage, kind: str) -> str:
    """Return the text or HTML part of a message."""
    part = message.get_body((kind,))
    assert part is not None
    text: str = part.get_content()
    return text
