"""Changes by time alone: each assessment stores when it is due, and all due ones are reassessed."""

from datetime import UTC, datetime, timedelta

import pytest

from observations.arithmetic.assessment import next_change
from observations.models import DefinitionAssessment
from observations.selectors.evidence import evidence_of
from observations.services import review_snooze
from observations.services.review_snooze import refresh_due_reviews, snooze_review
from tests.support.factories import make_definition

DAY = timedelta(days=1)


def day(number):
    return datetime(2026, 3, 1, tzinfo=UTC) + number * DAY


TODAY = day(0).toordinal()


@pytest.mark.parametrize(
    ("days", "newest", "due"),
    [
        ([], None, None),
        ([0], day(0), day(30)),  # its waste counts for thirty days
        ([-29, 0], day(0), day(1)),  # the oldest day drops out tomorrow
        ([], day(-31), day(30)),  # sixty days old then, and a day
        ([], day(-60), day(1)),
        ([], day(-61), None),  # already old
    ],
)
def test_an_assessment_has_a_due_time(days, newest, due):
    kept = {str(TODAY + number): [1, 1, 1] for number in days}
    assert next_change(kept, newest, today=TODAY) == due


@pytest.fixture
def idle(observed):
    """Four definitions without new sessions."""
    made = [make_definition(f"idle-{number}", pool="cml-eu") for number in range(4)]
    for definition in made:
        observed(definition, 22, cpu="1.00", memory=1024)
    return made


def kept_of(definition):
    return DefinitionAssessment.objects.get(definition=definition)


def test_all_due_definitions_are_reassessed_with_small_pages(idle, now):
    later = now + 31 * DAY
    assert refresh_due_reviews(now=later, page=1) == 4
    assert {kept_of(each).waste_cpu for each in idle} == {0}
    assert refresh_due_reviews(now=later) == 0


def test_no_definition_is_reassessed_before_it_is_due(idle, now):
    assert refresh_due_reviews(now=now + 2 * DAY) == 0
    assert refresh_due_reviews(now=now + 31 * DAY) == 4
    assert refresh_due_reviews(now=now + 45 * DAY) == 0


def test_a_failed_definition_does_not_stop_the_others(idle, now, monkeypatch):
    refresh = review_snooze.refresh_assessment
    broken = min(each.pk for each in idle)

    def fail_once(*, definition, now):
        if definition.pk == broken:
            raise RuntimeError("broken")
        return refresh(definition=definition, now=now)

    monkeypatch.setattr(review_snooze, "refresh_assessment", fail_once)
    later = now + 31 * DAY
    assert refresh_due_reviews(now=later, page=2) == 3
    monkeypatch.undo()
    assert refresh_due_reviews(now=later) == 1


def test_old_evidence_has_lower_confidence_in_list_and_page(active_definition, observed, now):
    observed(active_definition, 22, cpu="2.00", memory=3000, storage=6500)
    for days in range(1, 91):
        refresh_due_reviews(now=now + days * DAY)
        view = evidence_of(active_definition, now=now + days * DAY).views["cpu_cores"]
        assert kept_of(active_definition).confidence == view.confidence.level
    assert view.confidence.level == "medium"
    assert kept_of(active_definition).due_at is None


def test_a_snooze_is_due_at_its_end(active_definition, observed, as_admin, now):
    observed(active_definition, 10, cpu="2.00", memory=3000, storage=6500)
    until = now + 7 * DAY
    snooze_review(definition=active_definition, until=until, reason="exams", actor=as_admin, now=now)
    assert kept_of(active_definition).due_at == until
    assert refresh_due_reviews(now=until) == 1
    assert kept_of(active_definition).snoozed_until is None
