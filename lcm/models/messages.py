"""Messages of plain Python in the language of the request."""

from __future__ import annotations

from django.utils import translation
from django.utils.functional import lazy

from lcm.domain.messages import Message


def translated(message: Message) -> str:
    return message.translated(translation)


# For labels that are created before the language is known.
lazy_text = lazy(translated, str)
