"""Server responses of the fair-share and usage pages."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fairshare.models import (
    FairShare,
    FairShareOrder,
    FairSharePolicy,
    Normalisation,
    UsageBucket,
    UsageCheck,
)
from fairshare.selectors import shares
from fairshare.services.calculation import calculate_pool
from lcm.domain.errors import Unavailable
from lcm.models import ChangeLog
from lcm.services import task_queue
from lcm.web.charts.columns import BOTTOM, TOP, ByDay, stacked
from lcm.web.charts.scales import format_number
from lcm.web.charts.series import Series
from scheduling.services import observer_runs
from tests.support.factories import make_person
from tests.support.fairshare_setup import FairShareStage

FAIR = "/fair-share/?pool=cml-eu"


@pytest.fixture
def busy(stage: FairShareStage, time_machine) -> FairShareStage:
    """A morning of usage: ann in ccna uses three times as much as cyd in soc; calculated just now."""
    for person, project in (("ann", "ccna"), ("ann", "ccna"), ("ann", "ccna"), ("cyd", "soc")):
        stage.start(person, project)
    stage.clock.advance(hours=2)
    stage.run("record", "aggregate", "calculate")
    stage.clock.advance(minutes=1)
    time_machine.move_to(stage.clock(), tick=False)
    return stage


@pytest.fixture
def as_(client):
    def log_in(person):
        client.force_login(person)
        return client

    return log_in


def weight_name(stage, project):
    found = stage.projects[project]
    return f"w:project:{found.pk}:{found.domain_id}"


def text_of(response):
    plain = re.sub(r"<[^>]+>", " ", response.content.decode())
    return re.sub(r"\s+", " ", plain)


def test_the_page_starts_with_a_summary(busy, as_, viewer):
    text = text_of(as_(viewer).get(FAIR))
    assert "academy is above its share. Within a priority, security goes first." in text
    assert "Project ccna contributes most: 3.0 times its share." in text
    assert "core-hours in 30 days" in text


def test_the_tree_has_share_usage_factor_and_rank(busy, as_, viewer):
    page = as_(viewer).get(FAIR)
    text = text_of(page)
    assert "academy domain 1 inherited 50.0 % 75.0 % 1.50 × " in text
    assert "Calculate now" not in text
    assert "/fair-share/policy" not in page.content.decode()
    assert "Rank compares the factors of domain, project and person" in text


def test_the_url_expands_and_collapses_branches(busy, as_, viewer):
    client = as_(viewer)
    assert "ann" not in text_of(client.get(FAIR))
    ccna = busy.projects["ccna"]
    opened = client.get(f"{FAIR}&open={ccna.domain_id.hex},{ccna.pk.hex}", headers={"HX-Request": "true"})
    assert " ann " in text_of(opened)
    assert "<html" not in opened.content.decode()
    closed = text_of(client.get(f"{FAIR}&open="))
    assert "ccna 1 inherited" not in closed
    assert client.get(f"{FAIR}&open=nonsense").status_code == 200


def test_a_search_finds_projects_and_people(busy, as_, viewer):
    client = as_(viewer)
    found = text_of(client.get(f"{FAIR}&q=ann"))
    assert "ann academy / ccnp" in found
    assert "Search results." in found
    assert "No matches" in text_of(client.get(f"{FAIR}&q=zebra"))


def test_a_search_ignores_accounts_without_project_and_reports_omitted_matches(
    busy, as_, viewer, monkeypatch
):
    monkeypatch.setattr(shares, "MAX_MATCHES", 1)
    make_person("aaa-ann")
    client = as_(viewer)
    found = text_of(client.get(f"{FAIR}&q=ann"))
    assert "ann academy / ccnp" in found
    assert "More matches exist" not in found
    monkeypatch.setattr(shares, "MAX_SEARCH_ROWS", 1)
    assert "More matches exist; enter more of the name." in text_of(client.get(f"{FAIR}&q=ann"))


def test_the_page_reports_that_nothing_is_calculated_yet(stage, as_, viewer):
    text = text_of(as_(viewer).get(FAIR))
    assert "Not calculated yet." in text
    assert "No shares yet" in text


def test_without_usage_all_people_have_factor_1(stage, as_, viewer):
    calculate_pool(stage.pool, now=stage.clock())
    assert "No usage in the window" in text_of(as_(viewer).get(FAIR))


def test_usage_after_the_calculation_is_not_counted_yet(stage, as_, viewer, time_machine):
    calculate_pool(stage.pool, now=stage.clock())
    stage.start("ann", "ccna")
    stage.clock.advance(hours=2)
    stage.run("record", "aggregate")
    time_machine.move_to(stage.clock(), tick=False)
    for resource in ("cpu_cores", "gpu"):
        assert "Usage is not counted yet." in text_of(as_(viewer).get(f"{FAIR}&resource={resource}"))


def test_the_first_usage_check_is_offered(stage, as_, operator):
    assert "Check now" in text_of(as_(operator).get(FAIR))


def test_without_a_pool_the_page_is_empty(as_, viewer):
    assert "No pools" in text_of(as_(viewer).get("/fair-share/"))


@pytest.mark.parametrize("path", [FAIR, "/usage/?level=user"])
def test_pages_have_the_export_menu_of_lists(path, busy, as_, viewer):
    body = as_(viewer).get(path).content.decode()
    for kind in ("csv", "json"):
        link = re.search(rf'href="(\?[^"]*format={kind})" data-export="{kind}"', body)
        assert link is not None
        assert as_(viewer).get(path.split("?")[0] + unescape(link[1])).status_code == 200


def test_shares_are_exported_as_csv(busy, as_, viewer):
    body = b"".join(as_(viewer).get(f"{FAIR}&format=csv")).decode().splitlines()
    assert body[0].startswith("Pool,Level,Name,Parent name,Subject ID,Parent ID,Weight,Effective weight")
    assert any(line.startswith("cml-eu,user,ann,ccna,") for line in body)


@pytest.mark.parametrize(
    "path", [FAIR, "/usage/", "/observers/", "/observers/runs/", "/observers/usage-record/"]
)
def test_pages_stay_within_twelve_queries(path, busy, as_, admin):
    UsageCheck.objects.create(
        checked_at=busy.clock(),
        first_day="2026-03-02",
        last_day="2026-03-02",
        record_count=1,
        difference_count=0,
    )
    client = as_(admin)
    client.get(path)
    with CaptureQueriesContext(connection) as few:
        assert client.get(path).status_code == 200
    assert len(few) <= 12, [each["sql"][:120] for each in few.captured_queries]
    for _ in range(3):
        busy.start("bob", "ccna")
    busy.clock.advance(hours=1)
    busy.run("record", "aggregate", "calculate")
    with CaptureQueriesContext(connection) as many:
        client.get(path)
    assert len(many) == len(few)


# --- weights ------------------------------------------------------------------------------------------


def test_the_bar_shows_the_effect_of_a_weight(busy, as_, admin):
    response = as_(admin).post(
        "/fair-share/weights/bar",
        {"pool": "cml-eu", weight_name(busy, "ccna"): "5", weight_name(busy, "soc"): ""},
    )
    text = text_of(response)
    assert "1 change: ccna default → 5" in text
    assert "up, " in text
    assert "Preview and save…" in text
    assert not FairShare.objects.filter(weight__isnull=False).exists()


def new_values(response, name):
    """Return the new share, factor and rank in the row of a weight."""
    key = name.removeprefix("w:").replace(":", "")
    text = response.content.decode()
    cells = (
        re.search(rf'id="new-{what}-{key}" hx-swap-oob="true">(.*?)</span>\n', text)[1]
        for what in ("share", "factor", "rank")
    )
    return [cell.rpartition("→ ")[2] for cell in cells]


def test_the_rows_show_the_new_share_factor_and_rank_while_typing(busy, as_, admin):
    client, ccna, soc = as_(admin), weight_name(busy, "ccna"), weight_name(busy, "soc")
    page = client.get(FAIR).content.decode()
    assert f'id="new-share-{ccna.removeprefix("w:").replace(":", "")}"></span>' in page
    typed = {"pool": "cml-eu", ccna: "0.1", soc: ""}
    share, factor, _rank = new_values(client.post("/fair-share/weights/bar", typed), ccna)
    assert share.endswith(" %")
    assert 0 <= float(factor) < 1
    back = client.post("/fair-share/weights/bar", {**typed, ccna: ""})
    assert new_values(back, ccna) == ["", "", ""]
    assert new_values(back, soc) == ["", "", ""]
    invalid = client.post("/fair-share/weights/bar", {**typed, ccna: "much"})
    assert new_values(invalid, ccna) == ["", "", ""]


def test_the_bar_is_empty_without_a_change(busy, as_, admin):
    response = as_(admin).post("/fair-share/weights/bar", {"pool": "cml-eu", weight_name(busy, "soc"): ""})
    assert "change" not in text_of(response)


@pytest.mark.parametrize("bad", ["0.0000001", "-1", "nan", "much"])
def test_the_bar_shows_an_invalid_weight(bad, busy, as_, admin):
    response = as_(admin).post("/fair-share/weights/bar", {"pool": "cml-eu", weight_name(busy, "ccna"): bad})
    text = text_of(response)
    assert "ccna:" in text
    assert "save…" not in text


def test_weights_are_saved_with_a_reason(busy, as_, admin):
    client = as_(admin)
    typed = {"pool": "cml-eu", weight_name(busy, "ccna"): "5", weight_name(busy, "soc"): "2,5"}
    dialog = client.post("/fair-share/weights", typed, headers={"HX-Request": "true"})
    assert "Save 2 weights" in text_of(dialog)
    assert client.post("/fair-share/weights", {**typed, "reason": ""}).status_code == 422
    done = client.post("/fair-share/weights", {**typed, "reason": "new term"})
    assert (done.status_code, done.headers["Location"]) == (302, FAIR)
    found = dict(FairShare.objects.filter(weight__isnull=False).values_list("subject_id", "weight"))
    assert found == {busy.projects["ccna"].pk: 5.0, busy.projects["soc"].pk: 2.5}
    assert set(
        ChangeLog.objects.filter(event="fair_share.weight_changed").values_list("reason", flat=True)
    ) == {"new term"}
    assert 'value="5"' in client.get(FAIR).content.decode()


def test_an_invalid_weight_saves_nothing(busy, as_, admin):
    typed = {"pool": "cml-eu", weight_name(busy, "ccna"): "-1", weight_name(busy, "soc"): "3", "reason": "x"}
    response = as_(admin).post("/fair-share/weights", typed)
    assert response.status_code == 422
    assert "must be between 0.000001 and" in text_of(response)
    assert not FairShare.objects.filter(weight__isnull=False).exists()


def test_weights_of_0_and_parent_are_saved_and_shown(busy, as_, admin, viewer):
    typed = {"pool": "cml-eu", weight_name(busy, "ccna"): "parent", weight_name(busy, "soc"): "0"}
    bar = as_(admin).post("/fair-share/weights/bar", typed)
    assert "ccna default → parent" in text_of(bar)
    assert as_(admin).post("/fair-share/weights", {**typed, "reason": "x"}).status_code == 302
    assert set(FairShare.objects.filter(uses_parent=True).values_list("level", flat=True)) == {"project"}
    page = as_(admin).get(FAIR).content.decode()
    assert f'name="{weight_name(busy, "ccna")}" value="parent"' in page
    assert f'name="{weight_name(busy, "soc")}" value="0"' in page
    again = as_(admin).post("/fair-share/weights/bar", typed)
    assert "change" not in text_of(again)


def test_a_cleared_weight_is_inherited(busy, as_, admin):
    client = as_(admin)
    name = weight_name(busy, "ccna")
    client.post("/fair-share/weights", {"pool": "cml-eu", name: "5", "reason": "x"})
    client.post("/fair-share/weights", {"pool": "cml-eu", name: "", "reason": "y"})
    assert not FairShare.objects.filter(weight__isnull=False).exists()


def test_invalid_field_names_are_ignored(busy, as_, admin):
    typed = {"pool": "cml-eu", "w:planet:1:2": "3", "w:user:x:y": "3", "w:": "1", "reason": "x"}
    assert as_(admin).post("/fair-share/weights", typed).status_code == 302


# --- policy -------------------------------------------------------------------------------------------

POLICY = {
    "half_life_days": "3",
    "lookback_days": "14",
    "dampening_factor": "5",
    "normalisation": "relative",
    "order": "classic",
    "default_weight": "1",
}
EDIT = "/fair-share/policy?pool=cml-eu"


def test_a_policy_is_previewed_and_saved(busy, as_, admin):
    client = as_(admin)
    form = text_of(client.get(EDIT))
    assert "Usage has a half-life of 7 days and counts for 28 days." in form
    assert "Resource weights CPU, per core-hour" in form
    assert 'value="7"' in client.get(EDIT).content.decode()
    shown = client.post(EDIT, {**POLICY, "preview": "1"}, headers={"HX-Request": "true"})
    assert "Waiting sessions with a new position" in text_of(shown)
    assert not FairSharePolicy.objects.exists()
    bare = client.post(EDIT, POLICY)
    assert (bare.status_code, list(bare.context["form"].errors)) == (422, ["reason"])
    done = client.post(EDIT, {**POLICY, "gpu": "4", "reason": "shorter memory"})
    assert done.status_code == 302
    saved = FairSharePolicy.objects.get()
    assert (saved.half_life_days, saved.order, saved.resource_weights) == (3.0, "classic", {"gpu": 4.0})
    assert ChangeLog.objects.get(event="fair_share.policy_changed").reason == "shorter memory"


def test_both_pages_describe_the_policy_with_the_same_terms(busy, as_, admin):
    client = as_(admin)
    for value in Normalisation:
        FairSharePolicy.objects.update_or_create(pool=busy.pool, defaults={"normalisation": value})
        assert str(value.label) in unescape(text_of(client.get(FAIR)))
        assert str(value.label) in unescape(text_of(client.get(EDIT)))


def test_the_page_explains_rank_by_factor_alone(busy, as_, viewer):
    FairSharePolicy.objects.create(pool=busy.pool, order=FairShareOrder.CLASSIC)
    assert "Rank compares only the person&#x27;s factor" in text_of(as_(viewer).get(FAIR))


def test_a_preview_works_without_javascript(busy, as_, admin):
    shown = as_(admin).post(EDIT, {**POLICY, "preview": "1"})
    assert "Fair-share policy of cml-eu" in text_of(shown)
    assert "Waiting sessions with a new position" in text_of(shown)


@pytest.mark.parametrize(
    ("field", "value", "label"),
    [
        ("half_life_days", "0", "Half-life, days"),
        ("lookback_days", "0", "Lookback, days"),
        ("gpu", "-1", "Resource weights"),
        ("default_weight", "nan", "Default weight"),
    ],
)
def test_an_invalid_policy_is_rejected_at_its_field(field, value, label, busy, as_, admin):
    client = as_(admin)
    assert client.post(EDIT, {**POLICY, field: value}).status_code == 422
    shown = text_of(
        client.post(EDIT, {**POLICY, field: value, "preview": "1"}, headers={"HX-Request": "true"})
    )
    assert "Waiting sessions with a new position" not in shown
    assert f"{label}: " in shown
    assert "_" not in shown
    assert not FairSharePolicy.objects.exists()


def test_the_policy_of_an_unknown_pool_is_not_found(as_, admin):
    assert as_(admin).get("/fair-share/policy?pool=nowhere").status_code == 404


# --- usage ----------------------------------------------------------------------------------------------


def test_the_explorer_names_the_top_user(busy, as_, viewer):
    text = text_of(as_(viewer).get("/usage/"))
    assert "academy / ccna used most: 24 core-hours, 75 % of all" in text


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("level=user", "academy / ccna / ann"),
        ("level=domain&resource=memory_gb", "academy used most: 21 GB-hours"),
        ("first=2026-01-01&last=2026-01-31", "No usage from 01 Jan 2026 to 31 Jan 2026."),
        ("pool=cml-us", "No usage"),
        ("resource=gpu", "No usage"),
    ],
)
def test_the_explorer_applies_its_filters(query, text, busy, as_, viewer):
    assert text in text_of(as_(viewer).get(f"/usage/?{query}"))


@pytest.mark.parametrize(
    "query", ["first=2026-03-02&last=2026-03-01", "first=1999-01-01", "first=soon", "level=planet"]
)
def test_the_explorer_rejects_invalid_filters(query, busy, as_, viewer):
    assert as_(viewer).get(f"/usage/?{query}").status_code == 422


@pytest.mark.parametrize(("resource", "label"), [("cpu_cores", "CPU"), ("memory_gb", "Memory")])
def test_shares_refer_to_the_chosen_resource_and_zeros_are_muted(resource, label, busy, as_, viewer):
    body = as_(viewer).get(f"/usage/?resource={resource}").content.decode()
    assert f'<th scope="col" class="num">Share of {label}</th>' in body
    assert 'data-label="GPU, GPU-hours"><span class="muted">0</span>' in body


def test_usage_is_exported_as_csv(busy, as_, viewer):
    lines = b"".join(as_(viewer).get("/usage/?level=user&format=csv")).decode().splitlines()
    assert lines[0] == (
        "Day,Pool,Level,Name,Parent name,Subject ID,Parent ID,"
        "CPU core-hours,Memory GB-hours,Storage GB-hours,GPU GPU-hours"
    )
    assert len(lines) == 3
    assert any(
        line.startswith("2026-03-02,cml-eu,user,ann,ccna,") and ",24.0,21.0," in line for line in lines
    )


# --- reconciliation and observers ------------------------------------------------------------------------


def test_the_page_shows_the_last_check(busy, as_, operator):
    from fairshare.tasks import check_usage

    check_usage()
    text = text_of(as_(operator).get(FAIR))
    assert "Usage consistency check Equal" in text
    assert "288 records" in text
    UsageBucket.objects.filter(level="user").update(gpu=1)
    check_usage()
    text = text_of(as_(operator).get(FAIR))
    assert "Different" in text
    assert "gpu 1 in the bucket" in text


def test_a_check_is_requested(busy, as_, operator, monkeypatch):
    sent = []
    monkeypatch.setattr(task_queue.current_app, "send_task", lambda name, **_: sent.append(name))
    assert as_(operator).post("/fair-share/check").status_code == 302
    assert sent == ["fairshare.tasks.check_usage"]


def test_without_a_broker_the_page_shows_an_error(as_, operator, monkeypatch):
    def refuse(*arguments, **fields):
        raise ConnectionRefusedError

    monkeypatch.setattr(task_queue.current_app, "send_task", refuse)
    client = as_(operator)
    for path in ("/fair-share/check", "/observers/usage-record/run"):
        assert "broker cannot be reached" in text_of(client.post(path, follow=True))


def test_observers_are_listed_with_their_state(busy, as_, operator):
    text = text_of(as_(operator).get("/observers/"))
    assert "usage-record Records every 5 minutes, and when a node ends, the resources" in text
    assert "Requeue placed sessions that are not started in time; after the last attempt" in text
    assert "Late: " in text
    assert text.count("Run now") == 10
    assert "Run now" not in text_of(as_(operator).get("/observers/no-such-one/"))


def test_all_pages_show_the_same_counts_of_a_run(busy, as_, viewer):
    observer_runs.record_run(
        kind="handler", name="requeue-scheduled", started_at=busy.clock(), duration_ms=3,
        result=type("R", (), {"success_count": 1, "stale_count": 4, "failure_count": 0, "error": ""})(),
    )  # fmt: skip
    client = as_(viewer)
    for path in ("/observers/", "/observers/requeue-scheduled/", "/observers/runs/"):
        body = client.get(path).content.decode()
        assert re.search(r'data-label="Done">\D*1\D+data-label="Stale">\D*4\D', body), path


def test_only_observers_have_a_lag_and_no_lag_means_up_to_date(busy, as_, viewer):
    client = as_(viewer)
    assert "Lag up to date" in text_of(client.get("/observers/usage-aggregation/"))
    assert "Lag" not in text_of(client.get("/observers/end-running/"))


def test_the_page_of_an_observer_starts_with_its_state(busy, as_, viewer):
    client = as_(viewer)
    text = text_of(client.get("/observers/usage-aggregation/"))
    assert re.search(r"Last run 1 min( \d s)? ago, healthy\.", text)
    assert "No runs yet. Stop sessions that are still" in text_of(client.get("/observers/end-running/"))


def test_a_failed_observer_shows_the_reason(busy, as_, viewer):
    observer_runs.record_run(
        kind="observer", name="usage-record", started_at=busy.clock(), duration_ms=3,
        result=type("R", (), {"success_count": 1, "failure_count": 2, "error": "allocation 7: no"})(),
    )  # fmt: skip
    client = as_(viewer)
    assert "Failed in the last run: usage-record." in text_of(client.get("/observers/"))
    assert "allocation 7: no" in text_of(client.get("/observers/usage-record/"))
    assert client.get("/observers/stars/").status_code == 404


def test_a_run_is_requested(as_, operator, monkeypatch):
    sent = []
    monkeypatch.setattr(task_queue.current_app, "send_task", lambda _, **fields: sent.append(fields["args"]))
    done = as_(operator).post("/observers/usage-record/run", {"next": "/fair-share/"})
    assert done.headers["Location"] == "/fair-share/"
    assert sent == [("usage-record",)]
    assert (
        as_(operator)
        .post("/observers/usage-record/run", {"next": "https://evil.example"})
        .headers["Location"]
        == "/observers/"
    )
    assert as_(operator).post("/observers/stars/run").status_code == 404


def test_unavailable_has_status_503():
    assert Unavailable("x").status == 503


# --- charts -----------------------------------------------------------------------------------------------


def test_a_chart_is_stacked_from_the_bottom(now):
    day = now.date()
    chart = stacked(ByDay([day], [Series("a", [10.0]), Series("b", [20.0])]), unit="core-hours")
    (low,), (high,) = (layer.segments for layer in chart.layers)
    assert low.y + low.height == pytest.approx(BOTTOM)
    assert high.y + high.height == pytest.approx(low.y)
    assert high.height == pytest.approx(2 * low.height)
    assert [text for _, text in chart.lines] == ["0", "10", "20", "30"]
    assert [(layer.kind, layer.name, layer.total) for layer in chart.layers] == [
        (1, "a", "10"),
        (2, "b", "20"),
    ]


@pytest.mark.parametrize("most", [0.02, 1, 1.6, 61, 76, 91, 130, 149_000])
def test_an_axis_ends_at_a_round_number_near_its_highest_column(now, most):
    chart = stacked(ByDay([now.date()], [Series("a", [most])]), unit="core-hours")
    highest, axis = chart.layers[0].segments[0].height, BOTTOM - TOP
    assert axis / 1.61 <= highest <= axis + 0.1


def test_a_chart_without_data_is_empty(now):
    chart = stacked(ByDay([now.date()], []), unit="core-hours")
    assert chart.layers == []


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.754, "0.75"), (9, "9"), (146.4, "146"), (9_100, "9,100"), (30_000, "30.0 k")],
)
def test_numbers_have_significant_digits(value, text):
    assert format_number(value) == text
