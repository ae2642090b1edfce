"""Rate limits of callers."""

from datetime import timedelta
from unittest.mock import Mock

import pytest
from redis.exceptions import ConnectionError as RedisDown

from lcm.web.server.rate_limit import parse_rate
from tests.support.factories import make_person_token

SESSIONS = "/api/lablet-sessions/"


@pytest.fixture
def three_a_minute(settings):
    settings.CONFIG["API_RATE"] = settings.CONFIG["CONTROLLER_RATE"] = "3/min"


def statuses(client, times):
    return [client.get(SESSIONS).status_code for _ in range(times)]


@pytest.mark.usefixtures("one_window")
def test_a_caller_is_limited_to_the_rate(three_a_minute, api, viewer):
    assert statuses(api(viewer), 5) == [200, 200, 200, 429, 429]


@pytest.mark.usefixtures("one_window")
def test_callers_are_counted_separately(three_a_minute, api, viewer, operator, controller, other_controller):
    for caller in (viewer, operator, controller, other_controller):
        assert statuses(api(caller), 4) == [200, 200, 200, 429]


@pytest.mark.usefixtures("one_window")
def test_login_and_token_of_a_person_share_a_counter(three_a_minute, api, viewer):
    assert statuses(api(viewer), 2) == [200, 200]
    assert statuses(api(make_person_token(viewer)), 2) == [200, 429]


def test_the_next_window_starts_at_zero(three_a_minute, api, controller, time_machine):
    time_machine.move_to(controller.token.created_at, tick=False)
    assert statuses(api(controller), 4)[-1] == 429
    time_machine.shift(timedelta(minutes=1))
    assert statuses(api(controller), 1) == [200]


@pytest.mark.parametrize("second", [0, 30.4, 58.6, 59.7])
def test_after_retry_after_the_caller_is_admitted(second, three_a_minute, api, controller, time_machine):
    minute = controller.token.created_at.replace(second=0, microsecond=0) + timedelta(minutes=1)
    time_machine.move_to(minute + timedelta(seconds=second), tick=False)
    client = api(controller)
    statuses(client, 3)
    response = client.get(SESSIONS)
    assert response.status_code == 429
    time_machine.shift(timedelta(seconds=int(response["Retry-After"])))
    assert client.get(SESSIONS).status_code == 200


@pytest.mark.usefixtures("one_window")
def test_a_throttled_change_changes_nothing(three_a_minute, api, operator, session):
    client = api(operator)
    statuses(client, 3)
    assert client.post(f"{SESSIONS}{session.pk}/cancel/", {"reason": "late"}).status_code == 429
    session.refresh_from_db()
    assert session.status == "PENDING"


@pytest.mark.parametrize("error", [RedisDown("no Redis"), OSError("no socket")])
def test_no_caller_is_blocked_when_redis_is_down(error, three_a_minute, api, viewer, monkeypatch):
    monkeypatch.setattr("lcm.web.server.rate_limit.cache", Mock(incr=Mock(side_effect=error)))
    assert statuses(api(viewer), 5) == [200] * 5


@pytest.mark.parametrize(
    ("text", "rate"),
    [("5/sec", (5, 1)), ("600/min", (600, 60)), ("1/hour", (1, 3600)), ("9/day", (9, 86400))],
)
def test_a_rate_is_parsed(text, rate):
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    "text", ["", "5", "/min", "0/min", "-1/min", "5/minute", "5 / min", "x/min", "²/min"]
)
def test_an_invalid_rate_is_rejected(text):
    with pytest.raises(ValueError):
        parse_rate(text)
