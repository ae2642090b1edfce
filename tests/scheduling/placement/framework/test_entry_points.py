"""Plugins of other packages: classes and functions are accepted, other objects are rejected by name."""

from __future__ import annotations

import sys
from dataclasses import fields

import pytest

from scheduling.models import Pool
from scheduling.placement.framework import plugin as registry
from scheduling.placement.framework.configuration import InvalidConfiguration, read_configuration
from scheduling.placement.framework.cycle import VerdictOutcome, run_cycle
from scheduling.placement.framework.entry_points import load_entry_points
from scheduling.placement.framework.plugin import ENTRY_POINTS, plugins, rejected_plugins
from tests.scheduling.placement.inline_plugins import job, node, snapshot
from tests.support.packages import install_package

MODULE = '''
from dataclasses import dataclass

from scheduling.placement.framework.callbacks import Reason
from scheduling.placement.framework.plugin import Plugin


@dataclass(frozen=True)
class Picky(Plugin):
    """Refuses one slot."""

    owns = ("choice",)
    slot: str = "a"

    def on_session_open(self, ssn):
        ssn.add_predicate_fn(lambda _, __, node: Reason("picky", "no") if node.name == self.slot else None)


def build(slot="b"):
    """Refuses another slot."""
    return Picky(slot)


def build_from(slot, **more):
    return Picky(slot)


def build_nothing():
    return None


def build_badly():
    raise RuntimeError("no database")


def build_by_position(slot, /):
    return Picky(slot)


class Stranger:
    pass


NUMBER = 3
'''
NAMES = {
    "picky": "Picky", "built": "build", "built_from": "build_from", "nothing": "build_nothing",
    "badly": "build_badly", "by_position": "build_by_position", "stranger": "Stranger", "number": "NUMBER",
}  # fmt: skip
GOOD = {"picky", "built", "built_from"}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package that is installed while this process runs."""
    points = {ENTRY_POINTS: {name: f"own_rules.rules:{value}" for name, value in NAMES.items()}}
    install_package(tmp_path, "own_rules", {"rules.py": MODULE}, points)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "_registered", dict(plugins()))
    monkeypatch.setattr(registry, "_rejected", {})
    yield
    for name in [name for name in sys.modules if name.startswith("own_rules")]:
        del sys.modules[name]


@pytest.fixture
def loaded_plugins(package):
    """The package, loaded as after a restart."""
    registry._rejected.update(load_entry_points(ENTRY_POINTS, registry._register_installed))


def document(*names: str) -> str:
    return "actions: [allocate]\nplugins:\n" + "".join(f"  - {name}\n" for name in names)


def problem_with(*names: str) -> str:
    with pytest.raises(InvalidConfiguration) as caught:
        read_configuration(document(*names))
    return str(caught.value)


def test_an_object_that_is_not_a_plugin_is_rejected_by_name(loaded_plugins):
    assert set(plugins()) >= GOOD
    assert set(rejected_plugins()) == NAMES.keys() - GOOD
    for name in rejected_plugins():
        assert problem_with(name).startswith(f"Line 3: The plugin “{name}” cannot be used: own_rules.rules:")
    assert "neither a plugin class nor a function" in problem_with("stranger")
    assert "the function returned None" in problem_with("nothing")
    assert "RuntimeError: no database" in problem_with("badly")


def test_a_function_is_accepted_like_a_class(loaded_plugins):
    built = plugins()["built"]
    assert [(each.name, each.default) for each in fields(built)] == [("slot", "b")]
    assert (built.__doc__, built.owns) == ("Refuses another slot.", ("choice",))
    for name, expected_node in (("picky", "b"), ("built", "a"), ("{name: built, arguments: {slot: a}}", "b")):
        cycle = run_cycle(
            snapshot([node("a"), node("b")], [job("j")]), read_configuration(document("resources", name))
        )
        assert cycle.placed[0].parts[0].node == expected_node
    assert "There is no argument “slit”; did you mean “slot”?" in problem_with(
        "{name: built, arguments: {slit: a}}"
    )
    assert "“slot” is required" in problem_with("built_from")
    assert "both implement the choice" in problem_with("picky", "built")


def test_a_plugin_that_cannot_be_created_is_reported_and_the_cycle_continues(loaded_plugins, monkeypatch):
    configuration = read_configuration(document("resources", "built"))

    def fail(slot):
        raise RuntimeError("gone")

    monkeypatch.setattr(plugins()["built"], "builder", staticmethod(fail))
    cycle = run_cycle(snapshot([node("a")], [job("j")]), configuration)
    assert cycle.verdicts[0].outcome is VerdictOutcome.PLACED
    assert cycle.ssn.failures.by_plugin == {"built": "RuntimeError: gone"}
    assert "The plugin “built” cannot be created: RuntimeError: gone." in problem_with(
        "resources", "built", "spot"
    )


def test_a_plugin_that_was_installed_while_lcm_runs_needs_a_restart(package):
    assert problem_with("picky") == (
        "Line 3: The plugin “picky” was installed after LCM started. "
        "Restart the web, worker and beat processes to use it."
    )


@pytest.mark.django_db
def test_the_scheduler_page_lists_and_rejects_an_unusable_plugin(loaded_plugins, client, admin):
    client.force_login(admin)
    pool = Pool.objects.create(name="lab")
    address = f"/pools/{pool.pk}/scheduler"
    page = client.get(address).content.decode()
    assert "The plugin stranger is installed but cannot be used." in page
    posted = client.post(address, {"scheduler": document("stranger"), "reason": "try"})
    assert posted.status_code in (200, 422)
    assert "The plugin “stranger” cannot be used" in posted.content.decode()
    assert Pool.objects.get().scheduler == ""
