"""Building a document from YAML events without recursion, with a limit on everything that can grow."""

from dataclasses import dataclass, field

import yaml

from lcm.cml.topology.errors import Problems
from lcm.cml.topology.yaml_scalars import is_storable, read_plain

MAX_DEPTH = 32
MAX_ITEMS = 250_000
MAX_ALIASES = 50
MAX_KEY_SHOWN = 60


@dataclass
class _Frame:
    """A list or mapping that is still open."""

    container: list[object] | dict[str, object]
    anchor: str | None
    items_before: int
    key: str | None = None
    duplicate: bool = False


@dataclass
class _Anchored:
    """An anchored value, and how many items an alias to it adds."""

    value: object
    items: int


@dataclass
class DocumentBuilder:
    """Consumes the events of one document; `root` is the result."""

    problems: Problems
    root: object = None
    documents: int = 0
    items: int = 0
    aliases: int = 0
    stack: list[_Frame] = field(default_factory=list)
    anchors: dict[str, _Anchored] = field(default_factory=dict)

    def feed(self, event: yaml.Event) -> None:
        """Process the next event."""
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close()
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                self.problems.fatal("The file has more than one YAML document. Keep only one.")

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        self._check_tag(event)
        self._count(1)
        if not is_storable(event.value):
            self.problems.fatal(
                f"Line {_line(event)} has a character that cannot be stored (NUL or an unpaired surrogate)."
            )
        if self._expects_key():
            self._key(event)
            return
        value = read_plain(event.value) if event.implicit[0] else event.value
        if event.anchor:
            self.anchors[event.anchor] = _Anchored(value, 1)
        self._put(value)

    def _open(self, event: yaml.CollectionStartEvent) -> None:
        self._check_tag(event)
        self._reject_key(event)
        if len(self.stack) >= MAX_DEPTH:
            self.problems.fatal(
                f"Line {_line(event)} is nested too deeply: at most {MAX_DEPTH} levels are allowed."
            )
        before = self.items
        self._count(1)
        container: list[object] | dict[str, object] = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._put(container)
        self.stack.append(_Frame(container, event.anchor, before))

    def _close(self) -> None:
        frame = self.stack.pop()
        if frame.anchor:
            self.anchors[frame.anchor] = _Anchored(frame.container, self.items - frame.items_before)
        self._done()

    def _alias(self, event: yaml.AliasEvent) -> None:
        self._reject_key(event)
        self.aliases += 1
        if self.aliases > MAX_ALIASES:
            self.problems.fatal(
                f"The file has more than {MAX_ALIASES} aliases (*name). Write the values out."
            )
        name = event.anchor or ""
        anchored = self.anchors.get(name)
        if anchored is None:
            self.problems.fatal(
                f"Line {_line(event)}: the alias *{name[:MAX_KEY_SHOWN]} is not defined before it is used."
            )
        self._count(anchored.items)
        self._put(anchored.value)
        self._done()

    def _put(self, value: object) -> None:
        """Add a value to the open collection, or make it the document."""
        if not self.stack:
            self.root = value
            return
        frame = self.stack[-1]
        if isinstance(frame.container, list):
            frame.container.append(value)
        elif frame.key is not None and not frame.duplicate:
            frame.container[frame.key] = value
        if not isinstance(value, list | dict):
            self._done()

    def _done(self) -> None:
        """Expect a key next: the value of the current key is complete."""
        if self.stack:
            self.stack[-1].key = None

    def _key(self, event: yaml.ScalarEvent) -> None:
        frame = self.stack[-1]
        if event.value == "<<" and event.implicit[0]:
            self.problems.fatal(
                f"Line {_line(event)}: merge keys (<<) are not allowed. Write the values out."
            )
        frame.duplicate = event.value in frame.container
        frame.key = event.value
        if frame.duplicate:
            self.problems.add(self._path(), f"Duplicate key (second occurrence on line {_line(event)}).")

    def _expects_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].container, dict) and self.stack[-1].key is None

    def _reject_key(self, event: yaml.Event) -> None:
        if self._expects_key():
            self.problems.fatal(f"Line {_line(event)}: a key must be text.")

    def _check_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
        if event.tag is not None:
            self.problems.fatal(
                f"Line {_line(event)}: YAML tags such as {event.tag[:MAX_KEY_SHOWN]} are not allowed."
            )

    def _count(self, items: int) -> None:
        self.items += items
        if self.items > MAX_ITEMS:
            self.problems.fatal(f"The topology has more than {MAX_ITEMS:,} values when written out.")

    def _path(self) -> str:
        """Return the current path, such as nodes[2].label."""
        path = ""
        for frame in self.stack:
            if isinstance(frame.container, list):
                path += f"[{len(frame.container) - 1}]"
            else:
                path += f".{frame.key}"[:MAX_KEY_SHOWN]
        return path.removeprefix(".")


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0
