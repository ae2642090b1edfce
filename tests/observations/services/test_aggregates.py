"""Aggregates: updated incrementally, equal to a rebuild, and their effect on the definition."""

from datetime import timedelta
from decimal import Decimal
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog, LabletDefinition
from lcm.services.definitions import revise_definition
from lcm.services.session_transitions import transition_session
from observations.arithmetic.measures import CPU
from observations.models import DefinitionAssessment, ResourceAggregate, SessionObservation
from observations.selectors.evidence import evidence_of, not_counted_sessions, outliers_of
from observations.services.aggregates import rebuild_definition
from observations.services.assessments import refresh_assessment
from observations.services.review_snooze import dismiss_review, refresh_due_reviews, snooze_review
from observations.services.session_exclusion import exclude_session, include_session
from tests.support.observed_labs import make_past_session, post, seen


def assessment_of(definition):
    return DefinitionAssessment.objects.get(definition=definition)


def test_every_new_definition_has_an_assessment(definition):
    assert assessment_of(definition).provisioning == "not_enough_data"


def test_an_over_provisioned_definition_is_flagged_after_ten_sessions(active_definition, observed, now):
    observed(active_definition, 9, cpu="1.00", memory=1024)
    assert not active_definition.needs_review
    observed(active_definition, 1, cpu="1.00", memory=1024)
    kept = assessment_of(active_definition)
    assert (kept.provisioning, kept.n) == ("over_provisioned", 10)
    assert kept.flags == {"cpu_cores": "over", "memory_gb": "over", "storage_gb": "over"}
    assert (kept.recommended_cpu_cores, kept.recommended_memory_gb) == (Decimal("1.50"), Decimal("1.50"))
    assert active_definition.needs_review
    assert active_definition.review_reasons[0] == "CPU: 4 cores is too much, 1.5 cores recommended."


def test_an_under_provisioned_definition_is_flagged_after_five_sessions(active_definition, observed):
    observed(active_definition, 4, cpu="4.00")
    assert assessment_of(active_definition).provisioning == "not_enough_data"
    observed(active_definition, 1, cpu="4.00")
    assert assessment_of(active_definition).flags["cpu_cores"] == "under"


def test_exceeded_memory_is_flagged_at_once(active_definition, observed):
    observed(active_definition, 1, memory=4096)
    assert assessment_of(active_definition).provisioning == "under_provisioned"
    assert active_definition.review_reasons == ["Memory: 1 session exceeded 3.5 GB, up to 4."]


@pytest.fixture
def revise(active_definition, as_admin, now, django_capture_on_commit_callbacks):
    """`revise(10)` requires 10 cores from now on."""

    def make(cores):
        with django_capture_on_commit_callbacks(execute=True):
            revise_definition(
                definition=active_definition,
                requirements={"cpu_cores": Decimal(cores)},
                based_on=active_definition.current_revision.number,
                reason="a guess",
                actor=as_admin,
                now=now,
            )
        active_definition.refresh_from_db()

    return make


def review_events(definition):
    rows = ChangeLog.objects.filter(
        object_id=str(definition.pk), event__in=("definition.flagged", "definition.cleared")
    )
    return list(rows.order_by("pk").values_list("event", "message"))


RAISED = ("definition.flagged", "campus v1.0 needs a review")
CLEARED = ("definition.cleared", "campus v1.0 no longer needs a review")


def test_a_wrong_revision_raises_a_flag_and_a_right_one_clears_it(active_definition, observed, revise):
    observed(active_definition, 10, cpu="3.40", memory=3000, storage=6500)
    assert assessment_of(active_definition).flags == {}
    assert review_events(active_definition) == []
    revise(10)
    assert assessment_of(active_definition).flags == {"cpu_cores": "over"}
    assert active_definition.review_reasons == ["CPU: 10 cores is too much, 4 cores recommended."]
    assert review_events(active_definition) == [RAISED]
    revise(4)
    assert assessment_of(active_definition).flags == {}
    assert (active_definition.needs_review, active_definition.review_reasons) == (False, [])
    assert review_events(active_definition) == [RAISED, CLEARED]


def test_sessions_that_use_the_requirement_clear_a_flag(active_definition, observed):
    observed(active_definition, 10, cpu="2.00", memory=3000, storage=6500)
    assert review_events(active_definition) == [RAISED]
    observed(active_definition, 10, cpu="3.40", memory=3000, storage=6500)
    assert (assessment_of(active_definition).flags, active_definition.needs_review) == ({}, False)
    assert review_events(active_definition) == [RAISED, CLEARED]


def test_a_flag_stays_until_the_gap_has_halved(active_definition, observed, revise):
    """3.91 used plus headroom is 4.5: raised half a core below, cleared less than a quarter below."""
    observed(active_definition, 5, cpu="3.91", memory=3000, storage=6500)
    flags = []
    for cores in ("4", "4.25", "4.26", "4.25", "4"):
        if cores != "4" or flags:
            revise(cores)
        flags.append(assessment_of(active_definition).flags.get("cpu_cores"))
    assert flags == ["under", "under", None, None, "under"]


def test_another_reason_does_not_start_another_review(active_definition, observed, revise):
    observed(active_definition, 10, cpu="2.00", memory=3000, storage=6500)
    revise(10)
    assert active_definition.review_reasons == ["CPU: 10 cores is too much, 2.5 cores recommended."]
    assert review_events(active_definition) == [RAISED]


def test_waste_is_the_requirement_above_the_peak_times_the_time_held(active_definition, observed):
    observed(active_definition, 2, cpu="1.00", memory=1536)
    kept = assessment_of(active_definition)
    assert kept.held_seconds == 2 * 3600
    assert (kept.waste_cpu, kept.waste_memory) == (Decimal("6.00"), Decimal("4.00"))


def test_old_waste_is_dropped(active_definition, observed, now):
    observed(active_definition, 2, cpu="1.00")
    later = now + timedelta(days=31)
    assert refresh_due_reviews(now=later) == 1
    kept = assessment_of(active_definition)
    assert (kept.waste_cpu, kept.held_seconds, kept.n) == (Decimal(0), 0, 2)


def test_definitions_sort_by_shortage_then_waste(active_definition, observed, now):
    from tests.support.factories import make_definition

    short, wasteful = make_definition("short", pool="cml-eu"), make_definition("wasteful", pool="cml-eu")
    observed(short, 1, memory=4096)
    observed(wasteful, 10, cpu="1.00")
    rows = DefinitionAssessment.objects.order_by("-priority").values_list("definition__name", flat=True)
    assert list(rows) == ["short", "wasteful", "campus"]


def test_an_excluded_session_does_not_count_until_it_is_included(active_definition, observed, as_admin, now):
    sessions = observed(active_definition, 5, memory=2048)
    [peak] = observed(active_definition, 1, memory=4096)
    assert assessment_of(active_definition).provisioning == "under_provisioned"
    exclude_session(session=peak, reason="a second manager by hand", actor=as_admin, now=now)
    active_definition.refresh_from_db()
    assert assessment_of(active_definition).n == 5
    assert "memory_gb" not in assessment_of(active_definition).flags
    row = not_counted_sessions(active_definition)[0]
    assert (row.session_id, row.not_counted_reason, row.excluded_by) == (peak.pk, "excluded", "ada")
    include_session(session=peak, reason="mistake", actor=as_admin, now=now)
    assert assessment_of(active_definition).n == 6
    assert sessions


def test_outliers_are_suggested(active_definition, observed, now):
    for memory in (2000, 2010, 2020, 2030, 2040, 2050):
        observed(active_definition, 1, memory=memory)
    [odd] = observed(active_definition, 1, memory=3500)
    found = outliers_of(evidence_of(active_definition, now=now))
    assert [(each.session_id, each.resource) for each in found] == [(odd.pk, "memory_gb")]


def test_an_outlier_just_below_the_normal_range_is_suggested(active_definition, observed, now):
    """Median 3, deviations 0, 0, 0.1, 0.1, 0.2, 0.2, 0.52: normal from 3 − 3.5 · 0.1 ÷ 0.6745 = 2.4811."""
    for cpu in ("2.80", "2.90", "3.00", "3.00", "3.10", "3.20"):
        observed(active_definition, 1, cpu=cpu)
    [odd] = observed(active_definition, 1, cpu="2.48")
    found = [each for each in outliers_of(evidence_of(active_definition, now=now)) if each.resource == CPU]
    assert [(each.session_id, each.value) for each in found] == [(odd.pk, 248)]


def test_a_new_topology_starts_a_new_epoch(active_definition, observed, now):
    old = observed(active_definition, 5, cpu="1.00")
    LabletDefinition.objects.update(topology_hash="f" * 64)
    observed(active_definition, 1, cpu="3.00")
    evidence = evidence_of(active_definition, now=now)
    assert (evidence.digest.n, evidence.views["cpu_cores"].summary.max) == (1, 300)
    assert assessment_of(active_definition).n == 1
    assert {row.session_id for row in not_counted_sessions(active_definition)} == {
        session.pk for session in old
    }
    assert not rebuild_definition(definition=active_definition, now=now, check=True)


def test_a_session_of_an_old_topology_does_not_change_the_assessment(active_definition, observed, now):
    [old] = observed(active_definition, 1, cpu="1.00")
    LabletDefinition.objects.update(topology_hash="f" * 64)
    observed(active_definition, 1, cpu="3.00")
    before = DefinitionAssessment.objects.values().get()
    post(old, seen(now, cpu="9.00", memory=9000), now)
    assert SessionObservation.objects.get(session=old).peak_cpu_used == Decimal(9)
    assert DefinitionAssessment.objects.values().get() == before
    assert not rebuild_definition(definition=active_definition, now=now, check=True)


def test_each_revision_has_its_own_aggregate(active_definition, observed, as_admin, now):
    observed(active_definition, 3, cpu="1.00")
    revise_definition(
        definition=active_definition,
        requirements={"cpu_cores": Decimal(3)},
        based_on=1,
        reason="less",
        actor=as_admin,
        now=now,
    )
    observed(active_definition, 2, cpu="2.00")
    whole, second = (
        evidence_of(active_definition, now=now),
        evidence_of(active_definition, now=now, revision=active_definition.revisions.get(number=2)),
    )
    assert (whole.digest.n, second.digest.n) == (5, 2)
    assert (whole.views["cpu_cores"].summary.min, second.views["cpu_cores"].summary.min) == (100, 200)


def memory_source(definition, now):
    return evidence_of(definition, now=now).views["memory_gb"].source


def test_the_source_becomes_used_at_eighty_percent_and_can_be_switched(active_definition, observed, now):
    observed(active_definition, 1, memory=None)
    observed(active_definition, 3, memory=1024)
    assert memory_source(active_definition, now) == "allocated"
    switched = evidence_of(active_definition, now=now, sources={"memory_gb": "used"})
    assert (switched.views["memory_gb"].source, switched.views["memory_gb"].summary.n) == ("used", 3)
    observed(active_definition, 1, memory=1024)
    assert memory_source(active_definition, now) == "used"


def test_a_session_without_measured_use_clears_no_flag(active_definition, observed, as_admin, now):
    """Only a revision or an exclusion clears an exceeded limit."""
    [peak] = observed(active_definition, 1, memory=4096)
    assert active_definition.review_reasons == ["Memory: 1 session exceeded 3.5 GB, up to 4."]
    for _ in range(3):
        observed(active_definition, 1, memory=None)
        assert assessment_of(active_definition).flags == {"memory_gb": "under"}
        assert memory_source(active_definition, now) == "used"
        assert not rebuild_definition(definition=active_definition, now=now, check=True)
    assert [event for event, _ in review_events(active_definition)] == ["definition.flagged"]
    exclude_session(session=peak, reason="a second manager by hand", actor=as_admin, now=now)
    active_definition.refresh_from_db()
    assert not active_definition.needs_review
    assert memory_source(active_definition, now) == "allocated"
    include_session(session=peak, reason="mistake", actor=as_admin, now=now)
    active_definition.refresh_from_db()
    assert memory_source(active_definition, now) == "allocated", "one session of four is measured"
    assert active_definition.review_reasons == ["Memory: 1 session exceeded 3.5 GB, up to 4."]
    assert not rebuild_definition(definition=active_definition, now=now, check=True)


# --- snooze and dismiss -----------------------------------------------------------------------------


@pytest.fixture
def flagged(active_definition, observed):
    observed(active_definition, 10, cpu="2.00", memory=3000, storage=6500)
    assert active_definition.review_reasons == ["CPU: 4 cores is too much, 2.5 cores recommended."]
    return active_definition


def test_a_snoozed_review_returns_at_its_date(flagged, as_admin, now):
    snooze_review(
        definition=flagged, until=now + timedelta(days=7), reason="term ends", actor=as_admin, now=now
    )
    flagged.refresh_from_db()
    assert not flagged.needs_review
    refresh_assessment(definition=flagged, now=now + timedelta(days=6))
    assert not LabletDefinition.objects.get(pk=flagged.pk).needs_review
    assert refresh_due_reviews(now=now + timedelta(days=7)) == 1
    assert LabletDefinition.objects.get(pk=flagged.pk).needs_review


def test_a_definition_stores_when_its_review_was_raised(flagged, observed, project, operator, as_admin, now):
    assert flagged.review_since == now
    later = now + timedelta(days=1)
    post(make_past_session(flagged, project, operator, ended=later), seen(later, memory=4096), later)
    flagged.refresh_from_db()
    assert len(flagged.review_reasons) > 1
    assert flagged.review_since == now, "another reason is no new beginning"
    snooze_review(
        definition=flagged, until=later + timedelta(days=7), reason="term ends", actor=as_admin, now=later
    )
    assert LabletDefinition.objects.get(pk=flagged.pk).review_since is None
    refresh_due_reviews(now=later + timedelta(days=7))
    assert LabletDefinition.objects.get(pk=flagged.pk).review_since == later + timedelta(days=7)


def test_a_dismissed_review_returns_when_the_recommendation_changes(flagged, observed, as_admin, now):
    dismiss_review(definition=flagged, reason="exam lab", actor=as_admin, now=now)
    observed(flagged, 1, cpu="2.10", memory=3000, storage=6500)
    assert not flagged.needs_review
    observed(flagged, 3, cpu="2.30", memory=3000, storage=6500)
    kept = assessment_of(flagged)
    assert (kept.recommended_cpu_cores, kept.dismissed) == (Decimal("3.00"), None)
    assert flagged.needs_review


@pytest.mark.parametrize("days", [0, 181])
def test_a_snooze_lasts_at_most_half_a_year(days, flagged, as_admin, now):
    from lcm.domain.errors import InvalidInput

    with pytest.raises(InvalidInput, match="180 days"):
        snooze_review(
            definition=flagged, until=now + timedelta(days=days), reason="x", actor=as_admin, now=now
        )


def test_a_definition_without_a_review_cannot_be_snoozed(active_definition, as_admin, now):
    from lcm.domain.errors import StateConflict

    with pytest.raises(StateConflict, match="needs no review"):
        dismiss_review(definition=active_definition, reason="x", actor=as_admin, now=now)


# --- incremental = full -------------------------------------------------------------------------------


histories = st.lists(
    st.tuples(
        st.sampled_from(["observe", "collect", "again", "exclude", "include", "revise"]),
        st.integers(0, 5),
        st.integers(10, 600),
        st.one_of(st.none(), st.integers(100, 9000)),
        st.integers(0, 40),
    ),
    min_size=1,
    max_size=12,
)


def revise_cores(definition, cores, actor, now):
    definition.refresh_from_db()
    revise_definition(
        definition=definition,
        requirements={"cpu_cores": cores},
        based_on=definition.current_revision.number,
        reason="a guess",
        actor=actor,
        now=now,
    )
    refresh_assessment(definition=definition, now=now)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=histories)
def test_stored_aggregates_equal_a_rebuild(steps, active_definition, project, operator, as_admin, now):
    from lcm.domain.errors import InvalidInput, StateConflict

    SessionObservation.objects.all().delete()
    ResourceAggregate.objects.all().delete()
    DefinitionAssessment.objects.update(days={}, n=0)
    sessions = []
    for what, which, cpu, memory, days in steps:
        at = now - timedelta(days=min(days, 29))
        body = seen(at + timedelta(minutes=which), cpu=f"{cpu / 100:.2f}", memory=memory)
        if what in ("observe", "collect") or not sessions:
            until = SessionStatus.RUNNING if what == "collect" else SessionStatus.COLLECTING
            sessions.append(make_past_session(active_definition, project, operator, ended=at, until=until))
            post(sessions[-1], body, now)
        session = sessions[which % len(sessions)]
        try:
            if what == "collect":
                transition_session(session=sessions[-1], to=SessionStatus.COLLECTING, actor=as_admin, now=now)
            elif what == "again":
                post(session, body, now)
            elif what == "revise":
                revise_cores(active_definition, Decimal(cpu) / 100, as_admin, now)
            elif what == "exclude":
                exclude_session(session=session, reason="odd", actor=as_admin, now=now)
            elif what == "include":
                include_session(session=session, reason="mistake", actor=as_admin, now=now)
        except (StateConflict, InvalidInput):
            pass
    active_definition.refresh_from_db()
    assert rebuild_definition(definition=active_definition, now=now, check=True) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"n": 7},
        {"provisioning": "right_sized"},
        {"flags": {}},
        {"recommended_cpu_cores": Decimal(9)},
        {"recommended_memory_gb": None},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_wrong_assessment_is_repaired(wrong, active_definition, observed, now):
    observed(active_definition, 10, cpu="1.00", memory=1024)
    before = DefinitionAssessment.objects.values().get(definition=active_definition)
    DefinitionAssessment.objects.filter(definition=active_definition).update(**wrong)
    differences = rebuild_definition(definition=active_definition, now=now, check=True)
    assert {each.what.split()[1] for each in differences} == set(wrong)
    assert rebuild_definition(definition=active_definition, now=now)
    assert DefinitionAssessment.objects.values().get(definition=active_definition) == before


def test_the_command_reports_and_repairs_differences(active_definition, observed, now):
    observed(active_definition, 3)
    before = ResourceAggregate.objects.get().digest
    ResourceAggregate.objects.update(digest={"n": 7})
    with pytest.raises(CommandError, match="differ from the sessions"):
        call_command("rebuild_aggregates", "--check", stdout=StringIO())
    assert ResourceAggregate.objects.get().digest == {"n": 7}
    out = StringIO()
    call_command("rebuild_aggregates", stdout=out)
    assert "7 samples stored, 3 expected" in out.getvalue()
    assert ResourceAggregate.objects.get().digest == before
    call_command("rebuild_aggregates", "--check", "campus", stdout=StringIO())
    with pytest.raises(CommandError, match="Definition not found"):
        call_command("rebuild_aggregates", "nothing")
