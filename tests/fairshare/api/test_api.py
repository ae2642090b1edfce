"""API of usage, shares, policies and observers."""

from __future__ import annotations

import re

import pytest

from fairshare.models import FairShare, FairSharePolicy
from fairshare.models.levels import ROOT
from lcm.services import task_queue
from tests.support.fairshare_setup import FairShareStage


@pytest.fixture
def busy(stage: FairShareStage) -> FairShareStage:
    for person, project in (("ann", "ccna"), ("cyd", "soc")):
        stage.start(person, project)
    stage.clock.advance(hours=2)
    stage.run("record", "aggregate", "calculate")
    return stage


def test_usage_buckets_show_hours_and_exact_seconds(busy, api, viewer):
    client = api(viewer)
    rows = client.get("/api/usage-buckets/?level=user&pool=cml-eu").json()["results"]
    ann = next(row for row in rows if row["name"] == "ann")
    assert (ann["day"], ann["parent_name"], ann["hours"]["cpu_cores"]) == ("2026-03-02", "ccna", 8.0)
    assert ann["exact_seconds"]["cpu_cores"] == "28800"
    assert ann["parent"] == str(busy.projects["ccna"].pk)


@pytest.mark.parametrize(
    ("query", "count"),
    [("", 6), ("?level=domain", 2), ("?day_from=2026-03-03", 0), ("?day_to=2026-03-02&level=project", 2)],
)
def test_usage_buckets_are_filtered(query, count, busy, api, viewer):
    assert len(api(viewer).get(f"/api/usage-buckets/{query}").json()["results"]) == count


def test_an_invalid_day_is_rejected(api, viewer):
    assert api(viewer).get("/api/usage-buckets/?day_from=soon").status_code == 400


def test_fair_shares_show_their_inputs_and_calculation(busy, api, viewer):
    rows = api(viewer).get("/api/fair-shares/?pool=cml-eu&level=user&sort=rank").json()["results"]
    ann = next(row for row in rows if row["name"] == "ann" and row["parent_name"] == "ccna")
    assert (ann["weight"], ann["weight_source"], ann["effective_weight"]) == (None, "policy", 1.0)
    assert ann["decayed_hours"]["cpu_cores"] == 8.0
    assert ann["calculated"]["policy"]["half_life_days"] == 7.0
    assert (ann["calculated"]["first_day"], ann["calculated"]["last_day"]) == ("2026-02-03", "2026-03-02")
    assert api(viewer).get(f"/api/fair-shares/{ann['id']}").json()["factor"] == ann["factor"]
    bob = next(row for row in rows if row["name"] == "bob")
    assert bob["level_fair_share"] is None


def weights(stage, weight, **more):
    ccna = stage.projects["ccna"]
    each = {"level": "project", "subject": str(ccna.pk), "parent": str(ccna.domain_id), "weight": weight}
    return {"pool": "cml-eu", "weights": [each], **more}


def test_weights_are_previewed_and_set(busy, api, admin):
    client = api(admin)
    shown = client.post("/api/fair-shares/preview", weights(busy, 5)).json()
    assert shown["waiting"] == 0
    assert not FairShare.objects.filter(weight__isnull=False).exists()
    domain = {"level": "domain", "subject": str(busy.projects["ccna"].domain_id), "weight": 2}
    body = weights(busy, 5, reason="new term")
    body["weights"].append(domain)
    assert client.post("/api/fair-shares/weights", body).json() == {"changed": 2}
    assert FairShare.objects.get(level="domain", parent_id=ROOT, weight=2)


@pytest.mark.parametrize(("weight", "shown"), [(0, 0.0), ("parent", "parent"), (None, None), (2, 2.0)])
def test_a_weight_can_be_0_or_parent(weight, shown, busy, api, admin):
    client = api(admin)
    body = weights(busy, 5)
    client.post("/api/fair-shares/weights", body)
    assert client.post("/api/fair-shares/preview", weights(busy, weight)).status_code == 200
    assert client.post("/api/fair-shares/weights", weights(busy, weight)).json() == {"changed": 1}
    subject = body["weights"][0]["subject"]
    rows = client.get("/api/fair-shares/?page_size=100").json()["results"]
    (row,) = (each for each in rows if each["subject"] == subject and each["pool"] == "cml-eu")
    assert row["weight"] == shown
    assert row["weight_source"] == ("policy" if weight is None else "own")


@pytest.mark.parametrize("weight", [1e-7, -1, "child", True, [1]])
def test_an_invalid_weight_is_rejected(weight, busy, api, admin):
    for path in ("weights", "preview"):
        response = api(admin).post(f"/api/fair-shares/{path}", weights(busy, weight))
        assert response.status_code == 400
        assert re.search("must be between 0.000001 and|not a number", response.json()["message"])


def test_a_weight_that_is_not_a_number_is_rejected(busy, api, admin):
    for text in (b'{"pool": "cml-eu", "weights": [{"level": "domain", "subject": "x", "weight": NaN}]}',):
        response = api(admin).generic(
            "POST", "/api/fair-shares/weights", text, content_type="application/json"
        )
        assert response.status_code == 400


def test_weights_of_an_unknown_pool_are_rejected(busy, api, admin):
    response = api(admin).post("/api/fair-shares/weights", weights(busy, 5) | {"pool": "nowhere"})
    assert (response.status_code, response.json()["details"]) == (
        400,
        {"pool": ["Pool “nowhere” does not exist."]},
    )


def test_policies_are_listed_previewed_and_saved(busy, api, admin):
    client = api(admin)
    shown = client.get("/api/fair-share-policies/").json()["results"]
    assert {row["pool_name"]: row["is_custom"] for row in shown} == {"cml-eu": False, "cml-us": False}
    path = f"/api/fair-share-policies/{busy.pool.pk}"
    moved = client.post(f"{path}/preview", {"half_life_days": 1}).json()
    assert moved["text"].startswith("Rank changes: ")
    bare = client.patch(path, {"half_life_days": 1})
    assert (bare.status_code, list(bare.json()["details"])) == (400, ["reason"])
    saved = client.patch(
        path, {"half_life_days": 1, "resource_weights": {"gpu": 2}, "reason": "exams"}
    ).json()
    assert (saved["is_custom"], saved["half_life_days"], saved["lookback_days"]) == (True, 1.0, 28)
    assert saved["resource_weights"]["gpu"] == 2.0
    assert saved["resource_weight_sources"] == {
        "cpu_cores": "default", "memory_gb": "default", "storage_gb": "default", "gpu": "policy",
    }  # fmt: skip
    assert client.get(path).json() == saved


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"half_life_days": 0}, "half_life_days"),
        ({"resource_weights": {"ram": 1}}, "resource_weights"),
        ({"order": "random"}, "order"),
        ({"mood": "good"}, "mood"),
    ],
)
def test_an_invalid_policy_is_rejected(body, field, busy, api, admin):
    response = api(admin).patch(f"/api/fair-share-policies/{busy.pool.pk}", body)
    assert response.status_code == 400
    assert list(response.json()["details"]) == [field]
    assert not FairSharePolicy.objects.exists()


def test_observers_are_listed_with_their_last_run(busy, api, viewer):
    rows = {row["name"]: row for row in api(viewer).get("/api/observers/").json()["results"]}
    assert len(rows) == 10
    record = rows["usage-record"]
    assert (record["kind"], record["interval_seconds"], record["last_run"]["success_count"]) == (
        "observer",
        300.0,
        6,
    )
    assert rows["end-running"]["last_run"] is None
    detail = api(viewer).get("/api/observers/usage-record").json()
    assert len(detail["runs"]) == 1


def test_a_run_is_requested(api, operator, monkeypatch):
    sent = []
    monkeypatch.setattr(
        task_queue.current_app, "send_task", lambda name, **fields: sent.append((name, fields["args"]))
    )
    response = api(operator).post("/api/observers/end-running/run")
    assert response.status_code == 202
    assert sent == [("scheduling.tasks.run_handler", ("end-running",))]


def test_an_unknown_observer_is_not_found(api, operator):
    assert api(operator).get("/api/observers/stars").status_code == 404
    assert api(operator).post("/api/observers/stars/run").status_code == 404


def test_without_a_broker_the_api_returns_an_error(api, operator, monkeypatch):
    def refuse(*arguments, **fields):
        raise ConnectionRefusedError

    monkeypatch.setattr(task_queue.current_app, "send_task", refuse)
    response = api(operator).post("/api/observers/usage-record/run")
    assert (response.status_code, response.json()["code"]) == (503, "unavailable")
