"""Creation of people, and links with which they set a password."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput, StateConflict
from lcm.domain.roles import Role
from lcm.models import ChangeLog, User
from lcm.services.new_people import NewPerson, create_people
from lcm.services.password_links import (
    create_password_link,
    link_tokens,
    password_link,
    send_password_link,
    set_password_by_link,
)
from lcm.services.people_import import MAX_PEOPLE, import_people, read_people
from tests.support.factories import make_person, make_project

SECRET = "a-long-new-secret"


@pytest.fixture
def create(admin):
    def create(*people):
        return create_people(people=people, actor=Actor.person(admin), now=timezone.now())

    return create


def test_a_new_person_has_a_role_projects_and_no_password(create, project, admin):
    [link] = create(NewPerson("nora", "Nora", "North", "nora@example.org", Role.OPERATOR, (project,)))
    ada = User.objects.get(username="nora")
    assert (ada.role, ada.email, list(ada.projects.all())) == (Role.OPERATOR, "nora@example.org", [project])
    assert not ada.has_usable_password()
    assert link_tokens.check_token(ada, link.token)
    logged = ChangeLog.objects.filter(object_id=str(ada.pk)).order_by("pk")
    assert [change.event for change in logged] == ["person.created", "person.invited"]
    assert logged[0].after["projects"] == [project.path]
    assert {change.user_id for change in logged} == {admin.pk}
    assert ChangeLog.objects.filter(event="project.member_added", message__startswith="nora joined").exists()
    assert not any(link.token in str((each.message, each.after)) for each in ChangeLog.objects.all())


@pytest.mark.parametrize(
    ("people", "field"),
    [
        ([NewPerson("Vera")], "username"),
        ([NewPerson("new"), NewPerson("NEW")], "username"),
        ([NewPerson("")], "username"),
        ([NewPerson("not a name")], "username"),
        ([NewPerson("new", email="nowhere")], "email"),
        ([NewPerson("nul\0")], "username"),
    ],
)
def test_an_invalid_person_is_named_at_the_field_and_nobody_is_created(people, field, create, viewer):
    count = User.objects.count()
    with pytest.raises(InvalidInput) as refused:
        create(NewPerson("first"), *people)
    assert set(refused.value.fields) == {field}
    assert User.objects.count() == count


def test_a_user_name_is_normalized_like_in_the_sign_in_form(create):
    (link,) = create(NewPerson("ｎｏｒａ"))
    assert link.user.username == "nora"
    with pytest.raises(InvalidInput, match="already"):
        create(NewPerson("Ｎora"))


def test_many_people_need_as_many_queries_as_few(create, project):
    counts = []
    for prefix, count in (("few", 2), ("many", 40)):
        people = [NewPerson(f"{prefix}-{n}", role=Role.VIEWER, projects=(project,)) for n in range(count)]
        with CaptureQueriesContext(connection) as captured:
            create(*people)
        counts.append(len(captured))
    assert counts[0] == counts[1]


def test_a_link_sets_the_password_once(viewer):
    link = password_link(viewer, now=timezone.now())
    first, second = User.objects.get(pk=viewer.pk), User.objects.get(pk=viewer.pk)
    set_password_by_link(user=first, new=SECRET, now=timezone.now())
    with pytest.raises(StateConflict, match="has been used"):
        set_password_by_link(user=second, new="another-long-secret", now=timezone.now())
    viewer.refresh_from_db()
    assert viewer.check_password(SECRET)
    assert not link_tokens.check_token(viewer, link.token)
    assert ChangeLog.objects.get(event="person.password_set").user_id == viewer.pk


def test_a_sign_in_ends_the_links_of_an_account(viewer, client):
    link = password_link(viewer, now=timezone.now())
    client.force_login(viewer)
    viewer.refresh_from_db()
    assert not link_tokens.check_token(viewer, link.token)


def test_a_weak_password_is_rejected_at_its_field(viewer):
    with pytest.raises(InvalidInput) as refused:
        set_password_by_link(user=viewer, new="short", now=timezone.now())
    assert "new" in refused.value.fields


def test_a_link_for_an_existing_person_requires_a_reason_and_is_logged(admin, viewer):
    now = timezone.now()
    with pytest.raises(InvalidInput, match="Enter a reason"):
        create_password_link(user=viewer, reason=" ", by=admin, now=now)
    link = create_password_link(user=viewer, reason="forgot it", by=admin, now=now)
    assert link.expires_at == now + timedelta(hours=settings.CONFIG["PASSWORD_LINK_HOURS"])
    assert ChangeLog.objects.get(event="person.invited").reason == "forgot it"


def test_admins_cannot_create_links_for_themselves_superusers_or_closed_accounts(admin):
    root, closed = make_person("root", is_superuser=True), make_person("gone", is_active=False)
    for person, why in ((admin, "own password"), (root, "superusers"), (closed, "closed")):
        with pytest.raises(StateConflict, match=why):
            create_password_link(user=person, reason="try", by=admin, now=timezone.now())


def test_a_link_is_sent_by_email_only_if_email_is_configured(settings, viewer, mailoutbox, caplog):
    viewer.email = "vera@example.org"
    sent = {"user": viewer, "url": "https://lcm.example.org/set", "expires_at": "tomorrow"}
    assert not send_password_link(**sent)
    settings.CONFIG["EMAIL_URL"] = "smtp://mail.example.org"
    assert send_password_link(**sent)
    assert mailoutbox[0].to == ["vera@example.org"]
    assert "https://lcm.example.org/set" in mailoutbox[0].body
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    assert not send_password_link(**sent)
    viewer.email = ""
    assert not send_password_link(**sent)
    assert len(mailoutbox) == 1


FILE = "\ufeffUsername;email;role;projects\r\nnora;nora@example.org;operator;academy/ccna, x\r\n"


def test_a_csv_file_is_read_with_its_separator_roles_and_projects(project):
    other = make_project("partners", project.name)
    header = "username,role,projects\n"
    paths = f"{project.domain.name} / {project.name}; {other.domain.name}/{other.name}"
    rows = read_people(content=f"{header}nora,Operator,{paths}\n,x,\n".encode())
    assert (rows[0].person.role, rows[0].person.projects, rows[0].problems) == (
        Role.OPERATOR,
        (project, other),
        [],
    )
    assert rows[1].line == 3
    assert len(rows[1].problems) == 2
    [row] = read_people(content=FILE.encode())
    assert row.person.username == "nora"
    assert row.problems == ["There is no project “academy/ccna, x”."]
    [row] = read_people(content=f"{header}nora,,{project.name}\n")
    assert row.problems == [f"Several domains have a project “{project.name}”; write domain/project."]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", "first line must name the columns"),
        ("name,role\nada,\n", "first line must name the columns"),
        ("username,username\nada,ada\n", "first line must name the columns"),
        ("username\n", "no line below"),
        ("username,role\nada,Viewer,more\n", "Line 2 has more values"),
        ('username\n"ada\n', "is not CSV"),
        (b"username\n\xff\n", "not UTF-8"),
        (b"username,projects\nada,a\x00b\n", "not UTF-8"),
        ("username\n" + "ada\n" * (MAX_PEOPLE + 1), "more than 1,000 people"),
        ("x" * (1024 * 1024 + 1), "larger than 1 MB"),
    ],
)
def test_a_file_that_cannot_be_read_is_rejected(content, error, db):
    with pytest.raises(InvalidInput, match=error):
        read_people(content=content)


def test_a_file_with_an_error_changes_nothing(admin):
    with pytest.raises(InvalidInput, match="lines first: 3"):
        import_people(content="username\nnora\nno name\n", actor=Actor.person(admin), now=timezone.now())
    assert not User.objects.filter(username="nora").exists()
    assert not ChangeLog.objects.filter(event="person.created").exists()
