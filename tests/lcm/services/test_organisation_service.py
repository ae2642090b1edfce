"""Domains, projects and memberships."""

import pytest

from lcm.domain.errors import InUse, InvalidInput
from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog, Domain, LabletSession, Membership, Project
from lcm.services import organisation as services
from tests.support.factories import DomainFactory, make_project


def entry(event):
    return ChangeLog.objects.get(event=event)


def test_a_domain_is_created_and_logged(as_admin):
    domain = services.create_domain(name="academy", description="Students", actor=as_admin)
    assert Domain.objects.get() == domain
    assert entry("domain.created").message == "domain academy created"
    assert entry("domain.created").after["description"] == "Students"


def test_a_project_is_created_in_its_domain_and_logged(as_admin):
    domain = DomainFactory(name="academy")
    project = services.create_project(domain=domain, name="ccna", actor=as_admin)
    assert project.path == "academy / ccna"
    assert entry("project.created").after["domain"] == str(domain.pk)


@pytest.mark.parametrize(
    "name", ["", "Academy", "my academy", "-academy", "academy-", "a_b", "x" * 64, "abc\n"]
)
def test_an_invalid_name_is_rejected(name, as_admin):
    with pytest.raises(InvalidInput) as caught:
        services.create_domain(name=name, actor=as_admin)
    assert list(caught.value.fields) == ["name"]
    assert not Domain.objects.exists()
    assert not ChangeLog.objects.exists()


@pytest.mark.parametrize("name", ["a", "7", "network-academy", "ccna-2026", "x" * 63])
def test_a_valid_name_is_accepted(name, as_admin):
    assert services.create_domain(name=name, actor=as_admin).name == name


def test_a_domain_name_is_unique(as_admin):
    DomainFactory(name="academy")
    with pytest.raises(InvalidInput, match="already exists") as caught:
        services.create_domain(name="academy", actor=as_admin)
    assert list(caught.value.fields) == ["name"]


def test_a_project_name_is_unique_in_its_domain(as_admin):
    project = make_project("academy", "ccna")
    with pytest.raises(InvalidInput, match="already has a project with this name"):
        services.create_project(domain=project.domain, name="ccna", actor=as_admin)
    services.create_project(domain=DomainFactory(name="university"), name="ccna", actor=as_admin)
    assert Project.objects.filter(name="ccna").count() == 2


def test_renaming_logs_the_old_and_the_new_name(as_admin):
    domain = DomainFactory(name="academy")
    services.update_domain(domain=domain, actor=as_admin, name="school")
    domain.refresh_from_db()
    assert domain.name == "school"
    assert entry("domain.edited").before == {"name": "academy"}
    assert entry("domain.edited").after == {"name": "school"}


def test_renaming_to_the_same_name_is_not_logged(as_admin):
    services.update_domain(domain=DomainFactory(name="academy"), actor=as_admin, name="academy")
    assert not ChangeLog.objects.exists()


def test_renaming_to_a_name_in_use_changes_nothing(as_admin):
    make_project("academy", "ccna")
    project = make_project("academy", "ccnp")
    with pytest.raises(InvalidInput, match="already has a project with this name"):
        services.update_project(project=project, actor=as_admin, name="ccna")
    project.refresh_from_db()
    assert project.name == "ccnp"


def test_a_project_cannot_move_to_another_domain(as_admin):
    project = make_project("academy", "ccna")
    with pytest.raises(InvalidInput) as caught:
        services.update_project(project=project, actor=as_admin, domain=DomainFactory())
    assert list(caught.value.fields) == ["domain"]


def test_an_empty_domain_is_deleted(as_admin):
    services.delete_domain(domain=DomainFactory(name="academy"), reason="over", actor=as_admin)
    assert not Domain.objects.exists()
    assert entry("domain.deleted").before["name"] == "academy"
    assert entry("domain.deleted").reason == "over"


def test_deleting_and_removing_need_a_reason(project, viewer, as_admin):
    for service, arguments in (
        (services.delete_domain, {"domain": DomainFactory()}),
        (services.delete_project, {"project": make_project("academy", "empty")}),
        (services.remove_member, {"project": project, "user": viewer}),
    ):
        with pytest.raises(InvalidInput, match="Enter a reason"):
            service(**arguments, reason=" ", actor=as_admin)
    assert project.memberships.filter(user=viewer).exists()
    assert (Domain.objects.count(), Project.objects.count()) == (2, 2)


@pytest.mark.parametrize(
    ("names", "references"), [(["ccna"], r"1 project\."), (["ccna", "ccnp"], r"2 projects\.")]
)
def test_a_domain_with_projects_cannot_be_deleted(names, references, as_admin):
    projects = [make_project("academy", name) for name in names]
    with pytest.raises(InUse, match=f"academy cannot be deleted because it is used by {references}"):
        services.delete_domain(domain=projects[0].domain, reason="over", actor=as_admin)
    assert Domain.objects.filter(name="academy").exists()
    assert not ChangeLog.objects.filter(event="domain.deleted").exists()


def test_a_project_with_sessions_cannot_be_deleted(session_in, project, as_admin):
    for _ in range(2):
        session_in(SessionStatus.TERMINATED)
    with pytest.raises(InUse, match=r"ccna cannot be deleted because it is used by 2 sessions\."):
        services.delete_project(project=project, reason="over", actor=as_admin)
    assert project.memberships.count() == 2
    assert LabletSession.objects.count() == 2


def test_a_project_without_sessions_is_deleted_with_its_memberships(project, as_admin):
    services.delete_project(project=project, reason="over", actor=as_admin)
    assert not Project.objects.exists()
    assert not Membership.objects.exists()


def test_adding_a_member_twice_is_a_no_op(project, stranger, as_admin):
    for _ in range(2):
        services.add_member(project=project, user=stranger, actor=as_admin)
    assert project.memberships.filter(user=stranger).count() == 1
    assert entry("project.member_added").message == "stan joined academy / ccna"


def test_a_member_is_removed(project, viewer, as_admin):
    services.remove_member(project=project, user=viewer, reason="over", actor=as_admin)
    assert not project.memberships.filter(user=viewer).exists()
    assert entry("project.member_removed").message == "vera left academy / ccna"
    assert entry("project.member_removed").reason == "over"


def test_removing_a_person_who_is_not_a_member_is_not_logged(project, stranger, as_admin):
    services.remove_member(project=project, user=stranger, reason="over", actor=as_admin)
    assert not ChangeLog.objects.exists()


@pytest.mark.parametrize("status", SessionStatus)
def test_a_member_with_an_active_session_cannot_be_removed(status, session_in, project, operator, as_admin):
    session = session_in(status)
    if session.is_final:
        services.remove_member(project=project, user=operator, reason="over", actor=as_admin)
    else:
        with pytest.raises(InUse, match="otto cannot leave academy / ccna: 1 active session"):
            services.remove_member(project=project, user=operator, reason="over", actor=as_admin)
    assert project.memberships.filter(user=operator).exists() == (not session.is_final)
