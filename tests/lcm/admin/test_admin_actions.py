"""Admin actions change statuses by calling services."""

import re

import pytest

from lcm.domain.lifecycle import TRANSITIONS, SessionStatus
from lcm.models import DefinitionStatus, LabletSession
from tests.lcm.admin.browsing import act, edit, list_url, log_of, messages_of
from tests.support.factories import make_controller, make_definition

S = SessionStatus


def status_of(session):
    return LabletSession.objects.get(pk=session.pk).status


def test_a_status_cannot_be_posted(staff_client, session, viewer):
    forged = {"status": "RUNNING", "attempt": 7, "status_since_0": "2020-01-01"}
    edit(staff_client, session, **forged, owner=viewer.pk)
    fresh = LabletSession.objects.get(pk=session.pk)
    assert (fresh.status, fresh.attempt, fresh.owner) == (S.PENDING, 1, viewer)
    assert list(log_of(session)[-1].after) == ["owner"]


@pytest.mark.parametrize(("action", "field"), [("cancel", "reason"), ("move", "to")])
def test_an_action_shows_a_form_first(staff_client, session, action, field):
    page = act(staff_client, action, session)
    text = page.content.decode()
    assert page.status_code == 200
    assert f'name="{field}"' in text
    assert f'value="{session.pk}"' in text
    assert not re.search(r"<script>|<style|\sstyle=|\son[a-z]+=", text)
    assert status_of(session) == S.PENDING


@pytest.mark.parametrize("action", ["cancel", "move"])
def test_an_action_without_a_reason_shows_the_form_again(staff_client, session, action):
    page = act(staff_client, action, session, apply="yes", to="SCHEDULED", reason=" ")
    assert "This field is required." in page.content.decode()
    assert status_of(session) == S.PENDING


def test_cancelling_calls_the_service(staff_client, session, session_in):
    running = session_in(S.RUNNING)
    page = act(staff_client, "cancel", session, running, apply="yes", reason="wrong lab")
    assert messages_of(page) == ["2 sessions cancelled or being stopped."]
    assert (status_of(session), status_of(running)) == (S.CANCELLED, S.STOPPING)
    step = session.transitions.last()
    assert (step.to_status, step.actor, step.reason) == (S.CANCELLED, "fay", "wrong lab")
    entry = log_of(session)[-1]
    assert (entry.event, entry.actor, entry.reason) == ("session_transition", "fay", "wrong lab")


@pytest.mark.parametrize(
    ("old", "new"), [(old, new) for old, following in TRANSITIONS.items() for new in following]
)
def test_every_transition_of_the_table_is_allowed(staff_client, session_in, old, new):
    session = session_in(old)
    page = act(staff_client, "move", session, apply="yes", to=new.value, reason="stuck")
    assert messages_of(page) == ["1 session moved."]
    assert status_of(session) == new
    assert session.transitions.filter(from_status=old, to_status=new, reason="stuck").exists()
    assert session.kernels.exists()


def test_a_rejected_transition_is_reported_and_the_others_continue(staff_client, session, session_in):
    ended = session_in(S.CANCELLED)
    page = act(staff_client, "move", session, ended, apply="yes", to="SCHEDULED", reason="by hand")
    assert sorted(messages_of(page)) == sorted(
        ["1 session moved.", f"{ended} is cancelled and cannot become scheduled. This status is final."]
    )
    assert (status_of(session), status_of(ended)) == (S.SCHEDULED, S.CANCELLED)
    assert log_of(ended)[-1].after == {"status": "CANCELLED"}


def test_many_rejections_are_summarised(staff_client, session_in, monkeypatch):
    monkeypatch.setattr("lcm.admin.actions.REFUSALS_SHOWN", 1)
    ended = [session_in(S.CANCELLED) for _ in range(3)]
    page = act(staff_client, "cancel", *ended, apply="yes", reason="again")
    assert messages_of(page)[1:] == ["2 more were rejected."]


def test_too_many_objects_at_once_are_rejected(staff_client, session, session_in, monkeypatch):
    monkeypatch.setattr("lcm.admin.actions.AT_ONCE", 1)
    page = act(staff_client, "cancel", session, session_in(S.PENDING), apply="yes", reason="all")
    assert messages_of(page) == ["Select at most 1 objects at a time. Nothing was changed."]
    assert status_of(session) == S.PENDING


def test_definitions_are_activated_and_deprecated(staff_client, definition):
    active = make_definition("other")
    page = act(staff_client, "activate", definition, active)
    assert sorted(messages_of(page)) == ["1 definition set to active.", "other v1.0 is active already."]
    assert 'name="reason"' in act(staff_client, "deprecate", definition).content.decode()
    page = act(staff_client, "deprecate", definition, apply="yes", reason="new term")
    assert messages_of(page) == ["1 definition set to deprecated."]
    definition.refresh_from_db()
    assert definition.status == DefinitionStatus.DEPRECATED
    assert [entry.event for entry in log_of(definition)[1:]] == ["definition_status"] * 2
    assert {entry.actor for entry in log_of(definition)[1:]} == {"fay"}
    assert log_of(definition)[-1].reason == "new term"


def test_tokens_are_revoked_with_a_reason(staff_client, db):
    token = make_controller("controller-eu", "pool:cml-eu").token
    assert 'name="reason"' in act(staff_client, "revoke", token).content.decode()
    assert messages_of(act(staff_client, "revoke", token, apply="yes", reason="lost")) == ["1 token revoked."]
    token.refresh_from_db()
    assert token.state == "revoked"
    assert (log_of(token)[-1].event, log_of(token)[-1].reason) == ("token_revoked", "lost")
    again = act(staff_client, "revoke", token, apply="yes", reason="lost")
    assert messages_of(again) == ["The token controller-eu has been revoked already."]


def test_an_action_selected_below_the_list_is_used(staff_client, session):
    chosen = {"action": ["", "move"], "index": 1, "_selected_action": [str(session.pk)]}
    page = staff_client.post(list_url(session), chosen)
    assert page.context["action"] == "move"
