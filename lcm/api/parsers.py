"""Reading what callers send."""

from __future__ import annotations

import math
import re
from typing import Any

from django.conf import settings
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser
from rest_framework.utils import json

from lcm.domain.errors import InvalidInput
from lcm.domain.storable_text import UNSTORABLE, find_unstorable

# How JSON can say what cannot be stored. Most never do, and need no walk through all their values.
_SUSPICIOUS = re.compile(r"\\u(?:0000|[dD][89a-fA-F])|[\ud800-\udfff]")
LONGEST_NUMBER = 400  # characters


class JsonParser(JSONParser):
    """JSON of a sane depth, with text and numbers that can be stored.

    The request keeps it as `json_text`, to be stored as it came. What looks suspicious is not kept: of a key
    that is there twice, only the last value was checked.
    """

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        encoding = (parser_context or {}).get("encoding", settings.DEFAULT_CHARSET)
        try:
            text = stream.read().decode(encoding)
            data = json.loads(text, parse_constant=json.strict_constant, parse_float=_storable_number)
            is_suspicious = _is_suspicious(text)
            where = find_unstorable(data) if is_suspicious else None
        except RecursionError as error:
            raise ParseError("This JSON is nested too deeply.") from error
        except (ValueError, LookupError) as error:  # of a charset that is none of text
            raise ParseError(f"JSON parse error - {error}") from error
        if where is not None:
            raise InvalidInput({where or "__all__": UNSTORABLE})
        request = (parser_context or {}).get("request")
        if request and not is_suspicious:
            request.json_text = text
        return data


def _is_suspicious(text: str) -> bool:
    """Two looks that cost nothing settle it for most."""
    return ("\\u" in text or not text.isascii()) and _SUSPICIOUS.search(text) is not None


def _storable_number(text: str) -> float:
    """A number with a point or an exponent, unless a database could not hold it or would hold another."""
    number = float(text)
    lost = math.isinf(number) or (not number and text.lower().partition("e")[0].strip("-0."))
    if lost or len(text) > LONGEST_NUMBER:
        raise ValueError(f"{text[:20]} is too large, too small or too long a number")
    return number
