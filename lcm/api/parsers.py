"""Reading what callers send."""

from __future__ import annotations

import re
from typing import Any

from django.conf import settings
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser
from rest_framework.utils import json

from lcm.errors import InvalidInput
from lcm.storable import UNSTORABLE, unstorable_at

# How JSON can say what cannot be stored. Most never do, and need no walk through all their values.
_SUSPICIOUS = re.compile(r"\\u(?:0000|[dD][89a-fA-F])|[\ud800-\udfff]")


class JsonParser(JSONParser):
    """JSON of a sane depth, with text that can be stored; the request keeps it as `json_text`."""

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        encoding = (parser_context or {}).get("encoding", settings.DEFAULT_CHARSET)
        try:
            text = stream.read().decode(encoding)
            data = json.loads(text, parse_constant=json.strict_constant)
            where = unstorable_at(data) if _is_suspicious(text) else None
        except RecursionError as error:
            raise ParseError("This JSON is nested too deeply.") from error
        except ValueError as error:
            raise ParseError(f"JSON parse error - {error}") from error
        if where is not None:
            raise InvalidInput({where or "__all__": UNSTORABLE})
        if request := (parser_context or {}).get("request"):
            request.json_text = text
        return data


def _is_suspicious(text: str) -> bool:
    """Two looks that cost nothing settle it for most."""
    return ("\\u" in text or not text.isascii()) and _SUSPICIOUS.search(text) is not None
