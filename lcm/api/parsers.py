"""JSON parser for request bodies."""

from __future__ import annotations

import math
import re
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser
from rest_framework.utils import json

from lcm.domain.errors import InvalidInput
from lcm.domain.storable_text import UNSTORABLE, find_unstorable

# Escapes and characters that the database cannot store; without a match, no value needs checking.
_SUSPICIOUS = re.compile(r"\\u(?:0000|[dD][89a-fA-F])|[\ud800-\udfff]")
LONGEST_NUMBER = 400  # characters


class JsonParser(JSONParser):
    """JSON of limited depth, with text and numbers that the database can store.

    The request keeps the text as `json_text`, so that it can be stored verbatim. Suspicious text is not kept,
    because only the last value of a duplicate key was checked.
    """

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        encoding = (parser_context or {}).get("encoding", settings.DEFAULT_CHARSET)
        try:
            text = stream.read().decode(encoding)
            data = json.loads(text, parse_constant=json.strict_constant, parse_float=_storable_number)
            is_suspicious = _is_suspicious(text)
            where = find_unstorable(data) if is_suspicious else None
        except RecursionError as error:
            raise ParseError(_("This JSON is nested too deeply.")) from error
        except (ValueError, LookupError) as error:  # LookupError: the charset is not a text encoding
            raise ParseError(_("The body is not valid JSON: %(error)s") % {"error": error}) from error
        if where is not None:
            raise InvalidInput({where or "__all__": UNSTORABLE})
        request = (parser_context or {}).get("request")
        if request and not is_suspicious:
            request.json_text = text
        return data


def _is_suspicious(text: str) -> bool:
    """Return whether the text may be unstorable; two cheap checks settle most cases."""
    return ("\\u" in text or not text.isascii()) and _SUSPICIOUS.search(text) is not None


def _storable_number(text: str) -> float:
    """Parse a decimal number; reject numbers that the database cannot store exactly."""
    number = float(text)
    lost = math.isinf(number) or (not number and text.lower().partition("e")[0].strip("-0."))
    if lost or len(text) > LONGEST_NUMBER:
        raise ValueError(f"{text[:20]} is out of range or has too many digits")
    return number
