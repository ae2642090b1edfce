"""The list of pools and a pool's board."""

from datetime import timedelta

import pytest
from django.urls import reverse

from scheduling.models import Pool, SlotState, TickRun
from scheduling.pages import pool_board
from scheduling.services.slots import record_interruption
from tests.support.capacity_setup import make_slot, pool_named, put_on, put_session_on, reserve

HTMX = {"HX-Request": "true"}


def pool_url(pool):
    return reverse("pool_detail", args=[pool.pk])


def test_the_list_shows_usage_demand_and_policy(login_as, viewer, pool, now, page_text):
    ready = make_slot(pool, 1)
    make_slot(pool, 2, SlotState.BOOTING)
    put_on(ready, reserve(pool, now), now)
    reserve(pool, now - timedelta(hours=4))
    page = login_as(viewer).get("/pools/")
    assert "1 slot ready · 4 can be launched · 1 waiting." in page_text(page)
    assert "cml-eu Evening courses Enabled CML Simulated 1 offering" in page_text(page)
    assert "1 of 6 1 of 10 CPU 12 % 1 4 h ago 0 / 0 / 6" in page_text(page)


def test_a_stopped_pool_shows_no_launchable_slots(login_as, viewer, pool, now, page_text):
    make_slot(pool, 1)
    Pool.objects.filter(pk=pool.pk).update(stopped_reason="no such template")
    expected_text = "1 slot ready · 0 waiting. 1 pool stopped or backing off."
    assert expected_text in page_text(login_as(viewer).get("/pools/"))
    assert "1 slot ready · 0 waiting." in page_text(login_as(viewer).get(pool_url(pool)))


def test_the_list_of_pools_has_an_empty_state(login_as, viewer, page_text):
    assert "No pools yet." in page_text(login_as(viewer).get("/pools/"))


@pytest.mark.parametrize(
    ("fields", "state", "expected_text"),
    [
        ({"enabled": False}, "off", "Off"),
        ({"stopped_reason": "no such template"}, "stopped", "Stopped until its settings change"),
        ({"backoff_until": timedelta(minutes=9), "failures": 2}, "backing off", "Backing off until"),
        ({}, "enabled", "Enabled"),
    ],
)
def test_pools_are_shown_with_their_state_and_filtered_by_it(
    login_as, viewer, pool, now, page_text, fields, state, expected_text
):
    pool_named("cml-other", enabled=state != "enabled")
    if state == "off":
        Pool.objects.filter(name="cml-other").update(stopped_reason="another")
    if "backoff_until" in fields:
        fields = {**fields, "backoff_until": now + fields["backoff_until"]}
    if fields:
        Pool.objects.filter(pk=pool.pk).update(**fields)
    page = login_as(viewer).get("/pools/", {"state": state})
    assert expected_text in page_text(page)
    assert [row.name for row in page.context["rows"].rows] == ["cml-eu"]


def exported(response):
    return response.getvalue().decode()


@pytest.mark.django_db(transaction=True)
def test_the_list_is_searched_and_exported(login_as, viewer, pool):
    pool_named("gpu-lab", system="gpu")
    client = login_as(viewer)
    assert [row.name for row in client.get("/pools/?q=gpu").context["rows"].rows] == ["gpu-lab"]
    body = exported(client.get("/pools/?format=csv"))
    assert body.splitlines()[0].startswith("Pool,State,System,Runtime,Offerings,Ready slots,Leases used")
    assert body.splitlines()[0].endswith("Fullest resource,Waiting,Oldest wait,Min,Warm,Max")
    assert len(body.splitlines()) == 3


def test_a_pool_page_starts_with_its_state(login_as, viewer, pool, session, now, page_text):
    for number in (1, 2, 3):
        make_slot(pool, number)
    make_slot(pool, 4, SlotState.BINDING)
    session.reservations.update(created_at=now - timedelta(minutes=4))
    page = login_as(viewer).get(pool_url(pool))
    assert "3 slots ready · 2 can be launched · 1 session waiting, for 4 min" in page_text(page)
    assert "1 slot starting." in page_text(page)


@pytest.mark.parametrize(
    ("ready", "waiting", "expected_text"),
    [
        (0, 0, "0 slots ready · 6 can be launched · 0 waiting."),
        (1, 0, "1 slot ready · 5 can be launched · 0 waiting."),
        (2, 2, "2 slots ready · 4 can be launched · 2 reservations waiting, the oldest for 1 h"),
    ],
)
def test_the_status_line_counts_slots_and_reservations(
    login_as, viewer, pool, now, page_text, ready, waiting, expected_text
):
    for number in range(ready):
        make_slot(pool, number + 1)
    for hours in range(waiting):
        reserve(pool, now - timedelta(hours=hours))
    assert expected_text in page_text(login_as(viewer).get(pool_url(pool)))


@pytest.mark.parametrize(
    ("fields", "expected_text"),
    [
        ({"enabled": False}, "The pool is disabled. It accepts no new sessions and launches nothing"),
        (
            {"stopped_reason": "There is no launch template “lt-1”."},
            "There is no launch template “lt-1”. Nothing is launched until its settings are changed.",
        ),
        ({"backoff": 300, "failures": 2}, "Nothing is launched after 2 failures. Launches resume at"),
        ({"backoff": 90}, "Nothing is launched: the provider has no capacity. Launches resume at"),
        ({"refused": 120}, "sim-large was refused. The provider had no capacity. LCM tries again in"),
    ],
)
def test_a_pool_that_cannot_launch_shows_the_reason_and_the_remedy(
    login_as, viewer, pool, now, page_text, fields, expected_text
):
    if "backoff" in fields:
        fields = {**fields, "backoff_until": now + timedelta(seconds=fields["backoff"])}
        del fields["backoff"]
    if "refused" in fields:
        until = now + timedelta(seconds=fields["refused"])
        fields = {"refused_offerings": {"sim-large": until.isoformat()}}
    Pool.objects.filter(pk=pool.pk).update(**fields)
    assert expected_text in page_text(login_as(viewer).get(pool_url(pool)))


def test_past_notices_are_not_shown(login_as, viewer, pool, now, page_text):
    past = now - timedelta(seconds=5)
    Pool.objects.filter(pk=pool.pk).update(
        backoff_until=past, refused_offerings={"sim-large": past.isoformat()}
    )
    page = login_as(viewer).get(pool_url(pool))
    assert "was refused" not in page_text(page)
    assert "Nothing is launched" not in page_text(page)


def tiles_of(page):
    return {tile.name: tile for tile in page.context["board"].tiles}


def test_the_board_has_a_tile_for_each_slot_and_each_empty_place(
    login_as, viewer, pool, session, now, page_text
):
    full = make_slot(pool, 3, is_spot=True)
    put_session_on(full, session, now, 2000, 2001)
    make_slot(pool, 1, SlotState.EMPTY)
    page = login_as(viewer).get(pool_url(pool))
    assert [tile.name for tile in page.context["board"].tiles] == [
        f"cml-eu-0{number}" for number in (3, 1, 2, 4, 5, 6)
    ]
    assert "cml-eu-03 Ready CPU 4 / 16 Memory 3.5 / 64 Storage 7 / 500 Ports 2 / 6,000 spot" in page_text(
        page
    )
    binding = {meter.label for meter in tiles_of(page)["cml-eu-03"].meters if meter.binds}
    assert binding == {"CPU"}
    assert page.content.decode().count("tile-empty") == 5
    assert page.context["board"].total == 6
    assert "Next" not in page_text(page)


def test_slots_that_need_attention_come_first_and_are_marked(login_as, viewer, pool, now, page_text):
    make_slot(pool, 1)
    make_slot(pool, 2, SlotState.BOOTING, state_deadline=now - timedelta(seconds=40))
    make_slot(pool, 3, SlotState.ERROR, reason="Not authorized.", state_deadline=now + timedelta(minutes=10))
    interrupted = make_slot(pool, 4, is_spot=True)
    record_interruption(slot=interrupted, deadline=now + timedelta(seconds=110), now=now)
    make_slot(pool, 5, cordoned=True)
    until = now + timedelta(seconds=300)
    make_slot(pool, 6, SlotState.LAUNCHING, state_deadline=until, last_state_change=now)
    page = login_as(viewer).get(pool_url(pool))
    order = [tile.name[-1] for tile in page.context["board"].tiles]
    assert order == ["2", "3", "4", "6", "1", "5"]
    marks = {name[-1]: tile.mark for name, tile in tiles_of(page).items()}
    assert marks == {"1": "", "2": "warn", "3": "bad", "4": "warn", "5": "", "6": ""}
    text = page_text(page)
    assert "Overdue by 40 s" in text or "Overdue by 41 s" in text
    assert "Not authorized. Retries in" in text
    assert "Interrupted by the provider. Terminates in 01:4" in text
    assert "Ready, cordoned" in text
    assert " / 300 s" in text


def test_a_draining_slot_with_leases_is_not_overdue(login_as, viewer, pool, now, page_text):
    slot = make_slot(pool, 1, SlotState.DRAINING, state_deadline=now - timedelta(hours=1))
    put_on(slot, reserve(pool, now), now)
    assert "Overdue" not in page_text(login_as(viewer).get(pool_url(pool)))


@pytest.fixture
def small_pages(monkeypatch):
    monkeypatch.setitem(pool_board.board_of.__kwdefaults__, "limit", 4)


def test_a_large_board_is_divided_into_pages(login_as, viewer, pool, page_text, small_pages):
    Pool.objects.filter(pk=pool.pk).update(max_slots=11)
    for number in (1, 2, 5, 6, 7):
        make_slot(pool, number)
    make_slot(pool, 9, SlotState.ERROR)
    client = login_as(viewer)
    pages = [client.get(pool_url(pool), {"page": page}) for page in (1, 2, 3)]
    shown = [[int(tile.name[-2:]) for tile in page.context["board"].tiles] for page in pages]
    assert shown == [[9, 1, 2, 5], [6, 7, 3, 4], [8, 10, 11]]
    assert "1–4 of 11 slots Show all slots as a list Previous Next" in page_text(pages[0])
    assert "9–11 of 11 slots" in page_text(pages[2])
    has_link = [
        f'rel="{direction}"' in page.content.decode() for page in pages for direction in ("prev", "next")
    ]
    assert has_link == [False, True, True, True, True, False]


@pytest.mark.parametrize(
    ("page_parameter", "shown"), [("0", 1), ("x", 1), ("-1", 1), ("²", 1), ("99", 2), ("9" * 20, 1)]
)
def test_an_invalid_page_number_shows_an_existing_page(
    login_as, viewer, pool, small_pages, page_parameter, shown
):
    board = login_as(viewer).get(pool_url(pool), {"page": page_parameter}).context["board"]
    assert (board.page, len(board.tiles)) == (shown, 4 if shown == 1 else 2)


def test_the_board_stays_on_its_page_when_it_reloads(login_as, viewer, pool, small_pages):
    client = login_as(viewer)
    again = f'hx-get="{reverse("pool_board", args=[pool.pk])}?page=2"'
    assert again in client.get(pool_url(pool), {"page": 2}).content.decode()
    assert again in client.get(reverse("pool_board", args=[pool.pk]), {"page": 2}).content.decode()


def test_the_board_shows_the_number_of_slots_by_state(login_as, viewer, pool, page_text):
    make_slot(pool, 1)
    make_slot(pool, 2)
    make_slot(pool, 3, SlotState.ERROR)
    page = login_as(viewer).get(pool_url(pool))
    assert "Ready 2 Error 1 Empty 3 " in page_text(page)
    assert "state=EMPTY" not in page.content.decode()
    assert f'href="{reverse("slot_list")}?pool=cml-eu&amp;state=ERROR"' in page.content.decode()


def test_waiting_reservations_are_counted_with_their_noun(login_as, viewer, pool, session, now, page_text):
    client = login_as(viewer)
    assert "Waiting 1 session oldest just now " in page_text(client.get(pool_url(pool)))
    reserve(pool, now)
    assert "Waiting 2 reservations oldest" in page_text(client.get(pool_url(pool)))
    pool.reservations.update(phase="RELEASED")
    assert "Waiting 0 sessions 0 booked" in page_text(client.get(pool_url(pool)))


def test_runtime_settings_are_shown_separately_from_the_policy(login_as, viewer, pool, page_text):
    client = login_as(viewer)
    assert "Runtime settings" not in page_text(client.get(pool_url(pool)))
    Pool.objects.filter(pk=pool.pk).update(runtime_settings={"boot_seconds": 20})
    assert "Runtime settings boot_seconds 20 s" in page_text(client.get(pool_url(pool)))


def test_slots_beyond_a_lowered_maximum_are_still_shown(login_as, viewer, pool):
    for number in (1, 2, 5):
        make_slot(pool, number)
    Pool.objects.filter(pk=pool.pk).update(max_slots=2)
    page = login_as(viewer).get(pool_url(pool))
    assert sorted(tiles_of(page)) == ["cml-eu-01", "cml-eu-02", "cml-eu-05"]


def test_the_recent_ticks_show_results_and_failures(login_as, viewer, pool, now, page_text):
    for minute in range(12):
        TickRun.objects.create(
            pool=pool,
            started_at=now - timedelta(minutes=minute),
            duration_ms=40 + minute,
            counts={"placed": 3, "launched_for_demand": 1} if minute == 0 else {},
            errors={"place": "OperationalError: gone"} if minute == 1 else {},
        )
    page = login_as(viewer).get(pool_url(pool))
    assert len(page.context["ticks"]) == 10
    assert [stroke.count(",") for stroke in page.context["spark"].strokes] == [2] * 10, "a stem for each"
    assert "3 placed, 1 launched for demand 40 ms" in page_text(page)
    assert "place OperationalError: gone 41 ms" in page_text(page)
    assert "Nothing to do place" not in page_text(page)


def test_the_live_part_reloads_and_keeps_reloading(login_as, viewer, pool):
    page = login_as(viewer).get(reverse("pool_board", args=[pool.pk]), headers=HTMX)
    body = page.content.decode()
    assert "<html" not in body
    assert 'hx-trigger="every 10s"' in body
    assert body.lstrip().startswith('<div id="live"')
    assert "cml-eu-06" in body


def test_an_unknown_pool_or_slot_is_not_found(login_as, viewer, session):
    assert login_as(viewer).get(f"/pools/{session.pk}/").status_code == 404
    assert login_as(viewer).get(f"/slots/{session.pk}/").status_code == 404


@pytest.mark.parametrize(("role", "is_offered"), [("viewer", False), ("operator", False), ("admin", True)])
def test_only_an_admin_sees_the_edit_link(login_as, pool, role, is_offered, request):
    page = login_as(request.getfixturevalue(role)).get(pool_url(pool))
    assert (reverse("pool_edit", args=[pool.pk]) in page.content.decode()) is is_offered


def test_capacity_is_marked_in_the_side_bar_on_its_pages(login_as, viewer, pool):
    client = login_as(viewer)
    for path in ("/pools/", "/slots/", "/reservations/", pool_url(pool)):
        assert '<a href="/pools/" aria-current="page"' in client.get(path).content.decode()
    assert '<a href="/pools/" aria-current' not in client.get("/sessions/").content.decode()
