"""Errors of webhook requests as sentences for the delivery log."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx

MAX_ERROR = 300
# Codes of OpenSSL's certificate verification.
_EXPIRED, _NOT_YET_VALID, _WRONG_NAME, _WRONG_ADDRESS = 10, 9, 62, 64
_UNKNOWN_CA = frozenset({2, 18, 19, 20, 21})
_NO_ROUTE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH})


class RequestRefused(Exception):
    """LCM does not send the request; the text says why."""


def status_error(response: httpx.Response) -> str:
    """Return why a response is a failure; empty for a success."""
    if response.is_success:
        return ""
    status = f"{response.status_code} {httpx.codes.get_reason_phrase(response.status_code)}"
    text = f"The endpoint responded {status.strip()}."
    if response.has_redirect_location:
        return f"{text} LCM does not follow redirects; enter the final URL."
    return text


def error_text(error: Exception, url: str, *, limit: float) -> str:
    """Return a sentence about an error, without the path of the URL; `limit` is the time limit in seconds."""
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return f"The endpoint sent no complete response within {limit:g} s."
    host = urlsplit(url).netloc
    causes = list(_causes(error))
    found = next((text for cause in causes if (text := _known(cause, host))), "")
    return (found or f"The request failed: {causes[-1] or type(causes[-1]).__name__}.")[:MAX_ERROR]


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, the first cause first."""
    cause = error.__cause__ or error.__context__
    if cause:
        yield from _causes(cause)
    yield error


def _known(error: BaseException, host: str) -> str:
    match error:
        case RequestRefused():
            return str(error)
        case socket.gaierror():
            return _lookup_text(error, host)
        case ssl.SSLCertVerificationError():
            return _certificate_text(error, host)
        case ssl.SSLError():
            return f"The TLS connection to {host} failed: {_reason(error)}."
        case ConnectionRefusedError():
            return f"{host} refused the connection."
        case OSError() if error.errno in _NO_ROUTE:
            return f"There is no route to {host}."
        case httpx.RemoteProtocolError() | httpx.ReadError() | httpx.WriteError() | ConnectionError():
            return "The endpoint closed the connection before its response was complete."
        case httpx.InvalidURL() | UnicodeError():
            return "The URL is not valid."
    return ""


def _lookup_text(error: socket.gaierror, host: str) -> str:
    name = urlsplit(f"//{host}").hostname
    if error.errno == socket.EAI_AGAIN:
        return f"The name server did not respond to the lookup of {name}."
    return f"The host {name} was not found."


def _certificate_text(error: ssl.SSLCertVerificationError, host: str) -> str:
    if error.verify_code in _UNKNOWN_CA:
        return f"The certificate of {host} is from an unknown CA. WEBHOOK_CA_FILE adds CAs."
    if error.verify_code in (_WRONG_NAME, _WRONG_ADDRESS):
        return f"The certificate of the server is not valid for the name {urlsplit(f'//{host}').hostname}."
    if error.verify_code == _EXPIRED:
        return f"The certificate of {host} has expired."
    if error.verify_code == _NOT_YET_VALID:
        return f"The certificate of {host} is not valid yet."
    return f"The certificate of {host} is not valid: {error.verify_message}."


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).replace("_", " ").lower()
