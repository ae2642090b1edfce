"""Events for owners and watchers, and rules whose channel is the inbox."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.domain.roles import Role
from lcm.events.personal import WATCHED
from lcm.models import (
    Cause,
    ChangeLog,
    Channel,
    Delivery,
    DeliveryState,
    LabletSession,
    Membership,
    User,
    Watch,
)
from lcm.selectors.inbox import inbox_of
from lcm.services.event_routing import route_events
from lcm.services.event_rules import create_rule
from lcm.services.sessions import cancel_session
from lcm.services.subscriptions import (
    choose_notifications,
    choose_type,
    stop_watching,
    watch_object,
)
from lcm.services.webhooks import create_webhook, disable_webhook
from tests.support.factories import make_person, make_session


def types_of(user):
    return list(inbox_of(user).order_by("event").values_list("type", flat=True))


@pytest.fixture
def ready(session_in):
    return session_in(SessionStatus.READY)


def test_the_owner_gets_ready_and_failed_in_the_inbox_and_no_email(ready, operator, viewer, now):
    assert ready.owner == operator
    route_events(now=now)
    assert types_of(operator) == ["session.ready"]
    entry = Delivery.objects.get()
    assert (entry.cause, entry.channel, entry.state) == (Cause.OWNER, Channel.INBOX, DeliveryState.DELIVERED)
    assert (entry.read_at, entry.next_attempt_at) == (None, None)
    assert types_of(viewer) == []


def test_the_owner_chooses_event_types_and_channels(ready, operator, settings, now):
    settings.CONFIG["EMAIL_URL"] = "smtp://mail.example.org"
    choose_notifications(
        user=operator,
        choices={Channel.INBOX: ["session.scheduled"], Channel.EMAIL: ["session.ready"]},
        actor=SYSTEM,
        now=now,
    )
    route_events(now=now)
    assert types_of(operator) == ["session.scheduled"]
    mail = Delivery.objects.get(channel=Channel.EMAIL)
    assert (mail.type, mail.address, mail.state) == ("session.ready", "otto@example.org", "pending")


def test_one_type_is_changed_without_the_others(operator, now):
    choose_type(user=operator, name="session.ready", channels={Channel.INBOX: False}, actor=SYSTEM, now=now)
    assert "session.failed" in operator.notification_choices["inbox"]
    assert "session.ready" not in operator.notification_choices["inbox"]
    assert "email" not in operator.notification_choices


def test_an_email_that_cannot_be_sent_is_dropped_with_a_reason(ready, operator, settings, now):
    for address, url, why in (("", "smtp://x", "no e-mail address"), ("otto@example.org", "", "EMAIL_URL")):
        Delivery.objects.all().delete()
        settings.CONFIG["EMAIL_URL"] = url
        User.objects.update(email=address, notification_choices={"email": ["session.ready"]})
        _route_again(now)
        mail = Delivery.objects.get(channel=Channel.EMAIL)
        assert (mail.state, why in mail.error) == (DeliveryState.DROPPED, True)


def _route_again(now):
    ChangeLog._base_manager.filter(routed=True).update(routed=False)
    route_events(now=now)


def test_people_without_a_role_and_closed_accounts_get_nothing(active_definition, project, now):
    stranger = make_person("stan")
    closed = make_person("carla", Role.VIEWER)
    for owner in (stranger, closed):
        Membership.objects.create(project=project, user=owner)
        session = make_session(active_definition, project, owner, status=SessionStatus.READY, now=now)
        watch_object(user=owner, obj=session, now=now)
    User.objects.filter(pk=closed.pk).update(is_active=False)
    route_events(now=now)
    assert not Delivery.objects.exists()


def test_a_rule_sends_no_email_to_a_closed_account_whose_name_is_an_address(session, settings, as_admin, now):
    settings.CONFIG["EMAIL_URL"] = "smtp://mail.example.org"
    person = make_person("carla@example.org", Role.VIEWER)
    names = [person.username, "x@example.org"]
    create_rule(
        name="all", event_types=["session.*"], channel="email", recipients=names, actor=as_admin, now=now
    )
    User.objects.filter(pk=person.pk).update(is_active=False)
    route_events(now=now)
    assert set(Delivery.objects.values_list("address", flat=True)) == {"x@example.org"}


def test_a_watched_object_sends_its_events_until_watching_stops(session, viewer, operator, as_admin, now):
    watch_object(user=viewer, obj=session, now=now)
    watch_object(user=viewer, obj=session, now=now)
    assert Watch.objects.get().object_label == f"session {session.short_id}"
    route_events(now=now)
    assert types_of(viewer) == ["session.requested"]
    assert inbox_of(viewer).get().cause == Cause.WATCHER
    stop_watching(user=viewer, object_type="labletsession", object_id=str(session.pk))
    cancel_session(session=session, reason="late", actor=as_admin, now=now)
    route_events(now=now)
    assert types_of(viewer) == ["session.requested"]


def test_watching_a_definition_covers_the_definition_and_not_its_sessions(session, viewer, now):
    watch_object(user=viewer, obj=session.definition, now=now)
    route_events(now=now)
    assert types_of(viewer) == ["definition.imported"]


def test_a_person_gets_an_event_once_whatever_the_number_of_reasons(ready, operator, settings, as_admin, now):
    settings.CONFIG["EMAIL_URL"] = "smtp://mail.example.org"
    watch_object(user=operator, obj=ready, now=now)
    choose_notifications(
        user=operator,
        choices={Channel.EMAIL: [WATCHED, "session.ready"]},
        actor=SYSTEM,
        now=now,
    )
    for number, (name, channel, who) in enumerate(
        [
            ("inbox", "inbox", ["otto", "role:Operator"]),
            ("mail", "email", ["otto@example.org", "otto"]),
            ("again", "email", ["role:Operator"]),
        ]
    ):
        create_rule(
            name=name,
            event_types=["session.ready"],
            channel=channel,
            recipients=who,
            actor=as_admin,
            now=now + timedelta(seconds=number),
        )
    route_events(now=now)
    _route_again(now)
    found = Delivery.objects.filter(type="session.ready").order_by("channel")
    assert list(found.values_list("channel", "cause", "rule__name")) == [
        ("email", "rule", "mail"),
        ("inbox", "rule", "inbox"),
    ]


def test_a_rule_for_a_role_reaches_the_people_with_exactly_this_role(
    session, viewer, operator, admin, as_admin, now
):
    create_rule(
        name="r",
        event_types=["session.requested"],
        channel="inbox",
        recipients=["role:Admin", "vera"],
        actor=as_admin,
        now=now,
    )
    route_events(now=now)
    assert sorted(Delivery.objects.values_list("recipient__username", flat=True)) == ["ada", "vera"]


def test_the_owner_of_a_webhook_learns_that_it_is_disabled(admin, as_admin, settings, now):
    settings.CONFIG["EMAIL_URL"] = "smtp://mail.example.org"
    webhook, _ = create_webhook(name="chat", url="https://hooks.example.org/x", actor=as_admin, now=now)
    disable_webhook(webhook=webhook, reason="every attempt failed", now=now)
    route_events(now=now)
    assert types_of(admin) == ["webhook.disabled"]
    assert Delivery.objects.get(channel=Channel.EMAIL).address == admin.email


def test_the_number_of_queries_does_not_depend_on_events_rules_people_and_watchers(
    active_definition, project, as_admin, settings, now
):
    settings.CONFIG["EMAIL_URL"] = "smtp://mail.example.org"

    def add(count, start):
        for number in range(start, start + count):
            person = make_person(f"p{number}", Role.VIEWER)
            person.notification_choices = {"email": ["session.ready", WATCHED]}
            person.save()
            Membership.objects.create(project=project, user=person)
            session = make_session(active_definition, project, person, status=SessionStatus.READY, now=now)
            for watcher in User.objects.all():
                watch_object(user=watcher, obj=session, now=now)
            for channel in ("inbox", "email"):
                create_rule(
                    name=f"{channel}-{number}",
                    event_types=["session.*"],
                    channel=channel,
                    recipients=[person.username, "role:Viewer"],
                    actor=as_admin,
                    now=now,
                )

    def queries():
        with CaptureQueriesContext(connection) as captured:
            route_events(now=now)
        # The database limits the rows of one INSERT.
        return len([each for each in captured if not each["sql"].startswith("INSERT")])

    add(1, 0)
    few = queries()
    add(6, 1)
    assert queries() == few
    assert few <= 11
    assert Delivery.objects.filter(channel=Channel.EMAIL).exists()
    assert LabletSession.objects.count() == 7
