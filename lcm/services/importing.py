"""Importing many topologies as a job: a file a step."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from lcm.actors import Actor
from lcm.cml.topology import Topology
from lcm.errors import InvalidInput
from lcm.models import DefinitionStatus, Job
from lcm.services.definitions import import_definition, read_topology
from lcm.services.jobs import Step, start_job

KIND = "import-definitions"
MOST_FILES = 50
MOST_BYTES = 5 * 1024 * 1024


def start_import(*, files: Mapping[str, bytes], actor: Actor, now: datetime) -> Job:
    """Each file becomes a draft, named by its title; what cannot be read is told on the job's page."""
    if not files:
        raise InvalidInput({"topologies": "Choose at least one file."})
    if len(files) > MOST_FILES or sum(map(len, files.values())) > MOST_BYTES:
        raise InvalidInput({"topologies": f"At most {MOST_FILES} files of 5 MB together."})
    texts = [{"name": name, "text": text.decode(errors="replace")} for name, text in files.items()]
    title = f"Import {len(files):,} {'definition' if len(files) == 1 else 'definitions'}"
    return start_job(
        kind=KIND, title=title, arguments={"files": texts}, total=len(texts), actor=actor, now=now
    )


def import_step(job: Job, now: datetime) -> Step:
    """The next file. One that is there already, with the same name, is refused and not imported twice."""
    files: Sequence[Mapping[str, str]] = job.arguments["files"]
    at = job.cursor.get("at", 0)
    if at >= len(files):
        rest = f"; {job.refused:,} could not be" if job.refused else ""
        noun = "definition" if job.done == 1 else "definitions"
        return Step(result=f"{job.done:,} {noun} imported as drafts{rest}.")
    cursor = {"at": at + 1}
    actor = Actor(label=job.actor, user_id=job.user_id)
    try:
        name = suggested_name(read_topology(text=files[at]["text"])) or suggested_text(files[at]["name"])
        import_definition(
            topology=files[at]["text"], name=name, status=DefinitionStatus.DRAFT, actor=actor, now=now
        )
    except InvalidInput as error:
        why = "; ".join(text for texts in error.fields.values() for text in texts)
        return Step(refused=1, cursor=cursor, more=True, notes=[f"{files[at]['name']}: {why}"[:300]])
    return Step(done=1, cursor=cursor, more=True)


def suggested_name(topology: Topology) -> str:
    """A name made of the topology's title; empty when it has none."""
    return suggested_text(topology.title)


def suggested_text(title: str) -> str:
    plain = re.sub(r"\.ya?ml$", "", title.lower())
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:63].strip("-")
