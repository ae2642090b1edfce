"""What can go wrong with a call to CML; each error says the worker, the call, the status and CML's words."""

MAX_DESCRIPTION = 500


class CmlError(Exception):
    """A call to CML failed."""

    def __init__(self, worker: str, call: str, description: str, status: int | None = None) -> None:
        self.worker = worker
        self.call = call
        self.status = status
        self.description = description[:MAX_DESCRIPTION]
        answered = f" answered {status}" if status else ""
        super().__init__(f"{worker}: {call}{answered}: {self.description}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.worker, self.call, self.description, self.status)


class CmlUnreachable(CmlError):
    """There was no connection, it broke, or the certificate is not the one we trust."""


class CmlTimeout(CmlUnreachable):
    """The answer did not come within the time allowed."""


class CmlAuthFailed(CmlError):
    """The credentials are wrong, or a fresh token was refused."""


class CmlRefused(CmlError):
    """CML does not do this: a 4xx status."""


class CmlNotFound(CmlRefused):
    """There is no such lab, node or call."""


class CmlFailed(CmlError):
    """CML could not do it: a 5xx status."""


class CmlMalformedResponse(CmlError):
    """The answer is not what CML gives: no JSON, another shape, a redirect, or too long."""


def error_class(status: int) -> type[CmlError]:
    """Which error a status stands for."""
    if status == 404:
        return CmlNotFound
    if 400 <= status < 500:
        return CmlRefused
    return CmlFailed if status >= 500 else CmlMalformedResponse
