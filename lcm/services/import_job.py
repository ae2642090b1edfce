"""Job that imports many topologies, one file per step."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime

from django.utils.translation import gettext as _

from lcm.cml.topology.parser import Topology
from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput
from lcm.domain.storable_text import remove_unstorable
from lcm.models import DefinitionStatus, Job
from lcm.services.definitions import import_definition, read_topology
from lcm.services.jobs import JobStep, start_job

JOB_KIND = "import-definitions"
MAX_FILES = 50
MAX_TOTAL_BYTES = 5 * 1024 * 1024


def start_import(*, files: Sequence[tuple[str, bytes]], actor: Actor, now: datetime) -> Job:
    """Start a job that imports each file as a draft named by its title."""
    if not files:
        raise InvalidInput({"topologies": _("Choose at least one file.")})
    if len(files) > MAX_FILES or sum(len(content) for name, content in files) > MAX_TOTAL_BYTES:
        raise InvalidInput(
            {
                "topologies": _("Choose at most %(count)s files with at most 5 MB in total.")
                % {"count": MAX_FILES}
            }
        )
    # Keep the bytes: the step of each file reports invalid encodings, like the import of a single file.
    stored = [
        {"name": remove_unstorable(name), "content": b64encode(content).decode()} for name, content in files
    ]
    return start_job(
        kind=JOB_KIND,
        title=f"Import {len(files):,} {'definition' if len(files) == 1 else 'definitions'}",
        arguments={"files": stored},
        total=len(stored),
        actor=actor,
        now=now,
    )


def import_step(job: Job, now: datetime) -> JobStep:
    """Import the next file. A file whose definition exists already is rejected."""
    files: Sequence[Mapping[str, str]] = job.arguments["files"]
    position = job.cursor.get("at", 0)
    if position >= len(files):
        return JobStep(result=_result_text(job.done, job.rejected))
    cursor = {"at": position + 1}
    actor = Actor(label=job.actor, user_id=job.user_id)
    content = b64decode(files[position]["content"])
    try:
        name = suggested_name(read_topology(text=content)) or suggested_text(files[position]["name"])
        import_definition(topology=content, name=name, status=DefinitionStatus.DRAFT, actor=actor, now=now)
    except InvalidInput as error:
        problems = "; ".join(text for texts in error.fields.values() for text in texts)
        return JobStep(
            rejected=1, cursor=cursor, more=True, notes=[f"{files[position]['name']}: {problems}"[:300]]
        )
    return JobStep(done=1, cursor=cursor, more=True)


def _result_text(done: int, rejected: int) -> str:
    """Return the result in English, because it is stored."""
    imported = "1 definition imported as draft." if done == 1 else f"{done:,} definitions imported as drafts."
    if not rejected:
        return imported
    return f"{imported} {'1 item' if rejected == 1 else f'{rejected:,} items'} rejected."


def suggested_name(topology: Topology) -> str:
    """Return a definition name derived from the topology's title; empty if it has no title."""
    return suggested_text(topology.title)


def suggested_text(title: str) -> str:
    plain = re.sub(r"\.ya?ml$", "", title.lower())
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:63].strip("-")
