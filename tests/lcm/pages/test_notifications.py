"""Pages and API of webhooks, rules and the delivery log."""

from __future__ import annotations

import json
import logging
import re
from datetime import timedelta
from ipaddress import ip_network

import pytest
from django.apps import apps
from django.urls import reverse
from django.utils import timezone

from lcm.events.catalog import event_types
from lcm.models import ChangeLog, Delivery, DeliveryAttempt, DeliveryState, EventRule, Webhook
from lcm.services.delivery_run import deliver_due
from tests.support.factories import make_delivery
from tests.support.webhook_receiver import Reply, webhook_receiver

URL = "https://hooks.example.org/services/T1/secret-path"


@pytest.fixture
def web(client, admin):
    client.force_login(admin)
    return client


@pytest.fixture
def failed(now):
    """A failed delivery with an attempt; the payload has no other fields than an id."""
    delivery = make_delivery(now)[2]
    DeliveryAttempt.objects.create(
        delivery=delivery, at=now, duration_ms=12, status=500, error="HTTP 500", response="<b>oops</b>"
    )
    return delivery


def text_of(response):
    assert response.status_code == 200
    return response.getvalue().decode()


def secret_in(response):
    text = text_of(response)
    assert response["Cache-Control"] == "no-store"
    return re.search(r"whsec_([\w+/=]+)", text)[1]


def addresses(webhook):
    """URLs of pages, exports and API calls that show a webhook or its deliveries."""
    pages = [reverse(f"webhook_{name}", args=[webhook.pk]) for name in ("detail", "rotate", "test", "delete")]
    deliveries = list(Delivery.objects.values_list("pk", flat=True))
    pages += [reverse("delivery_detail", args=[key]) for key in deliveries]
    pages += [reverse("change_detail", args=[key]) for key in ChangeLog.objects.values_list("pk", flat=True)]
    lists = [reverse(f"{name}_list") for name in ("webhook", "rule", "delivery", "change")]
    calls = ["/api/deliveries/", *(f"/api/deliveries/{key}/" for key in deliveries), "/api/event-rules/"]
    exports = [f"{each}?format=csv" for each in lists]
    return [*pages, *lists, *exports, *calls, "/api/changes/", "/search?q=erp", "/"]


def test_the_secret_and_the_path_of_the_url_are_shown_nowhere_else(web, settings, caplog):
    """A webhook is created, rotated, fails and is disabled, edited and enabled."""
    settings.CONFIG["WEBHOOK_ALLOWED_NETWORKS"] = [ip_network("127.0.0.0/8")]
    caplog.set_level(logging.DEBUG)
    with webhook_receiver() as receiver:
        url = receiver.url.replace("/hook", "/services/T1/secret-path")
        fields = {"name": "erp", "url": url, "format": "slack"}
        secrets = [secret_in(web.post(reverse("webhook_create"), fields))]
        webhook = Webhook.objects.get()
        rotate = reverse("webhook_rotate", args=[webhook.pk])
        secrets.append(secret_in(web.post(rotate, {"reason": "leaked"})))
        receiver.plan = [Reply(500), Reply(cut=True), Reply(410)]
        for _ in range(3):
            web.post(reverse("webhook_test", args=[webhook.pk]), {"event_type": "slot.ready"})
        assert deliver_due(clock=timezone.now) == 3
        web.post(reverse("webhook_edit", args=[webhook.pk]), fields | {"url": f"{url}-2", "enabled": "on"})
    events = set(ChangeLog.objects.filter(object_id=webhook.pk).values_list("event", flat=True))
    assert {"webhook.disabled", "webhook.secret_rotated", "webhook.updated"} <= events
    assert len(set(secrets)) == 2
    shown = {page: text_of(web.get(page)) for page in addresses(webhook)}
    for_admins = [
        reverse("webhook_edit", args=[webhook.pk]),
        "/api/webhooks/",
        f"/api/webhooks/{webhook.pk}/",
    ]
    shown_to_admins = {page: text_of(web.get(page)) for page in for_admins}
    assert all("secret-path" in text for text in shown_to_admins.values())
    logs = "".join(record.getMessage() + str(vars(record)) for record in caplog.records)
    assert "webhook_attempt_failed" in logs
    stored = "".join(str(list(model._base_manager.values())) for model in apps.get_models())
    everything = {**shown, **shown_to_admins, "log": logs, "database": stored}
    assert [page for page, text in everything.items() if any(each in text for each in secrets)] == []
    assert [page for page, text in {**shown, "log": logs}.items() if "secret-path" in text] == []


def test_a_webhook_is_edited_disabled_and_deleted(web, as_admin, now):
    webhook = make_delivery(now)[0]
    values = {"name": "chat-2", "url": webhook.url, "format": "cloudevents"}
    page = reverse("webhook_detail", args=[webhook.pk])
    assert web.post(reverse("webhook_edit", args=[webhook.pk]), values).url == page
    webhook.refresh_from_db()
    assert (webhook.name, webhook.enabled) == ("chat-2", False)
    assert "Disabled" in text_of(web.get(page))
    delete = reverse("webhook_delete", args=[webhook.pk])
    refused = web.post(delete, {"reason": "unused"})
    assert (refused.status_code, "used by 1 rule" in refused.content.decode()) == (422, True)
    EventRule.objects.get().delete()
    assert web.post(delete, {"reason": "unused"}).url == reverse("webhook_list")
    assert not Webhook.objects.exists()


def test_a_test_is_enqueued_and_shown(web, now):
    webhook = make_delivery(now)[0]
    sent = web.post(reverse("webhook_test", args=[webhook.pk]), {"event_type": "slot.ready"})
    delivery = Delivery.objects.get(type="slot.ready")
    assert sent.url == reverse("delivery_detail", args=[delivery.pk])
    assert json.loads(delivery.payload)["type"] == "org.lcm.slot.ready"
    assert "org.lcm.slot.ready" in text_of(web.get(sent.url))


def test_a_rule_is_created_with_lines_of_patterns_and_edited(web, now):
    webhook = make_delivery(now)[0]
    values = {
        "name": "critical",
        "channel": "webhook",
        "webhook": webhook.pk,
        "event_types": "session.*\r\n\r\n slot.failed ",
        "pools": "cml-eu",
        "severities": ["critical"],
        "enabled": "on",
    }
    assert web.post(reverse("rule_create"), values).url == reverse("rule_list")
    rule = EventRule.objects.get(name="critical")
    assert (rule.event_types, rule.pools, rule.severities, rule.enabled) == (
        ["session.*", "slot.failed"], ["cml-eu"], ["critical"], True,
    )  # fmt: skip
    edit = reverse("rule_edit", args=[rule.pk])
    assert "session.*\nslot.failed" in text_of(web.get(edit))
    wrong = web.post(edit, {**values, "event_types": "session.nothing"})
    assert (wrong.status_code, list(wrong.context["form"].errors)) == (422, ["event_types"])
    assert web.post(edit, {**values, "enabled": ""}).status_code == 302
    rule.refresh_from_db()
    assert not rule.enabled
    assert web.post(reverse("rule_delete", args=[rule.pk]), {"reason": "noise"}).status_code == 302


def test_the_preview_shows_what_the_rule_would_have_matched(web, session):
    preview = reverse("rule_preview")
    found = text_of(web.get(preview, {"event_types": "session.*"}))
    assert "matched 1 event" in found
    assert f"session {session.short_id}" in found
    assert "matched 0 events" in text_of(web.get(preview, {"event_types": "session.*", "pools": "cml-us"}))
    part = text_of(web.get(preview, headers={"HX-Request": "true"}))
    assert "Enter an event type" in part
    assert "<html" not in part


def test_a_delivery_shows_its_attempts_and_is_retried_with_a_reason(web, failed):
    page = reverse("delivery_detail", args=[failed.pk])
    shown = text_of(web.get(page))
    assert "&lt;b&gt;oops&lt;/b&gt;" in shown
    assert "HTTP 500" in shown
    assert web.post(reverse("delivery_retry", args=[failed.pk]), {"reason": "fixed"}).url == page
    failed.refresh_from_db()
    assert failed.state == DeliveryState.PENDING
    assert ChangeLog.objects.get(event="delivery.retried").reason == "fixed"
    assert web.post(reverse("delivery_retry", args=[failed.pk]), {"reason": "x"}).status_code == 422
    assert "hx-trigger" in text_of(web.get(page))


def test_many_deliveries_are_retried_and_pending_ones_stay(web, failed, now):
    Delivery.objects.create(
        type="slot.ready", webhook=failed.webhook, payload="{}", next_attempt_at=now, retry_until=now
    )
    chosen = {"all": "1", "filter_query": "", "reason": "fixed"}
    done = web.post(reverse("delivery_bulk_retry"), chosen, follow=True)
    assert "1 delivery enqueued." in text_of(done)
    assert set(Delivery.objects.values_list("state", flat=True)) == {DeliveryState.PENDING}


def test_the_delivery_log_is_filtered_on_the_page_and_in_the_api(web, failed, now):
    other = {"type": "slot.ready", "webhook": failed.webhook, "payload": "{}", "retry_until": now}
    Delivery.objects.create(**other, state=DeliveryState.DELIVERED, created_at=now - timedelta(days=2))
    for query, count in (
        ("state=failed", 1), ("type=slot.ready", 1), (f"rule={failed.rule_id}", 1), ("q=slot", 1),
        (f"webhook={failed.webhook_id}", 2), ("state=dropped", 0),
    ):  # fmt: skip
        assert len(web.get(f"/api/deliveries/?{query}").json()["results"]) == count, query
        rows = web.get(f"{reverse('delivery_list')}?{query}").context["rows"].rows
        assert len(rows) == count, query
    assert web.get("/api/deliveries/?state=lost").status_code == 400


def test_the_api_manages_webhooks_rules_and_deliveries(api, admin, session, now):
    client = api(admin)
    created = client.post("/api/webhooks/", {"name": "erp", "url": URL})
    assert (created.status_code, created.json()["secret"][:6]) == (201, "whsec_")
    webhook = f"/api/webhooks/{created.json()['id']}/"
    assert client.patch(webhook, {"name": "erp-2"}).json()["name"] == "erp-2"
    assert client.patch(webhook, {"url": "http://x/"}).status_code == 400
    rotated = client.post(f"{webhook}rotate/", {"reason": "yearly"}).json()
    assert rotated["secret"] != created.json()["secret"]
    sent = client.post(f"{webhook}test/", {"event_type": "session.ready"})
    assert (sent.status_code, sent.json()["state"]) == (201, "pending")
    body = {"name": "labs", "event_types": ["session.*"], "webhook": created.json()["id"]}
    rule = client.post("/api/event-rules/", body).json()
    preview = client.get(f"/api/event-rules/{rule['id']}/preview/").json()
    assert (preview["count"], preview["limit"], preview["examples"][0]["type"]) == (1, 0, "session.requested")
    assert client.patch(f"/api/event-rules/{rule['id']}/", {"pools": ["cml-us"]}).json()["pools"] == [
        "cml-us"
    ]
    assert client.post("/api/event-rules/", {**body, "event_types": ["x.y"]}).status_code == 400
    assert client.delete(webhook, {"reason": "unused"}).status_code == 409
    one = client.get(f"/api/deliveries/{sent.json()['id']}/").json()
    assert (json.loads(one["payload"])["type"], one["attempts"]) == ("org.lcm.session.ready", [])
    assert client.post(f"/api/deliveries/{one['id']}/retry/", {"reason": "again"}).status_code == 409
    assert client.delete(f"/api/event-rules/{rule['id']}/", {"reason": "unused"}).status_code == 204
    assert client.delete(webhook, {"reason": "unused"}).status_code == 204


def test_a_repeated_creation_does_not_return_the_secret_again(api, admin):
    client, key = api(admin), {"HTTP_IDEMPOTENCY_KEY": "k1"}
    first = client.post("/api/webhooks/", {"name": "erp", "url": URL}, **key).json()
    second = client.post("/api/webhooks/", {"name": "erp", "url": URL}, **key).json()
    assert second == first | {"secret": None}


def test_viewers_do_not_see_the_values_of_webhooks_in_the_change_log(api, viewer, now):
    make_delivery(now)
    for row in api(viewer).get("/api/changes/?object_type=webhook&object_type=eventrule").json()["results"]:
        assert (row["before"], row["after"]) == (None, None)


def test_the_catalogue_has_every_type_with_its_data_example_and_schema(web):
    listed = text_of(web.get(reverse("event_type_list")))
    for name in event_types():
        page = reverse("event_type_detail", args=[name])
        assert page in listed
        text_of(web.get(page))
    shown = text_of(web.get(reverse("event_type_detail", args=["session.ending_soon"])))
    assert "Warning" in shown
    assert "&quot;org.lcm.session.ending_soon&quot;" in shown
    assert "https://json-schema.org/draft/2020-12/schema" in shown
    assert "“domain / project”" in shown
    assert web.get(reverse("event_type_detail", args=["session.unknown"])).status_code == 404
