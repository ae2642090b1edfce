"""Pages with live statistics."""

import re
import time
from datetime import timedelta

import pytest
import time_machine
from django.conf import settings
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from lcm.domain.lifecycle import SessionStatus
from lcm.models import Kernel
from observations.livestats.history import History
from observations.livestats.states import LiveState
from observations.pages.live_texts import bytes_text, readings, spark_of
from scheduling.models import Reservation, ReservationPart
from tests.support.control_plane import free_address
from tests.support.fake_prometheus import FakeResponse, always, gauge, increase, last_read, vector
from tests.support.observed_labs import on_slot

GB = 1024**3


@pytest.fixture
def running(session_in):
    return session_in(SessionStatus.RUNNING)


@pytest.fixture
def viewer_client(client, viewer):
    client.force_login(viewer)
    return client


def responses_for(session, age=1.0):
    """Return samples in which every node of the session uses half of its capacity."""
    keys = list(session.kernels.order_by("node_label").values_list("pk", flat=True))

    def respond(query):
        if query.kind == "busiest":
            return FakeResponse(vector(({"session_id": str(session.pk)}, 1.75)))
        if query.kind != "gauge":
            return FakeResponse(vector(*[increase(str(key), "net_rx", 1024) for key in keys]))
        samples = []
        for key in map(str, keys):
            samples += [gauge(key, "cpu_util", 0.5), gauge(key, "cpu_util", 1, "capacity")]
            samples += [gauge(key, "mem", GB), gauge(key, "mem", 2 * GB, "capacity")]
            samples.append(last_read(key, time.time() - age))
        return FakeResponse(vector(*samples))

    return respond


def panel(client, session, **query):
    response = client.get(reverse("session_live", args=[session.pk]), query, HTTP_HX_REQUEST="true")
    assert response.status_code == 200
    return response.content.decode()


@pytest.fixture
def configured(settings):
    settings.CONFIG["PROMETHEUS_URL"] = "http://prometheus:9090"


def test_a_session_page_has_the_live_panel_while_the_lab_exists(viewer_client, session_in, configured):
    for status, shown in ((SessionStatus.RUNNING, True), (SessionStatus.TERMINATED, False)):
        session = session_in(status)
        page = viewer_client.get(reverse("session_detail", args=[session.pk])).content.decode()
        assert (reverse("session_live", args=[session.pk]) in page) == shown


@pytest.mark.parametrize(("role", "is_shown"), [("viewer", False), ("operator", False), ("admin", True)])
def test_without_prometheus_only_those_who_can_configure_it_see_the_live_panels(
    role, is_shown, client, running, request
):
    client.force_login(request.getfixturevalue(role))
    slot = on_slot(running)
    pages = {
        reverse("session_detail", args=[running.pk]): reverse("session_live", args=[running.pk]),
        reverse("slot_detail", args=[slot.pk]): reverse("slot_live", args=[slot.pk]),
        reverse("home"): reverse("busiest_sessions"),
    }
    for page, panel_url in pages.items():
        assert (f'hx-get="{panel_url}"' in client.get(page).content.decode()) is is_shown, page


def test_the_panel_shows_the_total_and_each_node(viewer_client, running, prometheus):
    prometheus.respond = responses_for(running)
    text = panel(viewer_client, running)
    assert "3 nodes, usage relative to allocation" in text
    assert "1.50 <small>of 3\N{NO-BREAK SPACE}cores, 50\N{NO-BREAK SPACE}%" in text
    assert "3.0 GB <small>of 6.0 GB, 50\N{NO-BREAK SPACE}%" in text
    assert text.count('aria-label="CPU of ') == 3
    assert 'hx-trigger="every 5s"' in text
    assert "<html" not in text


def test_without_javascript_the_panel_is_a_page(viewer_client, running, prometheus):
    prometheus.respond = responses_for(running)
    page = viewer_client.get(reverse("session_live", args=[running.pk])).content.decode()
    assert "<html" in page
    assert "1.50 <small>of 3\N{NO-BREAK SPACE}cores" in page
    assert "?range=all" in page


@pytest.fixture
def running_for_days(running):
    running.kernels.update(started_at=timezone.now() - timedelta(days=3))
    return running


def test_polling_keeps_the_selected_range(viewer_client, running_for_days, prometheus):
    address = reverse("session_live", args=[running_for_days.pk])
    text = panel(viewer_client, running_for_days, range="24h")
    assert f'{address}?range=24h" hx-trigger' in text
    text = panel(viewer_client, running_for_days, range="nonsense")
    assert f'{address}?range=1h" hx-trigger' in text
    assert "The range “nonsense” is unknown. Choose one of 1h, 6h, 24h, all, custom." in text


def test_only_ranges_within_the_life_of_a_session_are_offered(viewer_client, running_for_days, prometheus):
    offered = re.findall(r"hx-get=[^>]*range=(\w+)\" hx-target", panel(viewer_client, running_for_days))
    assert offered == ["1h", "6h", "24h", "all"]
    text = panel(viewer_client, running_for_days, range="7d")
    assert "The range 7 d cannot be shown. The session has figures since " in text


def test_a_link_of_the_panel_puts_the_range_into_the_address_of_the_page(viewer_client, running_for_days):
    around = reverse("session_detail", args=[running_for_days.pk])
    address = reverse("session_live", args=[running_for_days.pk])
    headers = {"HX-Request": "true", "HX-Current-URL": f"http://testserver{around}?range=6h"}
    with override_settings(CONFIG={**settings.CONFIG, "PROMETHEUS_URL": "http://127.0.0.1:9"}):
        text = viewer_client.get(address, headers=headers).content.decode()
    assert f'href="{around}?range=24h" hx-get="{address}?range=24h"' in text
    assert f'hx-push-url="{around}?range=24h"' in text
    assert f'<a href="{around}?range=6h"' in text.partition(' aria-current="true"')[0]


@pytest.mark.parametrize("name", ["session_live", "slot_live"])
def test_figures_of_a_custom_range_use_as_many_queries(name, viewer_client, running_for_days, prometheus):
    Kernel.objects.filter(session=running_for_days).update(status="RUNNING")
    key = running_for_days.pk if name == "session_live" else on_slot(running_for_days).pk
    prometheus.respond = responses_for(running_for_days)
    now, counts = timezone.now(), []
    custom = {
        "range": "custom",
        "from": (now - timedelta(days=2)).isoformat(),
        "to": (now - timedelta(days=1)).isoformat(),
    }
    for query in ({}, custom):
        with CaptureQueriesContext(connection) as captured:
            response = viewer_client.get(reverse(name, args=[key]), query)
        counts.append(len(captured))
    assert response.context["range"].is_custom
    assert counts[0] == counts[1] <= 20


def test_without_prometheus_the_panel_names_the_setting(viewer_client, running):
    text = panel(viewer_client, running)
    assert "Not configured" in text
    assert "PROMETHEUS_URL" in text
    assert "unknown" not in text
    assert "usage relative to allocation" not in text
    slot = on_slot(running)
    for page in (text, viewer_client.get(reverse("slot_live", args=[slot.pk])).content.decode()):
        assert "every 5s" not in page, "nothing will be requested again"


@pytest.fixture
def a_moment_later():
    """Advance a frozen clock, because ages are shown in seconds."""
    with time_machine.travel(timezone.now(), tick=False) as clock:
        yield lambda: clock.shift(0.01)


def test_during_an_outage_the_last_figures_stay_with_their_age(
    viewer_client, running, prometheus, a_moment_later
):
    prometheus.respond = responses_for(running, age=90)
    panel(viewer_client, running)
    prometheus.respond = always(FakeResponse(b"", 502))
    a_moment_later()
    text = panel(viewer_client, running)
    assert "Prometheus is not responding" in text
    assert "The figures below are 1 min 30 s old." in text
    assert "3.0 GB <small>of 6.0 GB" in text


def test_while_prometheus_is_downloaded_pages_say_so(viewer_client, running, settings, tmp_path):
    """Pages keep refreshing, because Prometheus starts later."""
    (tmp_path / "status").write_text("LCM is downloading Prometheus")
    unreachable = {"PROMETHEUS_URL": f"http://{free_address()}", "LIVE_STATS_CACHE_SECONDS": 0.0}
    settings.CONFIG |= {**unreachable, "PROMETHEUS_STATUS_FILE": str(tmp_path / "status")}
    busiest = viewer_client.get(reverse("busiest_sessions")).content.decode()
    for text in (panel(viewer_client, running), busiest):
        assert "LCM is downloading Prometheus" in text
        assert "every " in text
    (tmp_path / "status").write_text("")
    assert "All connection attempts failed" in panel(viewer_client, running)


def test_stale_and_missing_figures_are_named(viewer_client, running, prometheus, a_moment_later):
    prometheus.respond = responses_for(running, age=90)
    assert "The newest figures are 1 min 30 s old" in panel(viewer_client, running)
    well = responses_for(running)
    prometheus.respond = lambda query: FakeResponse(b"", 500) if query.kind == "rate" else well(query)
    a_moment_later()
    assert "Missing: network traffic. HTTP 500." in panel(viewer_client, running)
    prometheus.respond = always(FakeResponse(vector()))
    a_moment_later()
    assert "Prometheus has no figures for these nodes yet." in panel(viewer_client, running)


def test_a_session_that_has_ended_is_not_polled(viewer_client, session_in, prometheus):
    assert "hx-trigger" not in panel(viewer_client, session_in(SessionStatus.TERMINATED)).replace(
        'hx-target="#panel-live"', ""
    )


def test_a_slot_shows_its_total_and_its_sessions(viewer_client, running, prometheus):
    Kernel.objects.filter(session=running).update(status="RUNNING")
    slot = on_slot(running)
    prometheus.respond = responses_for(running)
    page = viewer_client.get(reverse("slot_detail", args=[slot.pk])).content.decode()
    assert reverse("slot_live", args=[slot.pk]) in page
    text = viewer_client.get(reverse("slot_live", args=[slot.pk])).content.decode()
    # The reserved amount, as in the bars of the worker; CML reports 3 cores.
    assert "1.50 <small>of 4\N{NO-BREAK SPACE}cores, 38\N{NO-BREAK SPACE}%" in text
    assert "usage relative to reserved resources" in text
    assert running.short_id in text


def test_a_slot_shows_only_its_own_nodes_of_a_spread_session(viewer_client, running, prometheus):
    Kernel.objects.filter(session=running).update(status="RUNNING")
    slot = on_slot(running)
    Reservation.objects.filter(session=running).update(spread=True)
    claim = Reservation.objects.get(session=running)
    ReservationPart.objects.create(
        reservation=claim, slot=slot, kernels=["r1", "r2"], cpu_cores=2, memory_gb=1, storage_gb=1
    )
    prometheus.respond = responses_for(running)
    text = viewer_client.get(reverse("slot_live", args=[slot.pk])).content.decode()
    assert "1.00 <small>of 2\N{NO-BREAK SPACE}cores" in text


def test_the_busiest_sessions_are_listed(viewer_client, running, session_in, prometheus):
    prometheus.respond = responses_for(running)
    text = viewer_client.get(reverse("busiest_sessions")).content.decode()
    assert running.short_id in text
    assert "1.75" in text
    assert re.search(r"Updated <time[^>]+>just now", text)
    prometheus.respond = always(FakeResponse(b"", 500))
    down = viewer_client.get(reverse("busiest_sessions")).content.decode()
    assert "Prometheus is not responding" in down
    assert running.short_id in down
    assert 'class="updated is-stale"' in down


def test_without_prometheus_the_busiest_panel_names_the_setting(viewer_client):
    page = viewer_client.get(reverse("busiest_sessions")).content.decode()
    assert "PROMETHEUS_URL" in page
    assert "every 10s" not in page, "nothing will be requested again"


def test_a_sparkline_has_a_gap_without_measurements():
    start = timezone.now().replace(microsecond=0)
    history = History(LiveState.OK, start, start + timedelta(seconds=100), 10, {})
    begin = start.timestamp()
    points = tuple((begin + offset, 1.0) for offset in (0, 10, 20, 60, 70))
    spark = spark_of("CPU", points, history, text=str)
    assert len(spark.strokes) == len(spark.areas) == 2
    assert spark.strokes[0].startswith("0.0,2.0 ")
    assert spark.rows[-1][0].timestamp() == begin + 70
    assert spark_of("CPU", (), history, text=str) is None


def test_a_sparkline_of_cpu_has_its_unit():
    start = timezone.now().replace(microsecond=0)
    history = History(LiveState.OK, start, start + timedelta(seconds=20), 10, {})
    points = tuple((start.timestamp() + at, value) for at, value in ((0, 0.5), (10, 1.0), (20, 1.25)))
    spark = readings({}, {"cpu_util": points}, history)[0].spark
    assert spark.title.endswith(": from 0.50 cores to 1.25 cores, last 1.25 cores")
    assert [text for _, text in spark.rows] == ["0.50 cores", "1.00 core", "1.25 cores"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (999, "999 B"), (1024, "1.0 KB"), (150 * 1024, "150 KB"), (3 * GB, "3.0 GB")],
)
def test_bytes_have_a_unit(value, text):
    assert bytes_text(value) == text
