"""Send an e-mail to the mail server; failures of any kind are results."""

from __future__ import annotations

import smtplib
import time

from django.conf import settings
from django.core.mail import EmailMessage, get_connection

from lcm.events.webhook_client import KEPT_RESPONSE_BYTES, SendResult
from lcm.events.webhook_errors import MAX_ERROR

# The server took the message.
ACCEPTED = 250
PERMANENT = 500


def mail_is_configured() -> bool:
    return bool(settings.CONFIG["EMAIL_URL"])


def send_mail(message: EmailMessage) -> SendResult:
    """Send a message on a connection of its own; EMAIL_TIMEOUT limits each response of the server."""
    started = time.monotonic()
    status: int | None = ACCEPTED
    error = response = ""
    is_final = False
    try:
        get_connection().send_messages([message])
    except smtplib.SMTPRecipientsRefused as refusal:
        status, text = next(iter(refusal.recipients.values()))
        response, is_final = _text(text), status >= PERMANENT
        error = f"SMTP {status}: the recipient was refused"
    except smtplib.SMTPDataError as refusal:
        status, response = refusal.smtp_code, _text(refusal.smtp_error)
        error, is_final = f"SMTP {status}: the message was refused", status >= PERMANENT
    except smtplib.SMTPResponseException as refusal:
        status, response = refusal.smtp_code, _text(refusal.smtp_error)
        error = f"SMTP {status}"
    except (smtplib.SMTPException, OSError, ValueError) as problem:
        status, error = None, (str(problem) or type(problem).__name__)[:MAX_ERROR]
    if status is not None and status <= 0:
        # smtplib's code for text that is no SMTP response.
        status, error, is_final = None, "The mail server sent no SMTP response.", False
    duration = round((time.monotonic() - started) * 1000)
    return SendResult(duration, status, error, response, is_final=is_final)


def _text(response: bytes | str) -> str:
    text = response.decode(errors="replace") if isinstance(response, bytes) else response
    return text[:KEPT_RESPONSE_BYTES].replace("\0", "")
