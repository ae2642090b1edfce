"""People in a CSV file: reading, checking and creating them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import StringIO

from django.db.models import Q
from django.utils.translation import gettext as _

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput
from lcm.domain.roles import GROUPS, Role
from lcm.models import Project
from lcm.services.new_people import FIELDS, NewPerson, create_people, people_problems
from lcm.services.password_links import PasswordLink

COLUMNS = (*FIELDS, "role", "projects")
MAX_PEOPLE = 1000
MAX_BYTES = 1024 * 1024
_ROLES: dict[str, Role] = {
    "": Role.NONE,
    "none": Role.NONE,
    **{name.lower(): role for name, role in GROUPS.items()},
}


@dataclass(frozen=True)
class ImportRow:
    """A line of the file: the person it describes and what is wrong with it."""

    line: int
    person: NewPerson
    role: str
    projects: str
    problems: list[str]


def read_people(*, content: str | bytes) -> list[ImportRow]:
    """Read and check a CSV file with a header; raise InvalidInput if it is no such file."""
    lines = _lines(content)
    projects = _projects(_split(line["projects"]) for number, line in lines)
    drafts = [_draft(number, line, projects) for number, line in lines]
    found = people_problems([draft.person for draft in drafts])
    for draft, problems in zip(drafts, found, strict=True):
        draft.problems[:0] = [f"{name}: {text}" for name, texts in problems.items() for text in texts]
    return drafts


def import_people(*, content: str | bytes, actor: Actor, now: datetime) -> list[PasswordLink]:
    """Create all people of a file in one transaction; a file with an error changes nothing."""
    rows = read_people(content=content)
    if wrong := [str(row.line) for row in rows if row.problems]:
        text = _("Correct these lines first: %(lines)s.") % {"lines": ", ".join(wrong[:10])}
        raise InvalidInput({"__all__": text})
    return create_people(people=[row.person for row in rows], actor=actor, now=now)


def _lines(content: str | bytes) -> list[tuple[int, dict[str, str]]]:
    """Return the lines with their numbers in the file; separators are commas, semicolons or tabs."""
    if len(content) > MAX_BYTES:
        raise InvalidInput({"file": _("The file is larger than 1 MB.")})
    try:
        text = content.decode("utf-8-sig") if isinstance(content, bytes) else content.removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise _no_text() from error
    if "\0" in text:
        raise _no_text()
    header = text.partition("\n")[0]
    reader = csv.DictReader(
        StringIO(text), delimiter=max(",;\t", key=header.count), restkey="", restval="", strict=True
    )
    try:
        names = [name.strip().lower() for name in reader.fieldnames or ()]
        reader.fieldnames = names
        _check_header(names)
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise InvalidInput({"file": _("Line %(line)s is not CSV.") % {"line": reader.line_num}}) from error
    return _checked(rows)


def _no_text() -> InvalidInput:
    return InvalidInput({"file": _("The file is not UTF-8 text. Save it as “CSV UTF-8”.")})


def _check_header(names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in COLUMNS]
    if "username" not in names or unknown or len(set(names)) < len(names):
        raise InvalidInput(
            {
                "file": _("The first line must name the columns: username, and any of %(others)s.")
                % {"others": ", ".join(COLUMNS[1:])}
            }
        )


def _checked(rows: list[tuple[int, dict[str, str]]]) -> list[tuple[int, dict[str, str]]]:
    if not rows:
        raise InvalidInput({"file": _("The file has no line below the column names.")})
    if len(rows) > MAX_PEOPLE:
        raise InvalidInput(
            {"file": _("The file has more than %(count)s people.") % {"count": f"{MAX_PEOPLE:,}"}}
        )
    for number, row in rows:
        if "" in row:
            raise InvalidInput(
                {"file": _("Line %(line)s has more values than there are columns.") % {"line": number}}
            )
    return [(number, {name: row.get(name, "").strip() for name in COLUMNS}) for number, row in rows]


def _split(text: str) -> list[str]:
    """Return the projects of a cell as `domain/project` or `project`."""
    paths = ("/".join(part.strip() for part in path.split("/")) for path in text.replace(";", "|").split("|"))
    return list(dict.fromkeys(path for path in paths if path))


def _projects(cells: Iterable[list[str]]) -> dict[str, list[Project]]:
    """Return the projects with these names, by `domain/project` and by `project`; one query for all."""
    names = {path.rpartition("/")[2] for cell in cells for path in cell}
    found: dict[str, list[Project]] = {}
    for project in Project.objects.select_related("domain").filter(Q(name__in=names)):
        found.setdefault(project.name, []).append(project)
        found[f"{project.domain.name}/{project.name}"] = [project]
    return found


def _draft(number: int, line: dict[str, str], known: dict[str, list[Project]]) -> ImportRow:
    problems: list[str] = []
    role = _ROLES.get(line["role"].lower())
    if role is None:
        problems.append(
            _("“%(role)s” is not a role; use %(roles)s or leave it empty.")
            % {"role": line["role"], "roles": ", ".join(GROUPS)}
        )
    projects: dict[str, Project] = {}
    for path in _split(line["projects"]):
        matching = known.get(path, [])
        if len(matching) == 1:
            projects[str(matching[0].pk)] = matching[0]
        elif matching:
            problems.append(
                _("Several domains have a project “%(name)s”; write domain/project.") % {"name": path}
            )
        else:
            problems.append(_("There is no project “%(name)s”.") % {"name": path})
    person = NewPerson(
        **{name: line[name] for name in FIELDS}, role=role or Role.NONE, projects=tuple(projects.values())
    )
    return ImportRow(number, person, line["role"], line["projects"], problems)
