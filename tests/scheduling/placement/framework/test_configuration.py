"""A pool's scheduler document: valid documents, and the message and line of each problem."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from scheduling.placement.framework import plugin as registry
from scheduling.placement.framework.configuration import (
    DEFAULT_CONFIGURATION,
    InvalidConfiguration,
    read_configuration,
)
from scheduling.placement.framework.cycle import VerdictOutcome, run_cycle
from scheduling.placement.framework.plugin import Plugin, plugins, register_plugin
from tests.scheduling.placement.inline_plugins import BUILT_IN, job, node, snapshot

ALLOCATE = "actions: [allocate]\n"


def problems(text: str) -> list[tuple[int, str]]:
    with pytest.raises(InvalidConfiguration) as error:
        read_configuration(text)
    return error.value.problems


def test_every_built_in_plugin_is_known():
    assert set(BUILT_IN) <= set(plugins())
    assert all(plugins()[name].name == name and plugins()[name].__doc__ for name in BUILT_IN)


@pytest.mark.parametrize("text", ["", "  \n ", DEFAULT_CONFIGURATION], ids=["empty", "blank", "default"])
def test_an_empty_document_is_the_default(text):
    configuration = read_configuration(text)
    assert configuration.actions == ("allocate",)
    assert [plugin.name for plugin in configuration.plugins()] == [
        "cordon", "system", "labels", "leases", "ports", "resources", "timeslot", "quota", "spot", "priority",
        "fairshare", "submit_order", "binpack", "gpupack",
    ]  # fmt: skip


def test_plugins_get_their_arguments():
    configuration = read_configuration(
        ALLOCATE + "plugins: [resources, {name: binpack, arguments: {weight: 3, gpu: 0.5}}]"
    )
    assert configuration.has("binpack")
    assert not configuration.has("spread")
    binpack = configuration.plugins()[1]
    assert (binpack.weight, binpack.gpu, binpack.cpu_cores) == (3, 0.5, 1)


@pytest.mark.parametrize(
    ("configured", "effective"),
    [
        ("[]", ["cordon", "leases", "ports", "resources"]),
        ("[binpack, ports]", ["cordon", "leases", "resources", "binpack", "ports"]),
        ("[resources, ports, leases, cordon]", ["resources", "ports", "leases", "cordon"]),
    ],
)
def test_mandatory_plugins_run_even_if_they_are_not_configured(configured, effective):
    configuration = read_configuration(ALLOCATE + f"plugins: {configured}")
    assert [plugin.name for plugin in configuration.plugins_for_cycle()] == effective


def test_a_job_is_not_placed_where_the_commit_would_reject_it():
    nodes = [node("a", cordoned=True), node("b", max_leases=0), node("c", ports=0), node("d", 0)]
    (verdict,) = run_cycle(
        snapshot(nodes, [job("j", ports=1)]), read_configuration(ALLOCATE + "plugins: [submit_order]")
    ).verdicts
    assert verdict.outcome is VerdictOutcome.WAITING
    assert {count.code for count in verdict.why.counts} == {"cordon", "leases", "ports", "cpu_cores"}


def test_plugins_are_created_for_every_cycle():
    configuration = read_configuration("")
    assert configuration.plugins()[0] is not configuration.plugins()[0]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            ALLOCATE + "plugins:\n  - resorces\n",
            3,
            "There is no plugin “resorces”; did you mean “resources”?",
        ),
        (
            ALLOCATE + "plugins:\n  - name: resources\n  - name: warp\n",
            4,
            "There is no plugin “warp”. There are: ",
        ),
        (
            ALLOCATE + "plugins:\n  - name: binpack\n    arguments:\n      wieght: 3\n",
            5,
            "There is no argument “wieght”; did you mean “weight”?",
        ),
        (
            ALLOCATE + "plugins:\n  - name: binpack\n    arguments:\n      weight: heavy\n",
            5,
            '“weight” must be a number from 0 to 100, but is "heavy".',
        ),
        (
            ALLOCATE + "plugins:\n  - name: binpack\n    arguments: {weight: 101}\n",
            4,
            "“weight” must be a number from 0 to 100, but is 101.",
        ),
        (
            ALLOCATE + "plugins:\n  - name: binpack\n    arguments: {weight: true}\n",
            4,
            "“weight” must be a number from 0 to 100, but is true.",
        ),
        (
            ALLOCATE + "plugins:\n  - name: quota\n    arguments:\n      limits: {lab: {cpu: 3}}\n",
            5,
            "“cpu” cannot be limited",
        ),
        (
            ALLOCATE + "plugins:\n  - name: quota\n    arguments:\n      limits: {lab: {gpu: -1}}\n",
            5,
            "“limits.lab.gpu” must be zero or more, but is -1.",
        ),
        (
            ALLOCATE + "plugins:\n  - name: quota\n    arguments:\n      limits:\n        lab:\n"
            "          gpu: 1\n          cpu: 3\n",
            8,
            "“cpu” cannot be limited",
        ),
        (
            ALLOCATE + "plugins:\n  - name: quota\n    arguments:\n      limits:\n        north: {}\n"
            "        north.lab:\n          gpu: -1\n",
            8,
            "“limits.north.lab.gpu” must be zero or more, but is -1.",
        ),
        (
            ALLOCATE + "plugins:\n  - name: quota\n    arguments:\n      limits: {lab: {sessions: 1.5}}\n",
            5,
            "“limits.lab.sessions” must be a whole number, but is 1.5.",
        ),
        (
            ALLOCATE + "plugins:\n  - name: binpack\n    arguments:\n      weight: 3\n      weight: 4\n",
            6,
            "“weight” is listed twice.",
        ),
        (
            ALLOCATE + "plugins:\n  - name: quota\n    arguments:\n      limits:\n        lab: {gpu: 1}\n"
            "        lab: {gpu: 2}\n",
            7,
            "“lab” is listed twice.",
        ),
        (
            ALLOCATE + "plugins:\n  - {name: binpack, arguments: [1]}\n",
            3,
            "must be an object of names and values",
        ),
        (
            ALLOCATE + "plugins:\n  - {name: binpack, arguments: false}\n",
            3,
            "must be an object of names and values",
        ),
        (ALLOCATE + "plugins:\n  - {arguments: {}}\n", 3, "A plugin needs a name."),
        (ALLOCATE + "plugins:\n  - {name: ports, order: 1}\n", 3, "There is no “order” here"),
        (ALLOCATE + "plugins:\n  - [ports]\n", 3, "A plugin must have name and arguments."),
        (ALLOCATE + "plugins:\n  - ports\n  - ports\n", 4, "The plugin “ports” is listed twice."),
        (ALLOCATE + "plugins: ports\n", 2, "“plugins” must be a list."),
        (
            "actions: [allocate, reclam]\nplugins: []\n",
            1,
            "There is no action “reclam”; did you mean “reclaim”?",
        ),
        ("actions:\n  - allocate\n  - allocate\nplugins: []\n", 3, "The action “allocate” is listed twice."),
        ("actions: [reclaim, allocate]\nplugins: []\n", 1, "“allocate” must be the first action."),
        ("actions: []\nplugins: []\n", 1, "“allocate” must be the first action."),
        ("plugins: []\n", 1, "“actions” is missing."),
        (ALLOCATE, 1, "“plugins” is missing."),
        ("# nothing\n", 1, "“actions” is missing."),
        (ALLOCATE + "plugins: []\nplugin: []\n", 3, "There is no “plugin” here; did you mean “plugins”?"),
        (ALLOCATE + "plugins: []\nplugins: []\n", 3, "“plugins” is listed twice."),
        ("- allocate\n", 1, "The document must have actions and plugins."),
        ("just text", 1, "The document must have actions and plugins."),
        (ALLOCATE + "plugins: [resources\n", 3, "This is not YAML: "),
        ("actions: [allocate]\n\tplugins: []\n", 2, "This is not YAML: "),
        ("actions: \x07\n", 1, "This is not YAML: "),
        (ALLOCATE + "---\nplugins: []\n", 2, "This is not YAML: "),
        ("a: &a [x]\nactions: *a\nplugins: []\n", 2, "Aliases (*name) cannot be used here."),
        ("#" * 20_001, 1, "The document has more than 20,000 characters."),
        ("actions: " + "[" * 19_000, 1, "The document is nested more than 20 levels deep."),
    ],
)
def test_problems_are_reported_with_their_line(text, line, message):
    (found_line, message_found), *_ = problems(text)
    assert found_line == line
    assert message in message_found


def test_every_problem_is_reported_at_once():
    text = ALLOCATE + "plugins:\n  - warp\n  - {name: spread, arguments: {weight: x, wait: 1}}\n  - prots\n"
    assert [line for line, _ in problems(text)] == [3, 4, 4, 5]


@pytest.fixture
def second_gate(monkeypatch):
    monkeypatch.setattr(registry, "_registered", dict(plugins()))

    @register_plugin("budget")
    @dataclass(frozen=True)
    class BudgetPlugin(Plugin):
        """A second plugin that registers the quota gate."""

        owns = ("quota gate",)


def test_two_plugins_for_a_single_owner_point_are_rejected(second_gate):
    (line, message), *other_problems = problems(ALLOCATE + "plugins:\n  - quota\n  - resources\n  - budget\n")
    assert (line, message) == (5, "“quota” and “budget” both implement the quota gate; only one can.")
    assert not other_problems
    assert read_configuration(ALLOCATE + "plugins: [budget]").has("budget")


def test_a_plugin_name_is_registered_once(second_gate):
    with pytest.raises(ValueError, match="There is already a plugin “ports”"):
        register_plugin("ports")(Plugin)
