"""Texts of plain Python, in English and translated."""

from lcm.domain.messages import gettext, ngettext


class InBrackets:
    """A language in which each text is its English text in brackets."""

    def gettext(self, text: str, /) -> str:
        return f"[{text}]"

    def ngettext(self, one: str, many: str, count: int, /) -> str:
        return f"[{one if count == 1 else many}]"


def test_a_message_is_english_as_text():
    message = gettext("%(resource)s: %(share)s %% used", resource=gettext("Memory"), share=40)
    assert str(message) == "Memory: 40 % used"
    assert f"{message}." == "Memory: 40 % used."


def test_a_translation_includes_the_values_that_are_messages():
    message = gettext("%(resource)s: %(amount)s", resource=gettext("Memory"), amount="4 GB")
    assert message.translated(InBrackets()) == "[[Memory]: 4 GB]"


def test_the_count_selects_the_form():
    texts = [str(ngettext("%(count)s core", "%(count)s cores", count)) for count in (1, 2)]
    assert texts == ["1 core", "2 cores"]
    half = ngettext("%(amount)s core", "%(amount)s cores", 2, amount="0.5")
    assert half.translated(InBrackets()) == "[0.5 cores]"
