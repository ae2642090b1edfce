"""`python -m tests.support.message_catalog`: write the texts of code and templates into the catalog."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.apt import apt_install
from tests.support.control_plane import ROOT
from tests.support.errors import Missing

CATALOG = Path("lcm/locale/en/LC_MESSAGES/django.po")
FOLDERS_WITHOUT_TEXTS = ("tests", "docs", "deploy", "var", "build", "static")


def gettext_folder() -> str:
    """Return the folder of GNU gettext's programs; raise Missing if root cannot install them."""
    found = shutil.which("xgettext") or (apt_install("gettext") and shutil.which("xgettext"))
    if not found:
        raise Missing("GNU gettext: install the package gettext")
    return str(Path(found).parent)


def update_catalog(root: Path) -> None:
    """Write the English catalog of the project in `root`."""
    gettext_folder()
    (root / CATALOG.parent).mkdir(parents=True, exist_ok=True)
    options = ["--locale=en", "--no-obsolete", "--no-wrap", "--add-location=file", "--verbosity=0"]
    ignored = [f"--ignore={folder}/*" for folder in FOLDERS_WITHOUT_TEXTS]
    command = [sys.executable, "manage.py", "makemessages", *options, *ignored]
    subprocess.run(command, cwd=root, env={**os.environ, "DEBUG": "true"}, check=True)
    # Dates and places of people would change the file without a change of texts.
    text = (root / CATALOG).read_text()
    (root / CATALOG).write_text(re.sub(r'^"(POT-Creation|PO-Revision)-Date:.*\n', "", text, flags=re.M))


if __name__ == "__main__":
    try:
        update_catalog(ROOT)
    except Missing as error:
        sys.exit(str(error))
    print(f"Wrote {CATALOG}")
