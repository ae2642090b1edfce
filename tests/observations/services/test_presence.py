"""Silent controllers: one event when a controller is silent, one when it is back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from lcm.domain.actors import SYSTEM
from lcm.events.catalog import events_data
from lcm.models import ApiToken, ChangeLog
from lcm.services.tokens import revoke_token
from observations.models import Presence
from observations.services.presence import announce_silent_controllers
from scheduling.models import Pool
from scheduling.services.controller_leases import acquire_leases, release_leases

MINUTE = timedelta(minutes=1)
NAME = "eu-1"


@pytest.fixture
def heartbeat(active_definition, controller, now):
    """`heartbeat(minutes)`: the controller of cml-eu reports this long after now; it has reported now."""

    def send(minutes):
        acquire_leases(token=controller.token, holder=NAME, now=now + minutes * MINUTE)

    send(0)
    return send


def events():
    rows = ChangeLog.objects.filter(event__startswith="controller.").order_by("pk")
    return list(rows.values_list("event", flat=True))


@pytest.mark.parametrize(("minutes", "silent"), [(4.9, False), (5, True), (60, True), (25 * 60, False)])
def test_a_controller_is_silent_after_five_minutes_and_forgotten_after_a_day(minutes, silent, heartbeat, now):
    for _ in range(2):
        announce_silent_controllers(now=now + minutes * MINUTE)
    assert events() == ["controller.silent"] * silent


def test_its_next_heartbeat_is_announced_once_and_the_next_silence_again(heartbeat, now):
    announce_silent_controllers(now=now + 6 * MINUTE)
    heartbeat(7)
    heartbeat(7.1)
    assert events() == ["controller.silent", "controller.back"]
    announce_silent_controllers(now=now + 20 * MINUTE)
    assert events()[2:] == ["controller.silent"]


def test_an_event_links_to_the_controllers_page(heartbeat, now, client, viewer):
    announce_silent_controllers(now=now + 6 * MINUTE)
    entry = ChangeLog.objects.get(event="controller.silent")
    assert entry.message == f"controller {NAME} is silent: no heartbeat since {now:%Y-%m-%d %H:%M:%S} UTC"
    (data,) = events_data([entry])
    assert (data.pool, data.seen_at, data.name) == ("cml-eu", now, f"controller {NAME}")
    assert data.url.endswith(reverse("controller_list"))
    client.force_login(viewer)
    text = client.get(reverse("change_detail", args=[entry.pk])).content.decode()
    assert f'<a href="{reverse("controller_list")}">controller {NAME}</a>' in text


@pytest.mark.parametrize("case", ["ended", "revoked", "on a worker"])
def test_controllers_that_need_not_report_are_not_announced(case, heartbeat, controller, now, pools):
    if case == "ended":
        release_leases(token=controller.token, holder=NAME, now=now)
    elif case == "revoked":
        revoke_token(token=controller.token, reason="replaced", actor=SYSTEM, now=now)
    else:
        scopes = ["pool:cml-eu", f"slot:{pools['cml-eu'].pk}"]
        ApiToken.objects.filter(pk=controller.token.pk).update(scopes=scopes)
    announce_silent_controllers(now=now + 6 * MINUTE)
    assert events() == []


def test_a_silent_controller_that_ends_is_not_announced_as_back(heartbeat, controller, now):
    announce_silent_controllers(now=now + 6 * MINUTE)
    release_leases(token=controller.token, holder=NAME, now=now + 7 * MINUTE)
    heartbeat(8)
    assert events() == ["controller.silent"]


@pytest.fixture
def pools(active_definition):
    return {pool.name: pool for pool in Pool.objects.all()}


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_processes_that_look_at_once_announce_each_change_once(heartbeat, now, at_once):
    looks = [lambda: announce_silent_controllers(now=now + 6 * MINUTE)] * 4
    assert at_once(*looks) == [None] * 4
    assert at_once(*[lambda: heartbeat(7)] * 4) == [None] * 4
    assert events() == ["controller.silent", "controller.back"]
    assert Presence.objects.get().silent_since is None
