"""The list of pools and a pool's board."""

from datetime import timedelta

import pytest
from django.urls import reverse

from scheduling.models import Pool, SlotState, TickRun
from scheduling.pages import pool_board
from scheduling.services.slots import record_interruption
from tests.support.capacity_setup import make_slot, pool_named, put_on, put_session_on, reserve

HTMX = {"HX-Request": "true"}


def detail(pool):
    return reverse("pool_detail", args=[pool.pk])


def test_the_list_shows_use_demand_and_policy(by, viewer, pool, now, words):
    ready = make_slot(pool, 1)
    make_slot(pool, 2, SlotState.BOOTING)
    put_on(ready, reserve(pool, now), now)
    reserve(pool, now - timedelta(minutes=4))
    page = by(viewer).get("/pools/")
    assert "1 slot ready · 4 can be launched · 1 waiting." in words(page)
    assert "cml-eu Evening courses Enabled CML Simulated 1 offering" in words(page)
    assert "1 of 6 1 of 10 CPU 12 % 1 4 min ago 0 / 0 / 6" in words(page)


def test_pools_that_launch_nothing_may_launch_no_more(by, viewer, pool, now, words):
    make_slot(pool, 1)
    Pool.objects.filter(pk=pool.pk).update(stopped_reason="no such template")
    said = "1 slot ready · 0 waiting. 1 pool stopped or backing off."
    assert said in words(by(viewer).get("/pools/"))
    assert "1 slot ready · 0 waiting." in words(by(viewer).get(detail(pool)))


def test_the_list_of_pools_has_an_empty_state(by, viewer, words):
    assert "No pools yet." in words(by(viewer).get("/pools/"))


@pytest.mark.parametrize(
    ("fields", "state", "said"),
    [
        ({"enabled": False}, "off", "Off"),
        ({"stopped_reason": "no such template"}, "stopped", "Stopped by its configuration"),
        ({"backoff_until": timedelta(minutes=9), "failures": 2}, "backing off", "Backing off until"),
        ({}, "enabled", "Enabled"),
    ],
)
def test_a_pools_state_is_shown_and_filtered_by(by, viewer, pool, now, words, fields, state, said):
    pool_named("cml-other", enabled=state != "enabled")
    if state == "off":
        Pool.objects.filter(name="cml-other").update(stopped_reason="another")
    if "backoff_until" in fields:
        fields = {**fields, "backoff_until": now + fields["backoff_until"]}
    if fields:
        Pool.objects.filter(pk=pool.pk).update(**fields)
    page = by(viewer).get("/pools/", {"state": state})
    assert said in words(page)
    assert [row.name for row in page.context["rows"].rows] == ["cml-eu"]


def exported(response):
    return response.getvalue().decode()


@pytest.mark.django_db(transaction=True)
def test_the_list_is_searched_and_exported(by, viewer, pool):
    pool_named("gpu-lab", system="gpu")
    client = by(viewer)
    assert [row.name for row in client.get("/pools/?q=gpu").context["rows"].rows] == ["gpu-lab"]
    body = exported(client.get("/pools/?format=csv"))
    assert body.splitlines()[0].startswith("Pool,State,System,Runtime,Offerings,Ready slots,Leases used")
    assert body.splitlines()[0].endswith("Fullest resource,Waiting,Oldest wait,Min,Warm,Max")
    assert len(body.splitlines()) == 3


def test_a_pool_page_starts_with_its_state(by, viewer, pool, session, now, words):
    for number in (1, 2, 3):
        make_slot(pool, number)
    make_slot(pool, 4, SlotState.BINDING)
    session.reservations.update(created_at=now - timedelta(minutes=4))
    page = by(viewer).get(detail(pool))
    assert "3 slots ready · 2 can be launched · 1 session waiting, for 4 min" in words(page)
    assert "1 slot starting." in words(page)


@pytest.mark.parametrize(
    ("ready", "waiting", "said"),
    [
        (0, 0, "0 slots ready · 6 can be launched · 0 waiting."),
        (1, 0, "1 slot ready · 5 can be launched · 0 waiting."),
        (2, 2, "2 slots ready · 4 can be launched · 2 reservations waiting, the oldest for 1 h"),
    ],
)
def test_the_sentence_counts(by, viewer, pool, now, words, ready, waiting, said):
    for number in range(ready):
        make_slot(pool, number + 1)
    for hours in range(waiting):
        reserve(pool, now - timedelta(hours=hours))
    assert said in words(by(viewer).get(detail(pool)))


@pytest.mark.parametrize(
    ("fields", "said"),
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
    by, viewer, pool, now, words, fields, said
):
    if "backoff" in fields:
        fields = {**fields, "backoff_until": now + timedelta(seconds=fields["backoff"])}
        del fields["backoff"]
    if "refused" in fields:
        until = now + timedelta(seconds=fields["refused"])
        fields = {"refused_offerings": {"sim-large": until.isoformat()}}
    Pool.objects.filter(pk=pool.pk).update(**fields)
    assert said in words(by(viewer).get(detail(pool)))


def test_past_notices_are_not_returned(by, viewer, pool, now, words):
    before = now - timedelta(seconds=5)
    Pool.objects.filter(pk=pool.pk).update(
        backoff_until=before, refused_offerings={"sim-large": before.isoformat()}
    )
    page = by(viewer).get(detail(pool))
    assert "was refused" not in words(page)
    assert "Nothing is launched" not in words(page)


def tiles_of(page):
    return {tile.name: tile for tile in page.context["board"].tiles}


def test_the_board_has_a_tile_for_each_slot_and_each_empty_place(by, viewer, pool, session, now, words):
    full = make_slot(pool, 3, is_spot=True)
    put_session_on(full, session, now, 2000, 2001)
    make_slot(pool, 1, SlotState.EMPTY)
    page = by(viewer).get(detail(pool))
    assert [tile.name for tile in page.context["board"].tiles] == [
        f"cml-eu-0{number}" for number in (3, 1, 2, 4, 5, 6)
    ]
    assert "cml-eu-03 Ready CPU 4 / 16 Memory 3.5 / 64 Storage 7 / 500 Ports 2 / 6,000 spot" in words(page)
    binding = {meter.label for meter in tiles_of(page)["cml-eu-03"].meters if meter.binds}
    assert binding == {"CPU"}
    assert page.content.decode().count("tile-empty") == 5
    assert page.context["board"].total == 6
    assert "Next" not in words(page)


def test_slots_that_need_attention_come_first_and_are_marked(by, viewer, pool, now, words):
    make_slot(pool, 1)
    make_slot(pool, 2, SlotState.BOOTING, state_deadline=now - timedelta(seconds=40))
    make_slot(pool, 3, SlotState.ERROR, reason="Not authorized.", state_deadline=now + timedelta(minutes=10))
    interrupted = make_slot(pool, 4, is_spot=True)
    record_interruption(slot=interrupted, deadline=now + timedelta(seconds=110), now=now)
    make_slot(pool, 5, cordoned=True)
    until = now + timedelta(seconds=300)
    make_slot(pool, 6, SlotState.LAUNCHING, state_deadline=until, last_state_change=now)
    page = by(viewer).get(detail(pool))
    order = [tile.name[-1] for tile in page.context["board"].tiles]
    assert order == ["2", "3", "4", "6", "1", "5"]
    marks = {name[-1]: tile.mark for name, tile in tiles_of(page).items()}
    assert marks == {"1": "", "2": "warn", "3": "bad", "4": "warn", "5": "", "6": ""}
    text = words(page)
    assert "Overdue by 40 s" in text or "Overdue by 41 s" in text
    assert "Not authorized. Retries in" in text
    assert "Interrupted by the provider. Terminates in 01:4" in text
    assert "Ready, cordoned" in text
    assert " / 300 s" in text


def test_a_slot_that_drains_may_take_as_long_as_its_leases(by, viewer, pool, now, words):
    slot = make_slot(pool, 1, SlotState.DRAINING, state_deadline=now - timedelta(hours=1))
    put_on(slot, reserve(pool, now), now)
    assert "Overdue" not in words(by(viewer).get(detail(pool)))


@pytest.fixture
def small_pages(monkeypatch):
    monkeypatch.setitem(pool_board.board_of.__kwdefaults__, "limit", 4)


def test_a_board_shows_no_more_than_it_can_and_the_rest_on_other_pages(by, viewer, pool, words, small_pages):
    Pool.objects.filter(pk=pool.pk).update(max_slots=11)
    for number in (1, 2, 5, 6, 7):
        make_slot(pool, number)
    make_slot(pool, 9, SlotState.ERROR)
    client = by(viewer)
    pages = [client.get(detail(pool), {"page": page}) for page in (1, 2, 3)]
    shown = [[int(tile.name[-2:]) for tile in page.context["board"].tiles] for page in pages]
    assert shown == [[9, 1, 2, 5], [6, 7, 3, 4], [8, 10, 11]]
    assert "1–4 of 11 places Show all slots as a list Previous Next" in words(pages[0])
    assert "9–11 of 11 places" in words(pages[2])
    assert [f'rel="{way}"' in page.content.decode() for page in pages for way in ("prev", "next")] == [
        False, True, True, True, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "shown"), [("0", 1), ("x", 1), ("-1", 1), ("²", 1), ("99", 2), ("9" * 20, 1)]
)
def test_a_page_that_the_board_has_not_is_one_that_it_has(by, viewer, pool, small_pages, asked, shown):
    board = by(viewer).get(detail(pool), {"page": asked}).context["board"]
    assert (board.page, len(board.tiles)) == (shown, 4 if shown == 1 else 2)


def test_the_board_stays_on_its_page_when_it_reloads(by, viewer, pool, small_pages):
    client = by(viewer)
    again = f'hx-get="{reverse("pool_board", args=[pool.pk])}?page=2"'
    assert again in client.get(detail(pool), {"page": 2}).content.decode()
    assert again in client.get(reverse("pool_board", args=[pool.pk]), {"page": 2}).content.decode()


def test_the_board_shows_the_number_of_slots_by_state(by, viewer, pool, words):
    make_slot(pool, 1)
    make_slot(pool, 2)
    make_slot(pool, 3, SlotState.ERROR)
    page = by(viewer).get(detail(pool))
    assert "Ready 2 Error 1 Empty 3 " in words(page)
    assert "state=EMPTY" not in page.content.decode()
    assert f'href="{reverse("slot_list")}?pool=cml-eu&amp;state=ERROR"' in page.content.decode()


def test_waiting_reservations_are_counted_with_their_noun(by, viewer, pool, session, now, words):
    client = by(viewer)
    assert "Waiting 1 session oldest just now " in words(client.get(detail(pool)))
    reserve(pool, now)
    assert "Waiting 2 reservations oldest" in words(client.get(detail(pool)))
    pool.reservations.update(phase="RELEASED")
    assert "Waiting 0 sessions 0 booked" in words(client.get(detail(pool)))


def test_runtime_settings_are_shown_separately_from_the_policy(by, viewer, pool, words):
    client = by(viewer)
    assert "Runtime settings" not in words(client.get(detail(pool)))
    Pool.objects.filter(pk=pool.pk).update(runtime_settings={"boot_seconds": 20})
    assert "Runtime settings boot_seconds 20 s" in words(client.get(detail(pool)))


def test_slots_beyond_a_lowered_maximum_are_still_shown(by, viewer, pool):
    for number in (1, 2, 5):
        make_slot(pool, number)
    Pool.objects.filter(pk=pool.pk).update(max_slots=2)
    page = by(viewer).get(detail(pool))
    assert sorted(tiles_of(page)) == ["cml-eu-01", "cml-eu-02", "cml-eu-05"]


def test_the_recent_ticks_show_results_and_failures(by, viewer, pool, now, words):
    for minute in range(12):
        TickRun.objects.create(
            pool=pool,
            started_at=now - timedelta(minutes=minute),
            duration_ms=40 + minute,
            counts={"placed": 3, "launched_for_demand": 1} if minute == 0 else {},
            errors={"place": "OperationalError: gone"} if minute == 1 else {},
        )
    page = by(viewer).get(detail(pool))
    assert len(page.context["ticks"]) == 10
    assert "3 placed, 1 launched for demand 40 ms" in words(page)
    assert "place OperationalError: gone 41 ms" in words(page)
    assert "Nothing to do place" not in words(page)


def test_the_live_part_reloads_and_keeps_reloading(by, viewer, pool):
    page = by(viewer).get(reverse("pool_board", args=[pool.pk]), headers=HTMX)
    body = page.content.decode()
    assert "<html" not in body
    assert 'hx-trigger="every 10s"' in body
    assert body.lstrip().startswith('<div id="live"')
    assert "cml-eu-06" in body


def test_a_pool_that_is_not_there_is_not_found(by, viewer, session):
    assert by(viewer).get(f"/pools/{session.pk}/").status_code == 404
    assert by(viewer).get(f"/slots/{session.pk}/").status_code == 404


@pytest.mark.parametrize(("who", "sees"), [("viewer", False), ("operator", False), ("admin", True)])
def test_only_an_admin_is_offered_to_edit(by, pool, who, sees, request):
    page = by(request.getfixturevalue(who)).get(detail(pool))
    assert (reverse("pool_edit", args=[pool.pk]) in page.content.decode()) is sees


def test_capacity_is_in_the_side_bar_and_marked_on_its_pages(by, viewer, pool):
    client = by(viewer)
    for path in ("/pools/", "/slots/", "/reservations/", detail(pool)):
        assert '<a href="/pools/" aria-current="page">' in client.get(path).content.decode()
    assert '<a href="/pools/">' in client.get("/sessions/").content.decode()
