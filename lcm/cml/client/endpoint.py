"""Address, credentials and TLS trust of a worker."""

from __future__ import annotations

import hashlib
import hmac
import re
import ssl
from dataclasses import dataclass, field


@dataclass(frozen=True)
class CmlEndpoint:
    """The URL of a CML, credentials, and the CA file or SHA-256 fingerprint of its certificate.

    Without either, the system's certificate authorities are trusted. With a fingerprint, neither the
    authority nor the host name is checked.
    """

    name: str
    url: str
    username: str
    password: str = field(repr=False)
    ca_file: str | None = None
    fingerprint: str | None = None

    def __post_init__(self) -> None:
        if not re.match(r"https?://[^/]", self.url, re.IGNORECASE):
            raise ValueError(f"{self.name}: {self.url!r} is not a worker URL. It must start with https://.")
        if self.fingerprint:
            _digits(self.fingerprint)

    @property
    def api_url(self) -> str:
        """Base URL of the API."""
        return f"{self.url.rstrip('/')}/api/v0/"

    def tls(self) -> ssl.SSLContext | bool:
        """Return the value for httpx's `verify`."""
        if not self.url.lower().startswith("https:"):
            return False
        if self.fingerprint:
            return pinned_context(self.fingerprint)
        return ssl.create_default_context(cafile=self.ca_file)


def pinned_context(fingerprint: str) -> ssl.SSLContext:
    """Return a context that accepts only one certificate, compared before any data is sent."""
    expected = _digits(fingerprint)

    class PinnedObject(ssl.SSLObject):
        """A connection that is rejected if its certificate is not the pinned one."""

        def do_handshake(self) -> None:
            super().do_handshake()
            actual = hashlib.sha256(self.getpeercert(binary_form=True) or b"").hexdigest()
            if not hmac.compare_digest(actual, expected):
                raise ssl.SSLCertVerificationError(
                    f"the certificate's fingerprint is {actual}, not the pinned one"
                )

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.sslobject_class = PinnedObject
    return context


def _digits(fingerprint: str) -> str:
    digits = fingerprint.lower().removeprefix("sha256").replace(":", "").replace(" ", "")
    if not re.fullmatch("[0-9a-f]{64}", digits):
        raise ValueError("A fingerprint must be the SHA-256 of the certificate: 64 hexadecimal digits.")
    return digits
