"""Pages and API of the inbox, own subscriptions and watched objects."""

from __future__ import annotations

import pytest
from django.contrib.messages import get_messages
from django.urls import reverse

from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog, Delivery, Watch
from lcm.selectors.inbox import inbox_of, unread_of
from lcm.services.event_routing import route_events
from lcm.services.subscriptions import watch_object


@pytest.fixture
def entries(session_in, operator, viewer, now):
    """Two entries of the operator, who owns the sessions, and one of the viewer, who watches one."""
    sessions = [session_in(SessionStatus.READY), session_in(SessionStatus.READY)]
    route_events(now=now)
    watch_object(user=viewer, obj=sessions[0], now=now)
    ChangeLog._base_manager.filter(object_id=str(sessions[0].pk), event="session.ready").update(routed=False)
    route_events(now=now)
    return list(inbox_of(operator).order_by("event"))


@pytest.fixture
def web(client, operator):
    client.force_login(operator)
    return client


def text_of(response):
    assert response.status_code == 200
    return response.content.decode()


def test_every_page_shows_the_number_of_unread_entries(web, entries):
    assert 'aria-label="Inbox, 2 unread"' in text_of(web.get(reverse("session_list")))
    web.post(reverse("inbox_read_all"))
    page = text_of(web.get(reverse("session_list")))
    assert 'aria-label="Inbox"' in page
    assert "unread" not in page


def test_opening_an_entry_marks_it_as_read_and_leads_to_the_object(web, entries, operator):
    change = ChangeLog.objects.get(pk=entries[0].event)
    page = reverse("session_detail", args=[change.object_id])
    assert web.get(reverse("inbox_open", args=[entries[0].pk])).url == page
    assert list(unread_of(operator)) == [entries[1]]
    ChangeLog._base_manager.filter(pk=change.pk).update(object_type="apitoken")
    gone = web.get(reverse("inbox_open", args=[entries[0].pk]))
    assert gone.url == reverse("change_detail", args=[change.pk])


def test_an_entry_of_somebody_else_does_not_exist(web, entries, viewer, api, operator):
    other = inbox_of(viewer).get()
    assert web.get(reverse("inbox_open", args=[other.pk])).status_code == 404
    for call in ("", "read/", "unread/"):
        method = api(operator).post if call else api(operator).get
        assert method(f"/api/inbox/{other.pk}/{call}").status_code == 404
    web.post(reverse("inbox_read"), {"pk": [other.pk]})
    assert unread_of(viewer).count() == 1


def test_entries_are_marked_one_by_one_or_all_that_match(web, entries, operator):
    done = web.post(reverse("inbox_read"), {"pk": [entries[0].pk]})
    assert done.url == reverse("inbox_list")
    assert str(next(iter(get_messages(done.wsgi_request)))) == "1 entry marked as read."
    assert unread_of(operator).count() == 1
    web.post(reverse("inbox_unread"), {"all": "1", "filter_query": "read=true"})
    assert unread_of(operator).count() == 2
    htmx = web.post(reverse("inbox_read"), {"all": "1"}, headers={"HX-Request": "true"})
    assert htmx["HX-Redirect"] == reverse("inbox_list")
    assert not unread_of(operator).exists()


def test_the_list_is_filtered_and_searched_on_the_page_and_in_the_api(web, entries, operator):
    web.post(reverse("inbox_read"), {"pk": [entries[0].pk]})
    name = entries[0].cloud_event["data"]["name"]
    for query, count in (
        ("", 2),
        ("read=true", 1),
        ("read=false", 1),
        (f"q={name}", 1),
        ("type=slot.ready", 0),
    ):
        assert len(web.get(f"{reverse('inbox_list')}?{query}").context["rows"].rows) == count, query
        assert len(web.get(f"/api/inbox/?{query}").json()["results"]) == count, query
    assert "Session ready" in text_of(web.get(reverse("inbox_list")))
    assert "You own it" in text_of(web.get(reverse("inbox_list")))


def test_the_api_shows_and_marks_entries(api, operator, entries):
    client = api(operator)
    one = client.get("/api/inbox/").json()["results"][0]
    assert (one["type"], one["cause"], one["read_at"], one["severity"]) == (
        "session.ready",
        "owner",
        None,
        "info",
    )
    assert one["url"].startswith("http://127.0.0.1:8000/sessions/")
    read = client.post(f"/api/inbox/{one['id']}/read/").json()
    assert read["read_at"]
    assert client.post(f"/api/inbox/{one['id']}/unread/").json()["read_at"] is None
    assert client.post("/api/inbox/read-all/").json() == {"count": 2}


def test_an_object_is_watched_and_unwatched_with_the_button_on_its_page(web, session, operator):
    page = reverse("session_detail", args=[session.pk])
    address = reverse("watch", args=["labletsession", session.pk])
    assert address in text_of(web.get(page))
    assert web.post(address).url == page
    assert Watch.objects.get().user == operator
    assert "Stop watching" in text_of(web.get(page))
    settings = reverse("notification_settings")
    assert f"session {session.short_id}" in text_of(web.get(settings)).lower()
    assert web.post(address, {"stop": "1", "next": settings}).url == settings
    assert not Watch.objects.exists()
    assert web.post(address, {"next": "https://example.org/"}).url == page
    for name in ("user", "nothing"):
        assert web.post(reverse("watch", args=[name, operator.pk])).status_code == 404


def test_channels_are_chosen_on_the_page(web, operator, settings):
    page = reverse("notification_settings")
    assert "LCM sends no e-mail" in text_of(web.get(page))
    assert web.post(page, {"inbox": ["session.ready"], "email": ["watched"]}).url == page
    operator.refresh_from_db()
    assert operator.notification_choices == {"inbox": ["session.ready"], "email": ["watched"]}
    assert ChangeLog.objects.get(event="person.notifications_changed").object_id == str(operator.pk)
    assert web.post(page, {"inbox": ["token.created"]}).status_code == 422
    settings.CONFIG["EMAIL_URL"] = "smtp://mail.example.org"
    assert "otto@example.org" in text_of(web.get(page))


def test_the_api_changes_own_subscriptions_and_watches(api, viewer, session):
    client = api(viewer)
    rows = {row["event_type"]: row for row in client.get("/api/subscriptions/").json()["results"]}
    assert rows["session.ready"] == {"event_type": "session.ready", "inbox": True, "email": False}
    assert {"watched", "webhook.disabled"} <= rows.keys()
    changed = client.patch("/api/subscriptions/session.ready/", {"email": True}).json()
    assert changed == {"event_type": "session.ready", "inbox": True, "email": True}
    assert client.patch("/api/subscriptions/token.created/", {"email": True}).status_code == 404
    body = {"object_type": "labletsession", "object_id": str(session.pk)}
    made = client.post("/api/watches/", body)
    assert (made.status_code, made.json()["object_label"]) == (201, f"session {session.short_id}")
    assert client.post("/api/watches/", body).json()["id"] == made.json()["id"]
    assert client.post("/api/watches/", {**body, "object_id": str(viewer.pk)}).status_code == 400
    assert len(client.get("/api/watches/").json()["results"]) == 1
    assert client.delete(f"/api/watches/{made.json()['id']}/").status_code == 204
    assert not Watch.objects.exists()


def test_rules_by_inbox_are_created_tested_and_shown_in_the_delivery_log(client, api, admin, viewer, session):
    client.force_login(admin)
    values = {
        "name": "labs",
        "channel": "inbox",
        "recipients": "role:Viewer\nada",
        "event_types": "session.*",
        "digest_interval": "5 min",
        "enabled": "on",
    }
    assert client.post(reverse("rule_create"), values).url == reverse("rule_list")
    assert "role:Viewer, ada" in text_of(client.get(reverse("rule_list")))
    rule = api(admin).get("/api/event-rules/").json()["results"][0]
    assert (rule["channel"], rule["webhook"], rule["digest_interval"]) == ("inbox", None, "00:05:00")
    log = client.post(reverse("rule_test", args=[rule["id"]]), {"event_type": "slot.ready"}).url
    shown = text_of(client.get(log))
    assert ("vera" in shown, "Inbox" in shown) == (True, True)
    sent = api(admin).post(f"/api/event-rules/{rule['id']}/test/", {"event_type": "slot.ready"})
    assert {each["recipient"] for each in sent.json()["deliveries"]} == {str(admin.pk), str(viewer.pk)}
    entry = Delivery.objects.filter(recipient=viewer).first()
    assert api(admin).post(f"/api/deliveries/{entry.pk}/retry/", {"reason": "x"}).status_code == 409
    assert "unread" in text_of(client.get(reverse("delivery_detail", args=[entry.pk])))
    assert len(api(admin).get(f"/api/deliveries/?channel=inbox&recipient={viewer.pk}").json()["results"]) == 2
    client.force_login(viewer)
    opened = client.get(reverse("inbox_open", args=[entry.pk]))
    assert opened.url == reverse("inbox_list")
