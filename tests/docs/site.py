"""The documentation, built in this process as `make docs` does, into a private folder."""

import re
from pathlib import Path

from markdown.extensions.toc import slugify
from mkdocs.commands.build import build
from mkdocs.config import load_config

from tests.support.control_plane import ROOT

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
HEAD = re.compile(r"^#+ (.+)$", re.MULTILINE)


def build_site(target: Path, docs: Path = ROOT / "docs", **changes: object) -> Path:
    """Build the site; raise mkdocs.exceptions.Abort on any warning, such as a broken link."""
    config = load_config(
        str(ROOT / "mkdocs.yml"), docs_dir=str(docs), site_dir=str(target), strict=True, **changes
    )
    build(config)
    return target


def links_of(page: Path) -> list[str]:
    """Return the relative links of a Markdown page."""
    found = LINK.findall(CODE.sub("", page.read_text()))
    return [link for link in found if not link.startswith(("http:", "https:"))]


def is_broken(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    if not target.exists():
        return True
    return bool(anchor) and anchor not in {slugify(head, "-") for head in HEAD.findall(target.read_text())}
