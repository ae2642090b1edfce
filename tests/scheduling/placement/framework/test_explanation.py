"""The exact sentences of wait reasons."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduling.placement.framework.callbacks import Reason
from scheduling.placement.framework.cycle import Verdict, VerdictOutcome, run_cycle
from scheduling.placement.framework.explanation import PlacementExplanation, ReasonCount, reasons_on
from scheduling.placement.framework.model import Gang, Job, Node, Task
from tests.scheduling.placement.inline_plugins import InlinePlugin, job, node, run_with, snapshot, units
from tests.scheduling.placement.scenario import configuration_of


def verdict_of(nodes: list[Node], waiting: Job, template: Node | None = None) -> Verdict:

    cluster = replace(snapshot(nodes, [waiting]), templates=[template] if template else [])
    (verdict,) = run_cycle(cluster, configuration_of()).verdicts
    return verdict


def nodes_with_little_memory(count: int, **fields) -> list[Node]:
    return [node(f"s-{number:02}", memory=6 - number % 3, **fields) for number in range(count)]


def test_the_handbook_example_has_its_sentence():
    cordoned = [node(f"x-{number}", cordoned=True, memory=16) for number in range(2)]
    verdict = verdict_of([*nodes_with_little_memory(12), *cordoned], job("j", memory=8))
    assert verdict.why.message == (
        "None of 14 ready slots fits: 12 insufficient memory (8 GB requested, at most 6 GB free); 2 cordoned."
    )
    assert verdict.why.main_reason == "memory_gb"
    first, second = verdict.why.counts
    assert (first.plugin, first.nodes, first.example_slots) == ("resources", 12, ("s-00", "s-01", "s-02"))
    assert (second.plugin, second.nodes, second.example_slots) == ("cordon", 2, ("x-0", "x-1"))


@pytest.mark.parametrize(
    ("nodes", "waiting", "sentence"),
    [
        ([node("a", cordoned=True)], job("j"), "The only ready slot does not fit: cordoned."),
        (
            [node("a", memory=1)],
            job("j", memory=2),
            "The only ready slot does not fit: insufficient memory (2 GB requested, at most 1 GB free).",
        ),
        (
            [node("a", 0.5), node("b", cordoned=True)],
            job("j"),
            "None of 2 ready slots fits: 1 cordoned; "
            "1 insufficient CPU (1 core requested, at most 0.5 cores free).",
        ),
        (
            [node("a", spot=True)],
            job("j"),
            "The only ready slot does not fit: spot (the session is not preemptible).",
        ),
        (
            [node("a", spot=True), node("b", spot=True)],
            job("j"),
            "None of 2 ready slots fits: 2 spot (the session is not preemptible).",
        ),
        ([node("a", max_leases=0)], job("j"), "The only ready slot does not fit: without a free lease."),
        (
            [node("a", max_leases=0), node("b", max_leases=0)],
            job("j"),
            "None of 2 ready slots fits: 2 without a free lease.",
        ),
        (
            [node("a", ports=1)],
            job("j", ports=2),
            "The only ready slot does not fit: insufficient ports (2 requested, at most 1 free).",
        ),
        (
            [node("a", ports=5, leaked=9)],
            job("j", ports=2),
            "The only ready slot does not fit: insufficient ports (2 requested, at most 0 free).",
        ),
        (
            [node("a")],
            job("j", system="vm"),
            "The only ready slot does not fit: not running vm.",
        ),
        (
            [node("a"), node("b")],
            job("j", system="vm"),
            "None of 2 ready slots fits: 2 not running vm.",
        ),
        (
            [node("a")],
            job("j", labels=(("a", "1"), ("b", "2"))),
            "The only ready slot does not fit: not labelled a=1, b=2.",
        ),
        (
            [node("a", until=1500)],
            job("j", ends=2000),
            "The only ready slot does not fit: terminating before the timeslot ends.",
        ),
        (
            [node("a", until=1500), node("b", until=1600)],
            job("j"),
            "None of 2 ready slots fits: 2 terminating before the timeslot ends.",
        ),
        (
            [node("a", gpu=1)],
            job("j", gpu=2),
            "The only ready slot does not fit: insufficient GPUs (2 requested, at most 1 whole GPU free).",
        ),
        (
            [node("a", gpu=2)],
            job("j", gpu=3),
            "The only ready slot does not fit: insufficient GPUs (3 requested, at most 2 whole GPUs free).",
        ),
        (
            [node("a")],
            job("j", gpu=0.5),
            "The only ready slot does not fit: insufficient GPUs (0.5 requested, at most 0 of a GPU free).",
        ),
        ([], job("j"), "No slot is ready."),
    ],
)
def test_each_wait_reason_has_its_sentence(nodes, waiting, sentence):
    assert verdict_of(nodes, waiting).why.message == sentence


@pytest.mark.parametrize(
    ("nodes", "waiting", "template", "outcome"),
    [
        ([node("a")], job("j", 5), None, VerdictOutcome.IMPOSSIBLE),
        ([node("a")], job("j", 5), node("new", 8), VerdictOutcome.WAITING),
        ([node("a", cordoned=True)], job("j"), None, VerdictOutcome.WAITING),
        ([node("a", ports=3, leaked=3)], job("j", ports=3), None, VerdictOutcome.WAITING),
        ([node("a", ports=3)], job("j", ports=4), None, VerdictOutcome.IMPOSSIBLE),
        ([node("a", max_leases=1, taken_leases=1)], job("j"), None, VerdictOutcome.WAITING),
        ([node("a", spot=True)], job("j"), None, VerdictOutcome.IMPOSSIBLE),
        ([node("a", spot=True)], job("j"), node("new"), VerdictOutcome.WAITING),
        (
            [node("a", labels={"zone": "a"}, taken=units(400))],
            job("j", labels=(("zone", "a"),)),
            None,
            VerdictOutcome.WAITING,
        ),
        ([node("a")], job("j", labels=(("zone", "a"),)), node("new"), VerdictOutcome.IMPOSSIBLE),
        ([node("a", until=1100)], job("j"), None, VerdictOutcome.WAITING),
        ([node("a", gpu=2, taken_devices=((0, 50),))], job("j", gpu=2), None, VerdictOutcome.WAITING),
        ([], job("j"), None, VerdictOutcome.IMPOSSIBLE),
        ([], job("j"), node("new"), VerdictOutcome.WAITING),
    ],
)
def test_a_job_is_impossible_if_no_present_or_new_slot_could_hold_it(nodes, waiting, template, outcome):
    assert verdict_of(nodes, waiting, template).outcome is outcome


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"templates": [node("new"), node("other", labels={"zone": "a"})]}, VerdictOutcome.WAITING),
        ({"templates": [node("new")], "coming": [node("b", labels={"zone": "a"})]}, VerdictOutcome.WAITING),
        (
            {"templates": [node("new")], "coming": [node("b", 0.5, labels={"zone": "a"})]},
            VerdictOutcome.IMPOSSIBLE,
        ),
        ({"templates": [node("new"), node("other")]}, VerdictOutcome.IMPOSSIBLE),
    ],
    ids=["a kind that could be launched", "an incoming slot", "an incoming slot that is too small", "none"],
)
@pytest.mark.parametrize("shape", ["a single task", "a gang"])
def test_any_launchable_or_incoming_kind_makes_a_job_possible(fields, outcome, shape):
    labels = (("zone", "a"),)
    waiting = job("j", labels=labels) if shape == "a single task" else gang(1, 1, labels=labels)
    cluster = replace(snapshot([node("a")], [waiting]), max_nodes=2, **fields)
    (verdict,) = run_cycle(cluster, configuration_of()).verdicts
    assert verdict.outcome is outcome


def test_a_kernel_that_fits_no_slot_explains_its_gang():
    tasks = (Task("small", units(100)), Task("large", units(900)))
    verdict = verdict_of([node("a"), node("b")], Job("j", "lab", tasks, gang=Gang.SPREAD))
    assert verdict.outcome is VerdictOutcome.IMPOSSIBLE
    assert verdict.why.message == (
        "None of 2 ready slots fits: 2 insufficient CPU (9 cores requested, at most 4 cores free). "
        "Best partial placement: 1 of its 2 kernels (small on a)."
    )


def gang(*cores: float, **fields) -> Job:
    tasks = tuple(Task(f"t{place}", units(round(each * 100))) for place, each in enumerate(cores))
    return Job("gang", "lab", tasks, gang=Gang.SPREAD, **fields)


def test_a_gang_is_explained_with_its_placeable_tasks():
    verdict = verdict_of([node("a")], gang(4, 4), node("new"))
    assert (verdict.outcome, verdict.summary) == (VerdictOutcome.WAITING, "waiting:cpu_cores")
    assert verdict.why.message == (
        "With 1 of its 2 kernels placed, the only ready slot does not fit: "
        "insufficient CPU (4 cores requested, at most 0 cores free)."
    )
    three = verdict_of([node("a"), node("b"), node("c", cordoned=True)], gang(4, 4, 4))
    assert three.why.message == (
        "With 2 of its 3 kernels placed, none of 3 ready slots fits: "
        "2 insufficient CPU (4 cores requested, at most 0 cores free); 1 cordoned."
    )


@pytest.mark.parametrize(
    ("nodes", "cores", "partial"),
    [
        # Largest first would leave space for only one kernel.
        ([node("a")], (3, 2, 2), "Best partial placement: 2 of its 3 kernels (t2 on a, t1 on a)."),
        ([node("a"), node("b")], (4, 4, 4), "Best partial placement: 2 of its 3 kernels (t0 on a, t1 on b)."),
        ([node("a", 8)], (1,) * 9,
         "Best partial placement: 8 of its 9 kernels "
         "(t0 on a, t1 on a, t2 on a, t3 on a, t4 on a and 3 more)."),
        ([node("a")], (5, 5), ""),
    ],
)  # fmt: skip
def test_an_impossible_gang_is_explained_with_its_best_partial_placement(nodes, cores, partial):
    verdict = verdict_of(nodes, gang(*cores))
    assert verdict.outcome is VerdictOutcome.IMPOSSIBLE
    assert verdict.why.partial == partial
    assert verdict.why.message.endswith(partial or "free).")


def test_gangs_of_one_shape_share_one_explanation():
    jobs = [replace(gang(4, cores), id=name) for name, cores in (("x", 4), ("y", 4), ("z", 3.5))]
    cycle = run_cycle(snapshot([node("a")], jobs), configuration_of())
    first, second, third = cycle.verdicts
    assert first.why is second.why is not third.why
    assert cycle.ssn.nodes.free.tolist() == [[400, 800, 0, 0]]


@pytest.mark.parametrize(
    ("nodes", "waiting", "template", "max_nodes", "outcome"),
    [
        ([node("a")], gang(4, 4), None, None, VerdictOutcome.IMPOSSIBLE),
        ([node("a")], gang(4, 4), node("new"), None, VerdictOutcome.WAITING),
        ([node("a")], gang(4, 4), node("new"), 1, VerdictOutcome.IMPOSSIBLE),
        ([node("a")], gang(4, 4), node("new"), 2, VerdictOutcome.WAITING),
        ([], gang(4, 4), node("new"), 1, VerdictOutcome.IMPOSSIBLE),
        # Enough capacity in total, but a slot never holds more than one kernel.
        ([node("a")], gang(2.5, 2.5, 2.5), node("new"), 2, VerdictOutcome.IMPOSSIBLE),
        ([node("a")], gang(2.5, 2.5, 2.5), node("new"), 3, VerdictOutcome.WAITING),
        # Each task fits alone, but not all together.
        ([node("a")], gang(3, 2, 1), node("new"), 1, VerdictOutcome.IMPOSSIBLE),
        ([node("a")], gang(3, 2, 1), node("new"), 2, VerdictOutcome.WAITING),
        # An existing slot that is larger than new slots counts with its own capacity, and once.
        ([node("a", 8, taken=units(800))], gang(4, 4), node("new"), 1, VerdictOutcome.WAITING),
        (
            [node("a", 8, system="vm")],
            gang(4, 4, system="cml"),
            node("new", system="cml"),
            1,
            VerdictOutcome.IMPOSSIBLE,
        ),
        ([node("a", cordoned=True), node("b")], gang(4, 4), None, None, VerdictOutcome.WAITING),
        ([node("a"), node("b")], gang(0, 0, 0), node("new"), 1, VerdictOutcome.PLACED),
    ],
)
def test_a_gang_is_impossible_if_the_maximum_of_slots_is_too_small(
    nodes, waiting, template, max_nodes, outcome
):
    cluster = replace(
        snapshot(nodes, [waiting]), templates=[template] if template else [], max_nodes=max_nodes
    )
    (verdict,) = run_cycle(cluster, configuration_of()).verdicts
    assert verdict.outcome is outcome


def test_all_plugins_that_refuse_a_job_are_named():
    def on_open(ssn):
        ssn.add_job_over_capacity_fn(lambda _: Reason("budget", "The lab has enough."))
        ssn.add_pre_predicate_fn(lambda *_: Reason("monday", "It is Monday."))

    late = InlinePlugin(
        name="late", on_open=lambda ssn: ssn.add_pre_predicate_fn(lambda *_: Reason("late", "It is late."))
    )
    cycle = run_with(snapshot([node("a")], [job("j")]), InlinePlugin(name="gate", on_open=on_open), late)
    (verdict,) = cycle.verdicts
    assert verdict.outcome is VerdictOutcome.REFUSED
    assert verdict.why.counts == (
        ReasonCount("budget", "gate", 0, "The lab has enough."),
        ReasonCount("monday", "gate", 0, "It is Monday."),
        ReasonCount("late", "late", 0, "It is late."),
    )
    assert (verdict.why.main_reason, verdict.why.message) == (
        "budget",
        "The lab has enough. It is Monday. It is late.",
    )


def test_all_reasons_of_one_slot_are_listed():
    cluster = snapshot([node("a", 1, 1, cordoned=True, spot=True, ports=0)], [])
    waiting = job("j", 2, 2, ports=1, gpu=1, system="vm")
    ssn = run_cycle(cluster, configuration_of()).ssn
    assert [(reason.code, reason.text) for reason in reasons_on(ssn, waiting.whole, waiting, 0)] == [
        ("cordon", "cordoned"),
        ("system", "runs another system, not vm"),
        ("ports", "ports: 1 requested, 0 free"),
        ("cpu_cores", "CPU: 2 cores requested, 1 core free"),
        ("memory_gb", "memory: 2 GB requested, 1 GB free"),
        ("gpu", "GPU: 1 requested, none here"),
        ("spot", "spot (the session is not preemptible)"),
    ]


def test_jobs_of_one_shape_share_one_explanation():
    cycle = run_cycle(snapshot([node("a")], [job("x", 9), job("y", 9)]), configuration_of())
    first, second = cycle.verdicts
    assert first.why is second.why
    assert first.summary == "impossible:cpu_cores"


def test_reasons_keep_the_codes_that_the_plugin_gave_them():
    def on_open(ssn):
        ssn.add_predicate_fn(
            lambda _, __, node: Reason(f"no-{node.name[0]}", node.name),
            batch=lambda _, __, nodes: nodes.all(False),
        )
        ssn.add_predicate_fn(lambda *_: Reason("other", "x"), code="own")

    nodes = [node("a1"), node("a2"), node("b1")]
    cycle = run_with(snapshot(nodes, [job("j")]), InlinePlugin(name="picky", on_open=on_open))
    reasons = [
        (count.code, count.plugin, count.nodes, count.example_slots) for count in cycle.verdicts[0].why.counts
    ]
    assert reasons == [
        ("own", "picky", 3, ("a1", "a2", "b1")),
        ("no-a", "picky", 2, ("a1", "a2")),
        ("no-b", "picky", 1, ("b1",)),
    ]


def test_a_plugin_without_a_summary_shows_its_first_reason():
    def on_open(ssn):
        ssn.add_predicate_fn(lambda _, __, node: Reason("fault", f"{node.name} is under repair"))

    cycle = run_with(
        snapshot([node("a"), node("b")], [job("j")]), InlinePlugin(name="fault", on_open=on_open)
    )
    assert cycle.verdicts[0].why.message == "None of 2 ready slots fits: 2 refused (a is under repair)."


def test_a_plugin_that_refuses_without_a_reason_is_named():
    def on_open(ssn):
        ssn.add_predicate_fn(lambda *_: Reason("x", ""), batch=lambda _, __, nodes: nodes.all(False))
        ssn.add_predicate_fn(lambda *_: "no", code="text")

    cycle = run_with(snapshot([node("a")], [job("j")]), InlinePlugin(name="mute", on_open=on_open))
    assert cycle.verdicts[0].why.message == ("The only ready slot does not fit: refused (); refused by mute.")


def test_an_explanation_without_nodes_is_its_own_sentence():
    quota = PlacementExplanation(3, (ReasonCount("quota", "quota", 0, "The lab has enough."),))
    assert quota.message == "The lab has enough."
    assert PlacementExplanation(3).message == "Sessions ahead in the queue take every slot."
    assert (PlacementExplanation(3).main_reason, PlacementExplanation(3, impossible=True).main_reason) == (
        "no-slots",
        "impossible",
    )


def test_a_node_with_several_reasons_is_counted_for_each():
    verdict = verdict_of([node("a", 1, 1)], job("j", 2, 2))
    assert [(count.code, count.nodes) for count in verdict.why.counts] == [("cpu_cores", 1), ("memory_gb", 1)]
