"""A pool's scheduler document: its actions, and its plugins in order with their arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import yaml

from lcm.domain.validation import suggestion
from scheduling.options import InvalidOptions, read_options
from scheduling.placement.framework.plugin import Plugin, plugins, unknown_plugin

if TYPE_CHECKING:
    from scheduling.placement.framework.session import SchedulingSession

ACTIONS = ("allocate", "reclaim", "preempt")
# Checks that a commit repeats: a plan made without them would be rejected and repeated forever.
MANDATORY_PLUGINS = ("cordon", "leases", "ports", "resources")
MAX_CHARACTERS = 20_000
MAX_DEPTH = 20

DEFAULT_CONFIGURATION = """\
# Actions of a tick, in this order.
# Reclaim and preempt stop running labs: off unless listed here.
actions: [allocate]

# Plugins, in this order.
# Job orders before fairshare make bands; later ones sort the jobs of a user.
plugins:
  - name: cordon
  - name: system
  - name: labels
  - name: leases
  - name: ports
  - name: resources
  - name: timeslot
  - name: quota
  - name: spot
  - name: priority
  - name: fairshare
  - name: submit_order
  - name: binpack
  - name: gpupack
"""


class InvalidConfiguration(Exception):
    """Problems of a document: a sentence each, with the line."""

    def __init__(self, problems: Sequence[tuple[int, str]]) -> None:
        self.problems = sorted(problems)
        self.sentences = [f"Line {line}: {text}" for line, text in self.problems]
        super().__init__(" ".join(self.sentences))


@dataclass(frozen=True)
class PluginChoice:
    """A plugin by name, with its arguments."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Configuration:
    """A valid document."""

    actions: tuple[str, ...]
    choices: tuple[PluginChoice, ...]

    def plugins(self) -> list[Plugin]:
        """Return new instances of the configured plugins."""
        return [_created(choice) for choice in self.choices]

    def plugins_for_cycle(self) -> list[Plugin]:
        """Return new plugins for a cycle: the mandatory ones first, then the configured ones."""
        chosen, known = self.plugins(), plugins()
        named = {plugin.name for plugin in chosen}
        return [*(known[name]() for name in MANDATORY_PLUGINS if name not in named), *chosen]

    def has(self, name: str) -> bool:
        return any(choice.name == name for choice in self.choices)


class FailedPlugin(Plugin):
    """Placeholder for a plugin that could not be created; it fails under that plugin's name when opened."""

    error: ClassVar[Exception]

    def on_session_open(self, ssn: SchedulingSession) -> None:
        raise self.error


def _created(choice: PluginChoice) -> Plugin:
    """Return the plugin with its arguments, or a placeholder if creating it fails."""
    try:
        return read_options(plugins()[choice.name], choice.arguments)
    except Exception as error:
        failed: type[Plugin] = type(choice.name, (FailedPlugin,), {"name": choice.name, "error": error})
        return failed()


def read_configuration(text: str) -> Configuration:
    """Return the document as a configuration; the default configuration if it is empty."""
    return _read(text if text.strip() else DEFAULT_CONFIGURATION, tuple(plugins()))


@lru_cache(maxsize=256)
def _read(text: str, known: tuple[str, ...]) -> Configuration:
    """Parse a document, cached: parsing YAML takes longer than an idle tick. `known` names the plugins."""
    document = _ConfigurationDocument(text)
    actions = document.actions()
    choices = document.choices()
    if document.problems:
        raise InvalidConfiguration(document.problems)
    return Configuration(tuple(actions), tuple(choices))


class _ConfigurationDocument:
    """Parses the sections of a document and collects problems with their lines."""

    def __init__(self, text: str) -> None:
        self.problems: list[tuple[int, str]] = []
        self.top: dict[str, yaml.Node] = self._keys(
            self._composed(text), ("actions", "plugins"), "The document"
        )
        for name in ("actions", "plugins"):
            if name not in self.top and not self.problems:
                self.problems.append((1, f"“{name}” is missing."))

    def actions(self) -> list[str]:
        names: list[str] = []
        for node in self._items("actions"):
            name = str(_plain(node))
            if name not in ACTIONS:
                self._wrong(node, f"There is no action “{name}”{suggestion(name, ACTIONS)}")
            elif name in names:
                self._wrong(node, f"The action “{name}” is listed twice.")
            names.append(name)
        if "actions" in self.top and names[:1] != ["allocate"] and not self.problems:
            self._wrong(self.top["actions"], "“allocate” must be the first action.")
        return names

    def choices(self) -> list[PluginChoice]:
        choices: list[PluginChoice] = []
        owners: dict[str, str] = {}
        for node in self._items("plugins"):
            choice = self._choice(node)
            if choice is None:
                continue
            if any(earlier.name == choice.name for earlier in choices):
                self._wrong(node, f"The plugin “{choice.name}” is listed twice.")
            for point in plugins()[choice.name].owns:
                if point in owners:
                    self._wrong(
                        node,
                        f"“{owners[point]}” and “{choice.name}” both implement the {point}; only one can.",
                    )
                owners.setdefault(point, choice.name)
            choices.append(choice)
        return choices

    def _choice(self, node: yaml.Node) -> PluginChoice | None:
        name_node, arguments_node = node, None
        if not isinstance(node, yaml.ScalarNode):
            keys = self._keys(node, ("name", "arguments"), "A plugin")
            if "name" not in keys:
                self._wrong(node, "A plugin needs a name.")
                return None
            name_node, arguments_node = keys["name"], keys.get("arguments")
        name = str(_plain(name_node))
        kind = plugins().get(name)
        if kind is None:
            problem = unknown_plugin(name)
            unknown = f"There is no plugin “{name}”{suggestion(name, plugins())}"
            self._wrong(name_node, f"The plugin “{name}” {problem}" if problem else unknown)
            return None
        if arguments_node is not None:
            self._reject_duplicate_keys(arguments_node)
        arguments = _plain(arguments_node) if arguments_node is not None else None
        arguments = {} if arguments is None else arguments
        try:
            read_options(kind, arguments)
        except InvalidOptions as error:
            for key, sentence in error.problems.items():
                self._wrong(_at(arguments_node, key) or node, sentence.replace("setting", "argument"))
            return None
        except Exception as error:
            # Creating a plugin of another package may raise anything.
            self._wrong(node, f"The plugin “{name}” cannot be created: {type(error).__name__}: {error}.")
            return None
        return PluginChoice(name, arguments)

    def _composed(self, text: str) -> yaml.Node | None:
        if len(text) > MAX_CHARACTERS:
            self.problems.append((1, f"The document has more than {MAX_CHARACTERS:,} characters."))
            return None
        try:
            problem = _problem_of_events(text)
            if problem is not None:
                self.problems.append(problem)
                return None
            composed: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
            return composed
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            reason = getattr(error, "problem", None) or "it cannot be read"
            self.problems.append((mark.line + 1 if mark else 1, f"This is not YAML: {reason}."))
            return None

    def _keys(self, node: yaml.Node | None, known: tuple[str, ...], what: str) -> dict[str, yaml.Node]:
        if node is None:
            return {}
        if not isinstance(node, yaml.MappingNode):
            self._wrong(node, f"{what} must have {' and '.join(known)}.")
            return {}
        values: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = str(_plain(key))
            if name not in known:
                self._wrong(key, f"There is no “{name}” here{suggestion(name, known)}")
            elif name in values:
                self._wrong(key, f"“{name}” is listed twice.")
            values[name] = value
        return values

    def _reject_duplicate_keys(self, node: yaml.Node) -> None:
        """Reject a duplicate key: YAML would silently keep one of the values."""
        if isinstance(node, yaml.MappingNode):
            self._keys(node, tuple(str(_plain(key)) for key, _ in node.value), "An object")
        if isinstance(node, yaml.CollectionNode):
            for child in node.value:
                self._reject_duplicate_keys(child[1] if isinstance(node, yaml.MappingNode) else child)

    def _items(self, name: str) -> list[yaml.Node]:
        node = self.top.get(name)
        if node is None:
            return []
        if not isinstance(node, yaml.SequenceNode):
            self._wrong(node, f"“{name}” must be a list.")
            return []
        return list(node.value)

    def _wrong(self, node: yaml.Node, sentence: str) -> None:
        self.problems.append((node.start_mark.line + 1, sentence))


def _problem_of_events(text: str) -> tuple[int, str] | None:
    """Return a problem that must be found before construction: aliases, or deep nesting."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent):
            return line, "Aliases (*name) cannot be used here."
        if depth > MAX_DEPTH:
            return line, f"The document is nested more than {MAX_DEPTH} levels deep."
    return None


def _plain(node: yaml.Node) -> Any:
    """Return the value of a node; YAML dates stay text."""
    if isinstance(node, yaml.MappingNode):
        return {str(_plain(key)): _plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item) for item in node.value]
    if node.tag.rsplit(":", 1)[-1] in ("int", "float", "bool", "null"):
        return yaml.safe_load(node.value)
    return node.value


def _at(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """Return the node of an argument (`limits.lab.cpu`, `rows[2].name`), or of its nearest parent."""
    if isinstance(node, yaml.MappingNode):
        # Names may contain dots: use the longest match.
        for name, value in sorted(node.value, key=lambda pair: -len(str(_plain(pair[0])))):
            word = str(_plain(name))
            if key == word or key.startswith((f"{word}.", f"{word}[")):
                return _at(value, key[len(word) :].removeprefix(".")) or name
    if isinstance(node, yaml.SequenceNode) and key.startswith("["):
        number, _, rest = key[1:].partition("]")
        return _at(node.value[int(number)], rest.removeprefix(".")) or node.value[int(number)]
    return None
