"""Client of the simulator's administration API."""

from __future__ import annotations

from typing import Any, Self
from urllib.parse import quote

import httpx

from lcm.cml.simulator.options import OptionError


class SimulatorAdmin:
    """Client of a simulator process: `SimulatorAdmin("http://127.0.0.1:9443").add("worker-1", seed=7)`.

    Raises OptionError if a request is rejected and httpx.HTTPError if the process does not respond.
    """

    def __init__(self, url: str, *, verify: Any = True, timeout: float = 5.0) -> None:
        self.url = url.rstrip("/")
        # Loading certificates takes longer than the request.
        verify = verify if self.url.startswith("https:") else False
        self._http = httpx.Client(base_url=self.url, verify=verify, timeout=timeout, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def address_of(self, name: str) -> str:
        """Return the URL of the CML with this name."""
        return f"{self.url}/{quote(name)}"

    def add(self, name: str, **options: object) -> str:
        """Launch a controller, or find the existing one, and return its URL."""
        self.request("PUT", f"/{name}", options)
        return self.address_of(name)

    def remove(self, name: str) -> bool:
        """Terminate a controller with its labs. Return whether it existed."""
        return self.request("DELETE", f"/{name}", missing_ok=True) is not None

    def controllers(self) -> dict[str, dict[str, Any]]:
        """Return all controllers by name, with options and labs."""
        rows: list[dict[str, Any]] = self.request("GET", "").json()
        return {controller["name"]: controller for controller in rows}

    def request(self, method: str, path: str, body: object = None, *, missing_ok: bool = False) -> Any:
        response = self._http.request(method, f"/simulator/controllers{path}", json=body)
        if missing_ok and response.status_code == httpx.codes.NOT_FOUND:
            return None
        if response.is_client_error:
            raise OptionError(response.json()["description"])
        return response.raise_for_status()
