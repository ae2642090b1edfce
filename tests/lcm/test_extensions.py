"""Extensions: what apps add is joined in order, and a key belongs to one app."""

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured

from lcm.domain.errors import InvalidInput
from lcm.domain.lifecycle import SessionStatus
from lcm.extensions import Extension, declared
from lcm.services.jobs import JobStep
from lcm.services.sessions import cancel_session
from lcm.web.added_filters import with_added_filters
from lcm.web.filters import DefinitionFilter, SessionFilter
from lcm.web.list_columns import Column, with_added
from lcm.web.navigation import navigation_groups
from scheduling.extensions import SchedulingExtension
from scheduling.models import Phase, Reservation
from tests.support import extensions

GROUPS = {
    "": ["overview", "inbox", "sessions", "queue"],
    "Plan": ["definitions", "capacity", "drift", "fairshare", "domains", "projects"],
    "System": ["people", "tokens", "controllers", "notifications", "jobs", "changes", "observers"],
}


def no_work(job, now):
    return JobStep()


def test_every_app_declares_one_extension():
    with_one = {config.name for config in apps.get_app_configs() if hasattr(config, "extension")}
    assert with_one == {"lcm", "scheduling", "fairshare", "observations"}
    assert len(declared()) == len(with_one)


def test_navigation_entries_stand_in_the_order_that_the_apps_declare():
    assert {group.key: [entry.key for entry in group.entries] for group in navigation_groups()} == GROUPS


def test_entries_are_joined_in_the_order_of_the_apps():
    titles = [str(finder.title) for finder in Extension.installed().finders]
    assert titles == ["Sessions", "Definitions", "Projects", "People", "Slots", "Pools"]
    with extensions.added(Extension(jobs={"own": no_work})):
        assert list(Extension.installed().jobs)[-1] == "own"
    assert "own" not in Extension.installed().jobs


def test_what_scheduling_accepts_comes_from_the_apps_that_depend_on_it():
    observers = [observer.name() for observer in SchedulingExtension.installed().observers]
    assert observers == [
        "usage-record",
        "usage-aggregation",
        "fair-share-calculation",
        "service-discovery",
    ]
    assert not hasattr(Extension.installed(), "observers")


def test_effects_run_in_order_and_fail_with_the_change(session, as_operator, now):
    seen = []

    def reject(**change):
        seen.append((change["session_ids"], change["old"], change["new"], change["lab_removed"]))
        raise InvalidInput({"status": "not now"})

    with extensions.added(Extension(sessions_moved=[reject])), pytest.raises(InvalidInput):
        cancel_session(session=session, reason="test", actor=as_operator, now=now)
    assert seen == [([session.pk], SessionStatus.PENDING, SessionStatus.CANCELLED, False)]
    session.refresh_from_db()
    assert session.status == SessionStatus.PENDING
    assert Reservation.objects.get(session=session).phase == Phase.PENDING


def test_added_columns_stand_after_a_column_or_take_its_place():
    own = [Column("A", str, name="a"), Column("B", str, name="b"), Column("C", str, name="c")]
    added = [
        Column("A1", str, after="a"),
        Column("A2", str, after="a"),
        Column("other B", str, name="b"),
        Column("D", str),
    ]
    columns = with_added(own, added, hidden=["c"])
    assert [column.label for column in columns] == ["A", "A1", "A2", "other B", "C", "D"]
    assert [column.label for column in columns if column.optional] == ["C"]


def test_a_filter_is_added_to_the_list_that_an_app_names():
    assert {"class", "observed"} <= with_added_filters(DefinitionFilter).base_filters.keys()
    assert "class" not in DefinitionFilter.base_filters
    assert with_added_filters(SessionFilter) is SessionFilter


def test_two_apps_cannot_declare_the_same_key():
    with (
        extensions.added(Extension(jobs={"bulk": no_work})),
        pytest.raises(ImproperlyConfigured, match="bulk"),
    ):
        Extension.installed()
