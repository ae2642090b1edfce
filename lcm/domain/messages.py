"""Texts that plain Python returns for people: English in storage, logs and the API, translated on pages.

`gettext` and `ngettext` have the names that `make messages` looks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from gettext import NullTranslations
from typing import Protocol


class Translations(Protocol):
    """Translations into one language. `django.utils.translation` is one, for the current language."""

    def gettext(self, text: str, /) -> str: ...

    def ngettext(self, one: str, many: str, count: int, /) -> str: ...


ENGLISH = NullTranslations()


@dataclass(frozen=True)
class Message:
    """A text and the values of its placeholders, which may be messages too; `str` returns it in English."""

    text: str
    values: Mapping[str, object]
    plural: str = ""
    count: int = 0

    def __str__(self) -> str:
        return self.translated(ENGLISH)

    def translated(self, translations: Translations) -> str:
        values = {
            name: value.translated(translations) if isinstance(value, Message) else value
            for name, value in self.values.items()
        }
        if self.plural:
            return translations.ngettext(self.text, self.plural, self.count) % values
        return translations.gettext(self.text) % values


def gettext(text: str, /, **values: object) -> Message:
    return Message(text, values)


def ngettext(one: str, many: str, count: int, /, **values: object) -> Message:
    """Return the form for a count, which is the value of `%(count)s`."""
    return Message(one, {"count": count, **values}, many, count)
