"""Outcomes of a revision: verified, regressed, decided again, snoozed."""

from datetime import timedelta
from decimal import Decimal

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog, DefinitionRevision, LabletDefinition, RevisionOutcome
from lcm.services.definitions import revert_definition, revise_definition
from lcm.services.session_transitions import transition_session
from lcm.web.attention import FleetSnapshot
from observations.models import DefinitionAssessment, SessionObservation
from observations.pages.attention_items import observation_attention_items
from observations.services.outcomes import revert_target
from observations.services.requirement_preview import RequirementChoice
from observations.services.review_snooze import dismiss_review, refresh_due_reviews, snooze_review
from observations.services.session_exclusion import exclude_session, include_session
from tests.support.factories import make_definition
from tests.support.observed_labs import apply, make_past_session, post, seen

CPU_RECOMMENDED = {"cpu_cores": RequirementChoice("recommended")}
BOTH_RECOMMENDED = {**CPU_RECOMMENDED, "memory_gb": RequirementChoice("recommended")}


@pytest.fixture
def revised(known, as_admin, now, django_capture_on_commit_callbacks):
    """A new revision with 3.5 cores and 3 GB."""
    with django_capture_on_commit_callbacks(execute=True):
        apply(known, BOTH_RECOMMENDED, as_admin, now)
    known.refresh_from_db()
    return known


def outcome(definition):
    return definition.revisions.get(number=2).outcome


def test_five_sessions_within_limits_verify_a_revision(revised, observed):
    observed(revised, 4, cpu="2.00", memory=2500, storage=5000)
    assert outcome(revised) == "watching"
    observed(revised, 1, cpu="2.00", memory=2500, storage=5000)
    assert outcome(revised) == "verified"
    entry = ChangeLog.objects.get(event="definition.verified")
    assert entry.message == "campus v1.0: revision 2 verified, 5 of 5 sessions stayed within limits"


def test_sessions_of_the_old_revision_decide_nothing(known, as_admin, project, operator, now):
    early = [make_past_session(known, project, operator, ended=now) for _ in range(5)]
    apply(known, CPU_RECOMMENDED, as_admin, now)
    for session in early:
        post(session, seen(now, cpu="4.00"), now)
    assert outcome(known) == "watching"


def test_one_session_out_of_memory_is_a_regression(revised, observed, now):
    observed(revised, 1, cpu="2.00", memory=4000, storage=5000)
    assert outcome(revised) == "regressed"
    assert revised.needs_review
    assert revised.review_reasons[-1] == "Revision 2 was exceeded by the sessions after it."
    assert [need.text for need in observation_attention_items(FleetSnapshot(now))] == [
        "**campus v1.0**: revision 2 has regressed"
    ]


def test_review_items_have_the_start_of_the_review(revised, project, operator, as_admin, now):
    """Not when the revision was applied, nor when the definition was edited otherwise."""
    later = now + timedelta(hours=3)
    session = make_past_session(revised, project, operator, ended=later)
    post(session, seen(later, cpu="2.00", memory=4000, storage=5000), later)
    assert revised.revisions.get(number=2).outcome_at == later
    LabletDefinition.objects.update(updated_at=later + timedelta(hours=5), review_since=now)
    (need,) = observation_attention_items(FleetSnapshot(later))
    assert need.since == later
    DefinitionRevision.objects.update(outcome=RevisionOutcome.VERIFIED)
    (need,) = observation_attention_items(FleetSnapshot(later))
    assert (need.text, need.since) == ("**1 definition** to review", now)


def test_the_item_about_definitions_links_to_the_counted_definitions(revised, observed, client, viewer, now):
    observed(revised, 1, cpu="2.00", memory=4000, storage=5000)
    waits = make_definition()
    LabletDefinition.objects.filter(pk=waits.pk).update(needs_review=True)
    _, need = observation_attention_items(FleetSnapshot(now))
    assert need.text == "**2 definitions** to review"
    client.force_login(viewer)
    assert {row.pk for row in client.get(need.url).context["rows"].rows} == {revised.pk, waits.pk}


def test_two_slowed_sessions_are_a_regression(revised, observed):
    observed(revised, 1, cpu="3.60", memory=2500, storage=5000)
    assert outcome(revised) == "watching"
    observed(revised, 1, cpu="3.60", memory=2500, storage=5000)
    assert outcome(revised) == "regressed"


def test_a_session_without_measured_use_does_not_decide(revised, observed):
    """The revision was based on used figures; allocated ones are not comparable."""
    made = revised.revisions.get(number=2)
    assert (made.memory_gb, made.aggregate["resources"]["memory_gb"]["source"]) == (Decimal(3), "used")
    observed(revised, 1, cpu="2.00", memory=None, storage=5000)
    observed(revised, 4, cpu="2.00", memory=2500, storage=5000)
    assert outcome(revised) == "watching"
    observed(revised, 1, cpu="2.00", memory=2500, storage=5000)
    assert outcome(revised) == "verified"


def test_a_manual_revision_is_judged_with_the_default_source(known, observed, as_admin, now):
    revise_definition(
        definition=known,
        requirements={"memory_gb": Decimal(3)},
        based_on=1,
        reason="by hand",
        actor=as_admin,
        now=now - timedelta(days=1),
    )
    observed(known, 1, cpu="2.00", memory=None, storage=5000)
    assert outcome(known) == "watching"


@pytest.fixture
def observed_now(revised, observed, project, operator, now):
    """The fifth session of a revision: observed while it ran, and collecting since a moment ago."""
    observed(revised, 4, cpu="2.00", memory=2500, storage=5000)
    session = make_past_session(revised, project, operator, ended=now, until=SessionStatus.RUNNING)
    post(session, seen(now, cpu="2.00", memory=2500, storage=5000), now)
    later = now + timedelta(minutes=1)
    transition_session(session=session, to=SessionStatus.COLLECTING, actor=SYSTEM, now=later)
    assert outcome(revised) == "watching"
    return session


@pytest.mark.parametrize(("memory", "then"), [(2500, "verified"), (4000, "regressed")])
def test_the_last_observation_of_a_session_decides(revised, observed_now, now, memory, then):
    later = now + timedelta(minutes=2)
    post(observed_now, seen(later, cpu="2.00", memory=memory, storage=5000), later)
    assert outcome(revised) == then


def test_a_session_that_is_not_observed_again_decides_when_it_stops(revised, observed_now, now):
    later = now + timedelta(minutes=2)
    transition_session(session=observed_now, to=SessionStatus.STOPPING, actor=SYSTEM, now=later)
    assert outcome(revised) == "verified"


def test_an_outcome_is_decided_once(revised, observed):
    observed(revised, 5, cpu="2.00", memory=2500, storage=5000)
    observed(revised, 2, cpu="3.60", memory=4000, storage=5000)
    assert outcome(revised) == "verified"


def test_a_regressed_revision_is_reverted(
    revised, observed, as_admin, now, django_capture_on_commit_callbacks
):
    observed(revised, 1, cpu="2.00", memory=4000, storage=5000)
    assert outcome(revised) == "regressed"
    with django_capture_on_commit_callbacks(execute=True):
        made = revert_definition(
            definition=revised, number=1, based_on=2, reason="it ran out", actor=as_admin, now=now
        )
    revised.refresh_from_db()
    assert (made.number, made.cpu_cores, made.reverts.number) == (3, Decimal("4.00"), 2)
    assert "Revision 2 was exceeded by the sessions after it." not in revised.review_reasons


def test_a_superseded_revision_is_no_longer_judged(revised, regressed, project, operator, as_admin, now):
    """Neither by its running sessions, nor when one of them is excluded or included again."""
    exclude_session(session=regressed, reason="a second manager", actor=as_admin, now=now)
    late = make_past_session(revised, project, operator, ended=now)
    revert_definition(definition=revised, number=1, based_on=2, reason="a guess", actor=as_admin, now=now)
    assert outcome(revised) == "superseded"
    post(late, seen(now, **EXCEEDING), now)
    include_session(session=regressed, reason="it was right", actor=as_admin, now=now)
    assert outcome(revised) == "superseded"


def test_a_revision_is_not_judged_by_kept_resources(known, observed, as_admin, now):
    observed(known, 1, cpu="2.00", memory=4000, storage=5000)
    assert DefinitionAssessment.objects.get().flags == {"memory_gb": "under"}
    apply(known, CPU_RECOMMENDED, as_admin, now)
    observed(known, 4, cpu="2.00", memory=4000, storage=8000)
    assert outcome(known) == "watching"
    observed(known, 1, cpu="2.00", memory=4000, storage=8000)
    assert outcome(known) == "verified"
    assert known.needs_review


def test_a_kept_resource_is_stored_with_its_default_source(revised, observed, as_admin, now):
    choices = {
        "cpu_cores": RequirementChoice("custom", Decimal(3)),
        "memory_gb": RequirementChoice("keep", source="allocated"),
    }
    made = apply(revised, choices, as_admin, now)
    kept = made.aggregate["resources"]["memory_gb"]
    assert (kept["basis"], kept["source"], kept["summary"]["max"]) == ("keep", "used", 245)
    assert made.aggregate["resources"]["cpu_cores"]["source"] == "used"
    observed(revised, 5, cpu="2.00", memory=2500, storage=5000)
    made.refresh_from_db()
    assert (made.number, made.outcome) == (3, "verified")


def test_any_five_sessions_verify_a_revision_without_measured_changes(known, observed, as_admin, now):
    revise_definition(
        definition=known,
        requirements={"gpu": Decimal(1)},
        based_on=1,
        reason="a GPU",
        actor=as_admin,
        now=now,
    )
    observed(known, 4, cpu="5.00", memory=4000, storage=8000)
    assert outcome(known) == "watching"
    observed(known, 1, cpu="5.00", memory=4000, storage=8000)
    assert outcome(known) == "verified"


def test_a_port_revision_is_judged_by_the_last_change_of_amounts(revised, observed, as_admin, now):
    for number in (2, 3):
        made = revise_definition(
            definition=revised,
            requirements={"gpu": Decimal(number)},
            port_template=[],
            based_on=number,
            reason="no ports",
            actor=as_admin,
            now=now,
        )
    assert outcome(revised) == "superseded"
    observed(revised, 4, cpu="2.00", memory=2500, storage=5000)
    observed(revised, 1, cpu="2.00", memory=3100, storage=5000)
    made.refresh_from_db()
    assert (made.number, made.outcome, revert_target(made)) == (4, "regressed", None)


def test_a_manual_revision_is_watched(active_definition, observed, as_admin, now):
    revise_definition(
        definition=active_definition,
        requirements={"cpu_cores": Decimal(3)},
        based_on=1,
        reason="by hand",
        actor=as_admin,
        now=now - timedelta(days=1),
    )
    observed(active_definition, 5, cpu="2.00")
    assert outcome(active_definition) == "verified"


# --- decided again ----------------------------------------------------------------------------------------

REGRESSED = ["Revision 2 was exceeded by the sessions after it."]
WITHIN = {"cpu": "2.00", "memory": 2500, "storage": 5000}
EXCEEDING = {"cpu": "2.00", "memory": 3200, "storage": 5000}  # 3.13 of 3 GB, flagged at once


@pytest.fixture
def regressed(revised, observed):
    """Revision 2 has regressed because of one session."""
    [odd] = observed(revised, 1, **EXCEEDING)
    assert outcome(revised) == "regressed"
    return odd


def events(definition):
    rows = ChangeLog.objects.filter(object_id=str(definition.pk)).order_by("pk")
    return list(rows.values_list("event", flat=True))


def test_excluding_the_exceeding_session_watches_a_regressed_revision_again(
    revised, regressed, observed, as_admin, now
):
    exclude_session(session=regressed, reason="a second manager", actor=as_admin, now=now)
    revised.refresh_from_db()
    assert (outcome(revised), revised.needs_review, revised.review_reasons) == ("watching", False, [])
    entry = ChangeLog.objects.filter(event="definition.watching").order_by("pk").last()
    assert entry.message == "campus v1.0: revision 2 watching, 0 of 5 sessions stayed within limits"
    assert events(revised)[-1] == "definition.cleared"
    observed(revised, 5, **WITHIN)
    assert outcome(revised) == "verified"


def test_including_the_exceeding_session_makes_the_revision_regress_again(revised, regressed, as_admin, now):
    exclude_session(session=regressed, reason="a second manager", actor=as_admin, now=now)
    include_session(session=regressed, reason="it was right", actor=as_admin, now=now)
    revised.refresh_from_db()
    assert (outcome(revised), revised.needs_review) == ("regressed", True)


def test_a_verified_revision_needs_its_five_sessions(revised, observed, as_admin, now):
    first, *_ = observed(revised, 5, **WITHIN)
    assert outcome(revised) == "verified"
    exclude_session(session=first, reason="idle", actor=as_admin, now=now)
    assert outcome(revised) == "watching"
    include_session(session=first, reason="it was right", actor=as_admin, now=now)
    assert outcome(revised) == "verified"


def test_another_session_of_many_changes_no_outcome(revised, regressed, observed, as_admin, now):
    [fine] = observed(revised, 1, **WITHIN)
    exclude_session(session=fine, reason="idle", actor=as_admin, now=now)
    assert outcome(revised) == "regressed"


def test_sessions_of_older_revisions_change_no_outcome(revised, regressed, as_admin, now):
    old = SessionObservation.objects.filter(revision__number=1).first()
    exclude_session(session=old.session, reason="idle", actor=as_admin, now=now)
    assert outcome(revised) == "regressed"


# --- snoozed regressions ------------------------------------------------------------------------------------


@pytest.fixture
def slowed(revised, observed):
    """Revision 2 has regressed by CPU, while many later sessions show that it is right-sized."""
    observed(revised, 2, **{**WITHIN, "cpu": "3.60"})
    observed(revised, 60, **{**WITHIN, "cpu": "3.00"})
    assert DefinitionAssessment.objects.get().flags == {}
    assert revised.review_reasons == REGRESSED
    return revised


def snooze(definition, actor, now, days=7):
    until = now + timedelta(days=days)
    snooze_review(definition=definition, until=until, reason="term ends", actor=actor, now=now)
    definition.refresh_from_db()


def test_a_regression_is_snoozed_until_its_date(slowed, as_admin, now):
    snooze(slowed, as_admin, now)
    assert not slowed.needs_review
    assert not list(observation_attention_items(FleetSnapshot(now)))
    refresh_due_reviews(now=now + timedelta(days=7))
    slowed.refresh_from_db()
    assert slowed.review_reasons == REGRESSED


def test_a_regression_is_dismissed_until_something_is_flagged(slowed, observed, as_admin, now):
    dismiss_review(definition=slowed, reason="a slow hour", actor=as_admin, now=now)
    observed(slowed, 1, **WITHIN)
    assert not slowed.needs_review
    observed(slowed, 1, **EXCEEDING)
    assert [reason.split()[0] for reason in slowed.review_reasons] == ["Memory:", "Revision"]


def test_a_regression_after_a_snooze_needs_review(
    known, observed, as_admin, now, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        apply(
            known, {**BOTH_RECOMMENDED, "cpu_cores": RequirementChoice("custom", Decimal(10))}, as_admin, now
        )
    assert DefinitionAssessment.objects.get().flags == {"cpu_cores": "over"}
    snooze(known, as_admin, now)
    observed(known, 1, **EXCEEDING)
    assert known.review_reasons == REGRESSED


def test_a_repeated_regression_is_no_longer_snoozed(revised, regressed, as_admin, now):
    snooze(revised, as_admin, now)
    assert not revised.needs_review
    exclude_session(session=regressed, reason="a second manager", actor=as_admin, now=now)
    include_session(session=regressed, reason="it was right", actor=as_admin, now=now)
    revised.refresh_from_db()
    assert revised.review_reasons == REGRESSED
