"""Importing many topologies as a job: a file a step."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime

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
    """Each file becomes a draft, named by its title; what cannot be read is told on the job's page."""
    if not files:
        raise InvalidInput({"topologies": "Choose at least one file."})
    if len(files) > MAX_FILES or sum(len(content) for _, content in files) > MAX_TOTAL_BYTES:
        raise InvalidInput({"topologies": f"At most {MAX_FILES} files of 5 MB together."})
    # As they came: whether a file is text is for its step to say, as the import of one does.
    kept = [
        {"name": remove_unstorable(name), "content": b64encode(content).decode()} for name, content in files
    ]
    title = f"Import {len(files):,} {'definition' if len(files) == 1 else 'definitions'}"
    return start_job(
        kind=JOB_KIND, title=title, arguments={"files": kept}, total=len(kept), actor=actor, now=now
    )


def import_step(job: Job, now: datetime) -> JobStep:
    """The next file. One that is there already, with the same name, is refused and not imported twice."""
    files: Sequence[Mapping[str, str]] = job.arguments["files"]
    at = job.cursor.get("at", 0)
    if at >= len(files):
        return JobStep(result=_told(job.done, job.refused))
    cursor = {"at": at + 1}
    actor = Actor(label=job.actor, user_id=job.user_id)
    content = b64decode(files[at]["content"])
    try:
        name = suggested_name(read_topology(text=content)) or suggested_text(files[at]["name"])
        import_definition(topology=content, name=name, status=DefinitionStatus.DRAFT, actor=actor, now=now)
    except InvalidInput as error:
        why = "; ".join(text for texts in error.fields.values() for text in texts)
        return JobStep(refused=1, cursor=cursor, more=True, notes=[f"{files[at]['name']}: {why}"[:300]])
    return JobStep(done=1, cursor=cursor, more=True)


def _told(done: int, refused: int) -> str:
    rest = f"; {refused:,} {'file was' if refused == 1 else 'files were'} refused" if refused else ""
    if not done:
        return f"No definition was imported{rest}."
    return f"{done:,} {'definition was' if done == 1 else 'definitions were'} imported as drafts{rest}."


def suggested_name(topology: Topology) -> str:
    """A name made of the topology's title; empty when it has none."""
    return suggested_text(topology.title)


def suggested_text(title: str) -> str:
    plain = re.sub(r"\.ya?ml$", "", title.lower())
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:63].strip("-")
