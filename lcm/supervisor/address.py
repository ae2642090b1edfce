"""Listen addresses of the web and watch processes: parsing, checking and display."""

import http.client
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

ANY_HOST = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 (compared, never bound)
PORTS_TO_TRY = 100


class AddressError(Exception):
    """A server cannot listen on the configured address."""


@dataclass(frozen=True)
class Address:
    host: str
    port: int

    @classmethod
    def parse(cls, bind: str, setting: str = "WEB_BIND") -> Self:
        """Read `host:port` or `[v6 host]:port`."""
        host, colon, port = bind.rpartition(":")
        if not colon or not port.isdecimal() or not 0 < int(port) < 65536:
            raise AddressError(f"{setting}={bind} is not an address. Use host:port, such as 127.0.0.1:8000")
        return cls(host.strip("[]"), int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def local(self) -> "Address":
        """The same port on the address that local programs connect to."""
        return Address(ANY_HOST.get(self.host, self.host), self.port)

    @property
    def url(self) -> str:
        return f"http://{self.local}/"

    @classmethod
    def any_local(cls, preferred: int = 0) -> Self:
        """Return an unused local port: the preferred one if it is free."""
        if preferred and cls("127.0.0.1", preferred).is_free():
            return cls("127.0.0.1", preferred)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return cls("127.0.0.1", probe.getsockname()[1])

    def at_port(self, port: int) -> "Address":
        return Address(self.host, port)

    def is_free(self) -> bool:
        try:
            self._bind_once()
        except OSError:
            return False
        return True

    def require_free(self, setting: str = "WEB_BIND") -> None:
        """Raise AddressError with an explanation if the address cannot be bound."""
        try:
            self._bind_once()
        except PermissionError as error:
            raise AddressError(
                f"Port {self.port} requires more privileges. Set {setting}={self.at_port(8000)}"
            ) from error
        except OSError as error:
            raise AddressError(self._explain(error, setting)) from error

    def _bind_once(self) -> None:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((self.host, self.port))

    def _explain(self, error: OSError, setting: str) -> str:
        nearby = range(self.port + 1, min(self.port + PORTS_TO_TRY, 65536))
        other = next((port for port in nearby if self.at_port(port).is_free()), None)
        if other is None:
            return f"LCM cannot listen on {self} ({error.strerror}). Set another {setting}"
        return (
            f"Port {self.port} on {self.host} is in use. "
            f"Stop the other program or set {setting}={self.at_port(other)}"
        )


def watch_address(config: Mapping[str, Any]) -> Address:
    """Return the listen address of the watch process: WATCH_BIND, or the port after that of WEB_BIND."""
    if config["WATCH_BIND"]:
        return Address.parse(config["WATCH_BIND"], "WATCH_BIND")
    web = Address.parse(config["WEB_BIND"])
    return Address.parse(str(web.at_port(web.port + 1)), "WATCH_BIND")


def responds(address: Address, path: str, timeout: float = 1.0) -> bool:
    """Return whether the server at this address responds to a GET without a server error."""
    local = address.local
    connection = http.client.HTTPConnection(local.host, local.port, timeout=timeout)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
