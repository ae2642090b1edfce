"""The commands of a documentation page, run unchanged."""

import re
import subprocess
from pathlib import Path

from tests.support.control_plane import ROOT


def commands_of(page: str, section: str) -> list[str]:
    """Return the blocks of shell commands in a section of a page, in order."""
    text = (ROOT / "docs" / page).read_text()
    part = re.search(rf"^## {section}$(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert part, f"{page} has no section {section}"
    return re.findall(r"^```sh\n(.*?)^```$", part[1], re.DOTALL | re.MULTILINE)


def run(commands: str, folder: Path, env: dict[str, str]) -> str:
    """Run the commands and return their output; fail at the first error."""
    result = subprocess.run(["sh", "-ec", commands], cwd=folder, env=env, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout
