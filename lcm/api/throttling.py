"""Rate limits of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from lcm.api.authentication import principal_key, token_of_controller
from lcm.web.server.rate_limit import count_call

if TYPE_CHECKING:
    from rest_framework.views import APIView


class PrincipalThrottle(BaseThrottle):
    """A fixed window for each person or token."""

    left: float | None = None

    def allow_request(self, request: Request, view: APIView) -> bool:
        if not request.user.is_authenticated:
            return True
        rate = "CONTROLLER_RATE" if token_of_controller(request) else "API_RATE"
        self.left = count_call(f"api:{principal_key(request)}", rate)
        return self.left is None

    def wait(self) -> float | None:
        return self.left
