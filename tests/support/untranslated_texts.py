"""`python -m tests.support.untranslated_texts [path …]`: list texts of pages and errors without gettext."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path

from tests.support.control_plane import ROOT

APPS = ("lcm", "scheduling", "observations", "fairshare")
# Folders of modules whose sentences people read. In services and API only errors are.
PAGE_FOLDERS = {"pages", "web", "templatetags"}
# Health checks and log messages, which programs read.
SERVER_FOLDER = Path("lcm/web/server")
ERROR_FOLDERS = {"services", "api"}
GETTEXT = {"_", "gettext", "gettext_lazy", "ngettext", "ngettext_lazy", "pgettext", "npgettext"}
ERRORS = {
    *("InvalidInput", "StateConflict", "InUse", "NotFound", "Gone", "Unavailable", "StalePreview"),
    *("Unprocessable", "LcmError", "ValidationError"),
}
# Calls whose texts only developers or programs read.
DEVELOPER_CALLS = {
    *("TypeError", "ValueError", "LookupError", "KeyError", "RuntimeError", "AssertionError"),
    *("compile", "execute", "info", "warning", "exception"),
    *("format_html", "format_html_join", "mark_safe"),
}
# Arguments with names of CSS classes or HTTP headers.
CODE_ARGUMENTS = {"attrs", "css", "headers"}
# Parts of HTML, SQL, HTTP and CSS.
_CODE = re.compile(r"<|SELECT|FOREIGN KEY|; charset=|^(end|mid) {}$")
# Units and names are the same in every language.
NOT_TRANSLATED = {
    *("LCM", "Lab Cloud Manager", "CML", "API", "HTTP", "Prometheus"),
    *("CPU", "GPU", "GB", "MB", "CSV", "JSON", "YAML", "UTC", "min", "ms"),
}
TEXT_ATTRIBUTES = (
    "title",
    "placeholder",
    "aria-label",
    "aria-description",
    "alt",
    "data-label",
    "data-message",
)
CODE_TAGS = ("script", "style", "kbd", "code", "pre")

_COMMENT = re.compile(r"{#.*?#}|{% comment .*?{% endcomment %}|{% block bodyclass %}.*?{% endblock", re.S)
_TRANSLATED = re.compile(r"{% blocktranslate\b.*?{% endblocktranslate %}", re.S)
_TEMPLATE_CODE = re.compile(r"{%.*?%}|{{.*?}}", re.S)
_WORD = re.compile(r"[^\W\d_]{2}")
_SENTENCE = re.compile(r"[A-Za-z’]{2,}[,.:;]? [A-Za-z“(]|[A-Za-z]{2,} {}|{} [a-z]{2,}")


class _Texts(HTMLParser):
    """Collects the text nodes and text attributes of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._code_tags = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._code_tags += tag in CODE_TAGS
        self.found += [value for name, value in attrs if name in TEXT_ATTRIBUTES and value]

    def handle_endtag(self, tag: str) -> None:
        self._code_tags -= tag in CODE_TAGS

    def handle_data(self, data: str) -> None:
        if not self._code_tags:
            self.found.append(data)


def template_texts(template: str) -> list[str]:
    """Return the texts of a template that no translate tag contains."""
    parser = _Texts()
    parser.feed(_TEMPLATE_CODE.sub("\0", _TRANSLATED.sub("\0", _COMMENT.sub("", template))))
    texts = [part.strip() for text in parser.found for part in re.split(r"[\0·]|&\w+;", text)]
    return [text for text in texts if _WORD.search(text) and text.strip(" .,:()%/") not in NOT_TRANSLATED]


def sentences(node: ast.AST) -> Iterator[ast.expr]:
    """Yield texts of two or more words outside of docstrings, gettext and calls for developers."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.Call) and _called(node) in GETTEXT | DEVELOPER_CALLS:
        return
    if isinstance(node, ast.keyword) and node.arg in CODE_ARGUMENTS:
        return
    if isinstance(node, ast.Constant | ast.JoinedStr):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts)
        if _SENTENCE.search(text) and not _CODE.search(text):
            yield node
        return
    # Keys of a dictionary are names.
    children = node.values if isinstance(node, ast.Dict) else ast.iter_child_nodes(node)
    for child in children:
        yield from sentences(child)


def error_sentences(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the untranslated sentences in arguments of errors."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) in ERRORS:
            for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                yield from sentences(argument)


def _called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def template_findings(paths: Iterable[Path]) -> list[str]:
    return [f"{path}: {text}" for path in paths for text in template_texts((ROOT / path).read_text())]


def module_findings(paths: Iterable[Path]) -> list[str]:
    return [finding for path in paths for finding in _findings_of(path)]


def _findings_of(path: Path) -> Iterator[str]:
    text = (ROOT / path).read_text()
    lines, folders = text.splitlines(), set(path.parts)
    find = sentences if folders & PAGE_FOLDERS else error_sentences
    for node in find(ast.parse(text)):
        yield f"{path}:{node.lineno}: {lines[node.lineno - 1].strip()}"


def templates() -> list[Path]:
    return sorted(path.relative_to(ROOT) for path in (ROOT / "templates").rglob("*.html"))


def modules() -> list[Path]:
    found = [path.relative_to(ROOT) for app in APPS for path in (ROOT / app).rglob("*.py")]
    return sorted(
        path
        for path in found
        if set(path.parts) & (PAGE_FOLDERS | ERROR_FOLDERS) and SERVER_FOLDER not in path.parents
    )


def main(prefixes: Sequence[str]) -> int:
    findings = [*template_findings(templates()), *module_findings(modules())]
    shown = [each for each in findings if not prefixes or each.startswith(tuple(prefixes))]
    print("\n".join([*shown, f"{len(shown)} texts"]))
    return 1 if shown else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
