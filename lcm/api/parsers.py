"""Reading what callers send."""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from lcm.errors import InvalidInput
from lcm.storable import UNSTORABLE, unstorable_at


class JsonParser(JSONParser):
    """JSON of a sane depth, with text that can be stored."""

    def parse(self, *args: Any, **kwargs: Any) -> Any:
        try:
            data = super().parse(*args, **kwargs)
            where = unstorable_at(data)
        except RecursionError as error:
            raise ParseError("This JSON is nested too deeply.") from error
        if where is not None:
            raise InvalidInput({where or "__all__": UNSTORABLE})
        return data
