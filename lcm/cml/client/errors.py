"""Errors of CML calls. Each carries the worker, the call, the status and CML's description."""

MAX_DESCRIPTION = 500


class CmlError(Exception):
    """A call to CML failed."""

    def __init__(self, worker: str, call: str, description: str, status: int | None = None) -> None:
        self.worker = worker
        self.call = call
        self.status = status
        self.description = description[:MAX_DESCRIPTION]
        returned = f" returned {status}" if status else ""
        super().__init__(f"{worker}: {call}{returned}: {self.description}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.worker, self.call, self.description, self.status)


class CmlUnreachable(CmlError):
    """The connection failed, or the certificate is not trusted."""


class CmlTimeout(CmlUnreachable):
    """The response did not arrive in time."""


class CmlAuthFailed(CmlError):
    """The credentials are wrong, or a new token was rejected."""


class CmlRejected(CmlError):
    """CML rejected the request: a 4xx status."""


class CmlNotFound(CmlRejected):
    """The lab, node or call does not exist."""


class CmlFailed(CmlError):
    """CML failed: a 5xx status."""


class CmlMalformedResponse(CmlError):
    """The response is not CML's: not JSON, another shape, a redirect, or too long."""


def error_class(status: int) -> type[CmlError]:
    """Return the error class of a status code."""
    if status == 404:
        return CmlNotFound
    if 400 <= status < 500:
        return CmlRejected
    return CmlFailed if status >= 500 else CmlMalformedResponse
