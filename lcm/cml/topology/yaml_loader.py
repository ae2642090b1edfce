"""Loading of untrusted YAML in one pass, with size limits."""

import yaml

from lcm.cml.topology.document_builder import DocumentBuilder
from lcm.cml.topology.errors import Problems

MAX_BYTES = 2 * 1024 * 1024

# The C loader is about twenty times faster but optional; both produce the same events.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_mapping(text: str | bytes, problems: Problems) -> dict[str, object]:
    """Return the mapping in the text. Raises TopologyError for anything else."""
    builder = DocumentBuilder(problems)
    try:
        for event in yaml.parse(_decoded(text, problems), Loader=_Loader):
            builder.feed(event)
    except yaml.YAMLError as error:
        problems.fatal(f"The topology is not valid YAML: {_reason(error)}.")
    if builder.root is None:
        problems.fatal("The topology is empty.")
    if not isinstance(builder.root, dict):
        problems.fatal("A topology must be a mapping with the keys lab, nodes and links.")
    return builder.root


def _decoded(text: str | bytes, problems: Problems) -> str:
    """Return the text if it is UTF-8 and not too long."""
    try:
        data = text.encode() if isinstance(text, str) else text
        if len(data) > MAX_BYTES:
            limit, size = MAX_BYTES // 1024**2, len(data) / 1024**2
            problems.fatal(f"The topology must be at most {limit} MB; it has {size:.1f} MB.")
        return data.decode("utf-8")
    except UnicodeError:
        problems.fatal("The topology is not UTF-8 text. Save it as UTF-8 and try again.")


def _reason(error: yaml.YAMLError) -> str:
    """Return the parser's message with the line, without an excerpt of the file."""
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
    return f"line {mark.line + 1}, {reason}" if mark else str(reason)
