"""Every save and deletion in the admin is recorded in the change log."""

import re

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse

from lcm.admin.sessions import SessionAdmin
from lcm.domain.lifecycle import SessionStatus
from lcm.domain.roles import Role
from lcm.models import ChangeLog, Domain, LabletDefinition, LabletSession, Membership, Project, User
from tests.lcm.admin.browsing import (
    act,
    add_url,
    change_url,
    delete,
    delete_url,
    edit,
    list_url,
    log_of,
    messages_of,
)
from tests.support.factories import make_person, make_person_token, make_project


def test_a_save_is_logged_with_actor_and_changed_fields(staff_client, staff_admin, project):
    response = edit(staff_client, project.domain, description="The academy")
    assert response.status_code == 302
    (entry,) = log_of(project.domain)
    assert (entry.event, entry.actor, entry.user_id) == ("admin.edited", "fay", staff_admin.pk)
    assert (entry.before, entry.after) == ({"description": ""}, {"description": "The academy"})
    assert entry.message == "domain academy edited as a data fix: description"
    assert entry.reason == "corrected"
    assert entry.request_id


def test_a_save_that_changes_nothing_is_not_logged(staff_client, project):
    assert edit(staff_client, project.domain).status_code == 302
    assert not log_of(project.domain)


def test_an_addition_is_logged_with_the_new_values(staff_client):
    staff_client.post(add_url(Domain), {"name": "partners", "description": "Others"})
    (entry,) = log_of(Domain.objects.get(name="partners"))
    assert entry.event == "admin.added"
    assert entry.after == {"name": "partners", "description": "Others"}


def test_a_rejected_save_is_not_logged(staff_client, project):
    page = edit(staff_client, project.domain, name="Not A Name")
    assert page.status_code == 200
    assert "Use lowercase letters" in page.content.decode()
    assert not log_of(project.domain)


def test_a_deletion_is_logged_with_the_old_values(staff_client, db):
    domain = Domain.objects.create(name="empty")
    delete(staff_client, domain)
    (entry,) = log_of(domain)
    assert (entry.event, entry.before) == ("admin.deleted", {"name": "empty", "description": ""})
    assert entry.reason == "not needed"


def test_deleting_selected_objects_logs_each(staff_client, db):
    domains = [Domain.objects.create(name=name) for name in ("one", "two")]
    act(staff_client, "delete_selected", *domains, post="yes", reason="both are empty")
    assert not Domain.objects.exists()
    for domain in domains:
        assert (log_of(domain)[-1].event, log_of(domain)[-1].reason) == ("admin.deleted", "both are empty")


@pytest.mark.parametrize("sent", [{}, {"post": "yes"}, {"post": "yes", "reason": " \n"}])
def test_a_deletion_without_a_reason_shows_the_form_again(staff_client, db, sent):
    domain = Domain.objects.create(name="empty")
    sent = {"csrfmiddlewaretoken": "x", **sent}
    page = staff_client.post(delete_url(domain), sent)
    assert page.status_code == 200
    assert "This field is required." in page.content.decode()
    assert Domain.objects.filter(pk=domain.pk).exists()
    assert not log_of(domain)


@pytest.mark.parametrize("reason", ["", " "])
def test_deleting_selected_objects_without_a_reason_shows_the_form_again(staff_client, db, reason):
    domains = [Domain.objects.create(name=name) for name in ("one", "two")]
    page = act(staff_client, "delete_selected", *domains, post="yes", reason=reason)
    text = page.content.decode()
    assert "This field is required." in text
    assert all(f'name="_selected_action" value="{domain.pk}"' in text for domain in domains)
    assert Domain.objects.count() == 2
    assert not ChangeLog.objects.filter(event="admin.deleted").exists()


def test_confirmation_pages_have_a_reason_field_without_an_error(staff_client, db):
    domain = Domain.objects.create(name="empty")
    for page in (staff_client.get(delete_url(domain)), act(staff_client, "delete_selected", domain)):
        text = page.content.decode()
        assert '<textarea name="reason"' in text
        assert "required" in text.split('<textarea name="reason"')[1].split(">")[0]
        assert "errorlist" not in text
        assert not re.search(r"<script>|<style|\sstyle=|\son[a-z]+=", text)


@pytest.mark.parametrize("reason", ["", " "])
def test_an_edit_without_a_reason_is_rejected_at_its_field(staff_client, project, reason):
    page = edit(staff_client, project.domain, description="The academy", reason=reason)
    assert page.status_code == 200
    assert page.context["adminform"].form.errors == {"reason": ["This field is required."]}
    project.domain.refresh_from_db()
    assert project.domain.description == ""


def test_viewing_and_adding_require_no_reason(staff_client, session):
    change_page = change_url(session.transitions.get())
    for url in (change_page, add_url(Domain)):
        assert 'name="reason"' not in staff_client.get(url).content.decode()


def test_dependents_of_a_deleted_object_are_logged_too(staff_client, viewer, project):
    holder = make_person_token(viewer, "laptop")
    membership = Membership.objects.get(user=viewer)
    delete(staff_client, viewer)
    assert not User.objects.filter(pk=viewer.pk).exists()
    for deleted in (viewer, membership, holder.token):
        assert log_of(deleted)[-1].event == "admin.deleted"
        assert not {"hash", "password"} & set(log_of(deleted)[-1].before)
    assert log_of(viewer)[-1].before["groups"] == ["Viewer"]


def test_a_protected_object_is_not_deleted_and_the_page_lists_its_references(staff_client, session):
    for obj in (session.project.domain, session.project, session.owner):
        page = delete(staff_client, obj)
        assert "would require deleting the following protected related objects" in page.content.decode()
        page = act(staff_client, "delete_selected", obj, post="yes", reason="not needed")
        assert "would require deleting the following protected related objects" in page.content.decode()
        assert type(obj).objects.filter(pk=obj.pk).exists()
        assert not ChangeLog.objects.filter(event="admin.deleted").exists()
    assert str(session) in page.content.decode()


def test_the_page_lists_only_a_few_of_many_references(staff_client, session_in):
    sessions = [session_in(SessionStatus.CANCELLED) for _ in range(7)]
    page = staff_client.get(delete_url(sessions[0].project))
    assert page.content.decode().count("Session: <a href") == 5
    assert "and 2 other sessions" in page.content.decode()


@pytest.mark.parametrize("status", [SessionStatus.PENDING, SessionStatus.CANCELLED])
def test_members_with_active_sessions_cannot_be_removed(staff_client, session_in, status):
    session = session_in(status)
    membership = Membership.objects.get(user=session.owner)
    page = delete(staff_client, membership)
    assert Membership.objects.filter(pk=membership.pk).exists() is not session.is_final
    assert (page.status_code == 200 and str(session) in page.content.decode()) is not session.is_final


def test_an_added_membership_is_logged(staff_client, project, stranger):
    staff_client.post(add_url(Membership), {"user": stranger.pk, "project": project.pk})
    (entry,) = log_of(Membership.objects.get(user=stranger))
    assert entry.event == "admin.added"
    assert entry.after == {"project": str(project.pk), "user": str(stranger.pk)}
    assert not log_of(project)


def test_a_new_role_is_logged_by_the_names_of_the_groups(staff_client, viewer):
    operators = Group.objects.get_or_create(name="Operator")[0]
    edit(staff_client, viewer, groups=[operators.pk], time_zone="Europe/Rome")
    assert viewer.groups.get() == operators
    (entry,) = log_of(viewer)
    assert entry.before == {"time_zone": "", "groups": ["Viewer"]}
    assert entry.after == {"time_zone": "Europe/Rome", "groups": ["Operator"]}


def test_a_new_person_is_logged_without_the_password(staff_client):
    password = "a long enough passphrase"
    sent = {"username": "nina", "usable_password": "true", "password1": password, "password2": password}
    staff_client.post(add_url(User), sent)
    person = User.objects.get(username="nina")
    assert person.check_password(password)
    (entry,) = log_of(person)
    assert entry.event == "admin.added"
    assert "password" not in entry.after
    assert person.password not in str(entry.after)


def test_a_password_change_by_an_admin_is_logged_without_the_password(staff_client, viewer):
    password = "a long enough passphrase"
    sent = {"usable_password": "true", "password1": password, "password2": password}
    staff_client.post(reverse("admin:auth_user_password_change", args=[viewer.pk]), sent)
    viewer.refresh_from_db()
    assert viewer.check_password(password)
    (entry,) = log_of(viewer)
    assert (entry.event, entry.actor, entry.before, entry.after) == (
        "person.password_changed",
        "fay",
        None,
        None,
    )


def test_saving_a_form_keeps_concurrent_changes(staff_client, session, viewer, monkeypatch):
    """The form was loaded while the session was pending; only the edited column is saved."""
    save = SessionAdmin.save_model

    def transition_before_save(self, request, obj, form, change):
        LabletSession.objects.filter(pk=obj.pk).update(status=SessionStatus.SCHEDULED)
        save(self, request, obj, form, change)

    monkeypatch.setattr(SessionAdmin, "save_model", transition_before_save)
    edit(staff_client, session, owner=viewer.pk)
    session.refresh_from_db()
    assert (session.status, session.owner) == (SessionStatus.SCHEDULED, viewer)
    assert log_of(session)[-1].event == "admin.edited"
    assert list(log_of(session)[-1].after) == ["owner"]


def test_a_status_cannot_be_posted(staff_client, session, viewer):
    forged = {"status": "RUNNING", "attempt": 7, "status_since_0": "2020-01-01"}
    edit(staff_client, session, **forged, owner=viewer.pk)
    fresh = LabletSession.objects.get(pk=session.pk)
    assert (fresh.status, fresh.attempt, fresh.owner) == (SessionStatus.PENDING, 1, viewer)
    assert list(log_of(session)[-1].after) == ["owner"]


def test_pool_and_priority_of_a_session_cannot_be_edited(staff_client, session):
    before = (session.pool, session.priority)
    edit(staff_client, session, pool="cml-us", priority="90")
    session.refresh_from_db()
    assert (session.pool, session.priority) == before
    assert not [entry for entry in log_of(session) if entry.event == "admin.edited"]


def test_the_domain_of_a_project_cannot_be_changed(staff_client, project):
    other = Domain.objects.create(name="other")
    edit(staff_client, project, domain=other.pk, description="New")
    project.refresh_from_db()
    assert (project.domain.name, project.description) == ("academy", "New")
    staff_client.post(add_url(Project), {"name": "ccie", "domain": other.pk})
    assert Project.objects.get(name="ccie").domain == other


def test_a_definition_is_edited_but_its_numbers_and_status_are_not(staff_client, definition):
    forged = {
        "status": "active",
        "node_count": 99,
        "topology_hash": "x",
        "current_revision": "",
        "nodes": "[]",
    }
    edit(staff_client, definition, pool="cml-us", **forged)
    fresh = LabletDefinition.objects.get(pk=definition.pk)
    assert fresh.pool == "cml-us"
    assert (fresh.status, fresh.node_count, fresh.topology_hash, fresh.nodes, fresh.current_revision_id) == (
        "draft",
        definition.node_count,
        definition.topology_hash,
        definition.nodes,
        definition.current_revision_id,
    )
    assert log_of(definition)[-1].after == {"pool": "cml-us"}


def test_a_token_is_renamed_but_not_extended(staff_client, viewer):
    token = make_person_token(viewer, "laptop").token
    edit(staff_client, token, name="desk", expires_at_0="2099-01-01", expires_at_1="00:00", hash="x")
    fresh = type(token).objects.get(pk=token.pk)
    assert (fresh.name, fresh.hash, fresh.expires_at) == ("desk", token.hash, token.expires_at)
    assert log_of(token)[-1].after == {"name": "desk"}


def test_the_page_shows_the_saved_values(staff_client, db):
    make_project("academy", "ccna", make_person("mia", Role.VIEWER))
    staff_client.post(add_url(Domain), {"name": "partners"})
    assert any("partners" in text for text in messages_of(staff_client.get(list_url(Domain))))
