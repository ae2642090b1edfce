"""Preview and application of requirement changes."""

from datetime import timedelta
from decimal import Decimal

import pytest

from lcm.domain.errors import InvalidInput, StalePreview
from lcm.models import ChangeLog, DefinitionRevision, LabletDefinition, RevisionBasis, RevisionOutcome
from observations.arithmetic.measures import MEASURED
from observations.models import DefinitionAssessment
from observations.pages.review_texts import impact_figures
from observations.services.requirement_preview import RequirementChoice
from observations.services.review_snooze import dismiss_review, snooze_review
from scheduling.models import Pool, Slot, SlotState
from tests.support.factories import make_session
from tests.support.observed_labs import apply, make_past_session, on_slot, post, preview, seen

CPU_RECOMMENDED = {"cpu_cores": RequirementChoice("recommended")}


@pytest.fixture
def worker(active_definition):
    """One READY worker of 16 cores, 64 GB and 500 GB with ten leases."""
    pool = Pool.objects.get(name="cml-eu")
    return Slot.objects.create(
        pool=pool,
        number=1,
        state=SlotState.READY,
        max_leases=10,
        cpu_cores=16,
        memory_gb=64,
        storage_gb=500,
    )


def test_the_preview_lists_exceeding_sessions(known, now):
    cpu, memory, _ = preview(known, {"cpu_cores": RequirementChoice("avg")}, now).impacts
    assert (cpu.proposal.value, str(cpu.proposal.derivation)) == (
        200,
        "average 1.83 used, rounded up to 2 cores",
    )
    assert (cpu.risk.exceeding, cpu.risk.n, cpu.exceeding_recent, cpu.worst_excess) == (1, 10, 1, 100)
    assert [(each.value, each.excess) for each in cpu.exceeding] == [(300, 100)]
    assert (cpu.percent, memory.changes) == (-50, False)


def test_the_preview_counts_exceeding_sessions_of_thirty_days(known, project, operator, now):
    for days, cpu in ((31, "3.50"), (29, "2.50")):
        at = now - timedelta(days=days)
        post(
            make_past_session(known, project, operator, ended=at),
            seen(at, cpu=cpu, memory=2500, storage=5000),
            at,
        )
    made = preview(known, {"cpu_cores": RequirementChoice("custom", Decimal(2))}, now)
    cpu = made.impacts[0]
    assert [(each.value, each.excess) for each in cpu.exceeding] == [(350, 150), (300, 100), (250, 50)]
    assert (cpu.risk.exceeding, cpu.exceeding_recent, cpu.worst_excess) == (3, 2, 150)
    assert impact_figures(made, now=now)[0].evidence == [
        "CPU: exceeded by at most 1.5 cores; 2 of these sessions in the last 30 days."
    ]


def test_the_preview_counts_sessions_that_fit_on_the_workers(known, worker, project, operator, now):
    session = make_session(known, project, operator, now=now)
    on_slot(session, ports={"r1_serial": 5041})
    made = preview(known, {"cpu_cores": RequirementChoice("custom", Decimal("2"))}, now)
    assert (made.empty_before.sessions, made.empty_before.limited_by) == (4, "cpu_cores")
    assert (made.empty_after.sessions, made.empty_after.limited_by) == (8, "cpu_cores")
    assert (made.free_before.sessions, made.free_after.sessions) == (3, 6)
    assert made.empty_after.by_limit["leases"] == 10


def test_ports_limit_the_sessions_that_fit(known, worker, project, operator, now):
    needed = len(known.current_revision.port_template)
    Pool.objects.update(first_port=5041, last_port=5040 + 3 * needed)
    made = preview(known, CPU_RECOMMENDED, now)
    assert (needed > 0, made.empty_after.sessions, made.empty_after.limit_label) == (True, 3, "ports")
    on_slot(make_session(known, project, operator, now=now), ports={"r9_vnc": 5041})
    made = preview(known, CPU_RECOMMENDED, now)
    assert (made.empty_after.sessions, made.free_after.sessions, made.free_after.limit_label) == (
        3,
        2,
        "ports",
    )


def test_leases_limit_the_sessions_that_fit(known, worker, project, operator, now):
    Slot.objects.update(max_leases=3)
    on_slot(make_session(known, project, operator, now=now))
    made = preview(known, CPU_RECOMMENDED, now)
    assert (made.empty_after.sessions, made.empty_after.limit_label) == (3, "leases")
    assert (made.free_after.sessions, made.free_after.limit_label) == (2, "leases")


def test_slots_that_accept_no_sessions_do_not_count(known, worker, now):
    Slot.objects.update(cordoned=True)
    assert preview(known, CPU_RECOMMENDED, now).empty_before.workers == 0


def test_the_preview_has_the_savings(known, now):
    saving = preview(known, {"cpu_cores": RequirementChoice("custom", Decimal("3"))}, now).saving
    assert (saving.cpu, saving.memory) == (10_00, 0)


def test_applying_creates_a_revision_with_its_evidence(known, as_admin, now):
    revision = apply(known, CPU_RECOMMENDED, as_admin, now)
    assert (revision.number, revision.cpu_cores, revision.memory_gb) == (2, Decimal("3.50"), Decimal("3.50"))
    assert (revision.basis, revision.reason, revision.outcome) == (
        RevisionBasis.RECOMMENDED,
        "ten sessions say so",
        RevisionOutcome.WATCHING,
    )
    evidence = revision.aggregate["resources"]["cpu_cores"]
    assert evidence["derivation"] == "decayed p95 3 used × 1.15 = 3.45, rounded up to 3.5 cores"
    assert (evidence["summary"]["n"], evidence["exceeding"]) == (10, 0)
    assert ChangeLog.objects.filter(
        event="definition.revision_applied", reason="ten sessions say so"
    ).exists()


def test_new_sessions_use_the_new_revision_and_others_keep_theirs(known, as_admin, project, operator, now):
    before = make_session(known, project, operator, now=now)
    revision = apply(known, CPU_RECOMMENDED, as_admin, now)
    after = make_session(known, project, operator, now=now)
    before.refresh_from_db()
    assert (before.revision.number, after.revision_id) == (1, revision.pk)
    assert sum(kernel.cpu_cores for kernel in after.kernels.all()) == Decimal("3.50")


@pytest.mark.parametrize(
    ("choices", "basis", "chosen", "mixed"),
    [
        (
            {"cpu_cores": RequirementChoice("p95"), "memory_gb": RequirementChoice("keep")},
            RevisionBasis.P95,
            {"cpu_cores": "p95 used"},
            "",
        ),
        (
            {
                "cpu_cores": RequirementChoice("p95"),
                "memory_gb": RequirementChoice("max", source="allocated"),
                "storage_gb": RequirementChoice("custom", Decimal(9)),
            },
            RevisionBasis.MIXED,
            {"cpu_cores": "p95 used", "memory_gb": "max allocated", "storage_gb": "custom None"},
            "CPU p95 used, memory max allocated, storage custom",
        ),
        (
            # 7 GB is the current value; choosing it explicitly counts as a custom value.
            {
                "cpu_cores": RequirementChoice("custom", Decimal(3)),
                "storage_gb": RequirementChoice("custom", Decimal(7)),
            },
            RevisionBasis.CUSTOM,
            {"cpu_cores": "custom None", "storage_gb": "custom None"},
            "",
        ),
        (
            {"cpu_cores": RequirementChoice("max"), "memory_gb": RequirementChoice("max")},
            RevisionBasis.MAX,
            {"cpu_cores": "max used", "memory_gb": "max used"},
            "",
        ),
    ],
)
def test_a_revision_keeps_the_basis_of_each_resource(choices, basis, chosen, mixed, known, as_admin, now):
    revision = apply(known, choices, as_admin, now)
    assert (revision.basis, revision.mixed_bases) == (basis, mixed)
    kept = dict.fromkeys((*MEASURED, "gpu"), "keep None")
    assert {
        name: f"{each['basis']} {each['source']}" for name, each in revision.bases.items()
    } == kept | chosen


@pytest.mark.parametrize(
    ("choices", "field"),
    [
        ({"gpu": RequirementChoice("max")}, "gpu"),
        ({"cpu_cores": RequirementChoice("median")}, "cpu_cores"),
        ({"cpu_cores": RequirementChoice("custom")}, "cpu_cores"),
        ({"cpu_cores": RequirementChoice("custom", Decimal(0))}, "cpu_cores"),
        ({"cpu_cores": RequirementChoice("custom", Decimal("-2"))}, "cpu_cores"),
        ({"cpu_cores": RequirementChoice("custom", Decimal("1.001"))}, "cpu_cores"),
        ({"cpu_cores": RequirementChoice("custom", Decimal(10**7))}, "cpu_cores"),
        ({"cpu_cores": RequirementChoice("custom", Decimal("NaN"))}, "cpu_cores"),
        ({"cpu_cores": RequirementChoice("max", source="guessed")}, "cpu_cores"),
    ],
)
def test_invalid_choices_are_rejected(choices, field, known, now):
    with pytest.raises(InvalidInput) as refused:
        preview(known, choices, now)
    assert list(refused.value.fields) == [field]


def test_without_evidence_only_custom_numbers_are_possible(active_definition, as_admin, now):
    with pytest.raises(InvalidInput, match="no session has figures"):
        preview(active_definition, CPU_RECOMMENDED, now)
    revision = apply(active_definition, {"cpu_cores": RequirementChoice("custom", Decimal(3))}, as_admin, now)
    assert revision.cpu_cores == 3


# --- rejected: nothing changes ------------------------------------------------------------------------


def refused(definition, choices, actor, now, **given):
    with pytest.raises(StalePreview) as error:
        apply(definition, choices, actor, now, **given)
    assert DefinitionRevision.objects.filter(definition=definition).count() == 1
    return error.value.details.get("changed", [error.value.message])


def test_nothing_is_applied_without_a_preview(known, as_admin, now):
    for token in ("", "made-up", preview(known, CPU_RECOMMENDED, now).token + "x"):
        assert refused(known, CPU_RECOMMENDED, as_admin, now, token=token) == [
            "Preview this change first; LCM applies only a previewed change."
        ]


def test_values_that_differ_from_the_preview_are_rejected(known, as_admin, now):
    token = preview(known, CPU_RECOMMENDED, now).token
    changed = refused(known, {"cpu_cores": RequirementChoice("max")}, as_admin, now, token=token)
    assert changed[0].startswith("The values differ from the preview")


def test_a_custom_number_is_part_of_what_was_previewed(known, as_admin, now):
    token = preview(known, {"cpu_cores": RequirementChoice("custom", Decimal(3))}, now).token
    changed = refused(
        known, {"cpu_cores": RequirementChoice("custom", Decimal(2))}, as_admin, now, token=token
    )
    assert changed[0] == "CPU: the proposal was 3 cores and is now 2 cores."


def test_changed_evidence_is_reported(known, observed, as_admin, now):
    token = preview(known, CPU_RECOMMENDED, now).token
    observed(known, 1, cpu="3.90", memory=2500, storage=5000)
    assert refused(known, CPU_RECOMMENDED, as_admin, now, token=token) == [
        "CPU: the proposal was 3.5 cores and is now 4.5 cores.",
        "CPU: the maximum was 3 cores and is now 3.9 cores.",
        "CPU: the recommendation was 3.5 cores and is now 4.5 cores.",
    ]


def test_another_session_above_the_proposal_is_reported(known, observed, as_admin, now):
    choices = {"cpu_cores": RequirementChoice("custom", Decimal(2))}
    token = preview(known, choices, now).token
    observed(known, 1, cpu="2.50", memory=2500, storage=5000)
    with pytest.raises(StalePreview) as refused:
        apply(known, choices, as_admin, now, token=token)
    assert refused.value.details["changed"] == ["CPU: 2 sessions now exceed the proposal, previously 1."]


@pytest.mark.parametrize("put_off", ["snoozed", "dismissed"])
def test_applying_ends_a_snooze(put_off, active_definition, observed, as_admin, now):
    observed(active_definition, 10, cpu="2.00")
    arguments = {"definition": active_definition, "reason": "exams", "actor": as_admin, "now": now}
    if put_off == "snoozed":
        snooze_review(until=now + timedelta(days=7), **arguments)
    else:
        dismiss_review(**arguments)
    apply(active_definition, {"cpu_cores": RequirementChoice("custom", Decimal(20))}, as_admin, now)
    kept = DefinitionAssessment.objects.get(definition=active_definition)
    assert (kept.snoozed_until, kept.dismissed) == (None, None)


def test_a_session_that_changes_no_figure_keeps_the_preview_valid(known, observed, as_admin, now):
    token = preview(known, CPU_RECOMMENDED, now).token
    observed(known, 1, cpu="1.70", memory=2500, storage=5000)
    assert apply(known, CPU_RECOMMENDED, as_admin, now, token=token).number == 2


def test_a_second_apply_reports_the_revision_and_its_author(known, as_admin, as_operator, now):
    token = preview(known, CPU_RECOMMENDED, now).token
    apply(known, {"memory_gb": RequirementChoice("custom", Decimal(3))}, as_operator, now)
    with pytest.raises(StalePreview, match="otto applied revision 2 after the preview"):
        apply(LabletDefinition.objects.get(pk=known.pk), CPU_RECOMMENDED, as_admin, now, token=token)


def test_a_preview_of_another_definition_is_rejected(known, as_admin, now):
    from tests.support.factories import make_definition

    other = make_definition("other", pool="cml-eu")
    token = preview(known, {"cpu_cores": RequirementChoice("custom", Decimal(3))}, now).token
    with pytest.raises(StalePreview, match="another definition"):
        apply(other, {"cpu_cores": RequirementChoice("custom", Decimal(3))}, as_admin, now, token=token)


def test_applying_needs_a_reason_and_a_change(known, as_admin, now):
    with pytest.raises(InvalidInput, match="Enter a reason"):
        apply(known, CPU_RECOMMENDED, as_admin, now, reason=" ")
    with pytest.raises(InvalidInput, match="This change has no effect"):
        apply(known, {}, as_admin, now)


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_two_administrators_at_once_make_one_revision(known, as_admin, as_operator, now, at_once):
    token = preview(known, CPU_RECOMMENDED, now).token
    results = at_once(
        *(
            lambda actor=actor: apply(known, CPU_RECOMMENDED, actor, now, token=token)
            for actor in (as_admin, as_operator)
        )
    )
    won = [each for each in results if isinstance(each, DefinitionRevision)]
    lost = [each for each in results if isinstance(each, StalePreview)]
    assert (len(won), len(lost)) == (1, 1)
    assert "applied revision 2 after the preview" in lost[0].message
