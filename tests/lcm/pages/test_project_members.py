"""Domains with many projects, projects with many members, and adding members."""

from __future__ import annotations

import pytest
from django.urls import reverse

from lcm.domain.lifecycle import SessionStatus
from lcm.models import Membership, Project, User
from lcm.pages.organisation import PROJECTS_SHOWN
from lcm.pages.project_members import MEMBERS_SHOWN


@pytest.fixture
def client_of_admin(client, admin):
    client.force_login(admin)
    return client


@pytest.fixture
def large_project(project):
    """A project with three more members than its page shows; person-000 is the first."""
    people = User.objects.bulk_create(
        User(username=f"person-{number:03}", last_name=f"Number {number}")
        for number in range(MEMBERS_SHOWN + 3)
    )
    Membership.objects.filter(project=project).delete()
    Membership.objects.bulk_create(Membership(project=project, user=user) for user in people)
    return project


def test_a_domain_counts_and_links_all_its_projects(client_of_admin, project):
    domain = project.domain
    Project.objects.filter(domain=domain).delete()
    Project.objects.bulk_create(
        Project(domain=domain, name=f"project-{number:03}") for number in range(PROJECTS_SHOWN + 2)
    )
    page = client_of_admin.get(reverse("domain_detail", args=[domain.pk])).content.decode()
    assert "<strong>102 projects</strong> · 0 people · 0 sessions running" in page
    assert page.count('<td class="card-title">') == PROJECTS_SHOWN
    assert "2 more projects in the full list" in page
    full_list = f"{reverse('project_list')}?domain={domain.name}"
    assert f'href="{full_list}"' in page
    assert "of 102 projects" in client_of_admin.get(full_list).content.decode()


def test_a_member_beyond_the_first_page_is_found_and_removed(client_of_admin, large_project):
    project_page, full_list = (
        reverse("project_detail", args=[large_project.pk]),
        reverse("member_list", args=[large_project.pk]),
    )
    page = client_of_admin.get(project_page).content.decode()
    assert "person-101" not in page
    assert "3 more members in the full list" in page
    assert f'href="{full_list}"' in page
    found = client_of_admin.get(full_list, {"q": "person-101"}).content.decode()
    last = User.objects.get(username="person-101")
    remove = reverse("member_remove", args=[large_project.pk, last.pk])
    assert found.count('<td class="card-title">') == 1
    assert f'href="{remove}"' in found
    client_of_admin.post(remove, {"reason": "left the course"})
    assert not Membership.objects.filter(project=large_project, user=last).exists()


def test_members_are_paged_and_limited_to_the_project(client_of_admin, large_project, stranger):
    other = Project.objects.create(domain=large_project.domain, name="other")
    Membership.objects.create(project=other, user=stranger)
    full_list = reverse("member_list", args=[large_project.pk])
    page = client_of_admin.get(full_list).content.decode()
    assert "1–25 of 103 members" in page
    assert large_project.path in page
    assert "No member matches" in client_of_admin.get(full_list, {"q": stranger.username}).content.decode()
    latest = client_of_admin.get(full_list, {"sort": "-user__username"}).context["rows"].rows
    assert [row.user.username for row in latest[:2]] == ["person-102", "person-101"]


def test_pages_show_who_can_request_and_how_many_sessions_run(client_of_admin, project, session_in):
    session_in(SessionStatus.RUNNING)
    project.description = "Autumn term"
    project.save()
    project_page, full_list = (
        reverse("project_detail", args=[project.pk]),
        reverse("member_list", args=[project.pk]),
    )
    domain = reverse("domain_detail", args=[project.domain_id])
    for address, text in {
        project_page: f'running</p>\n      <p class="sub">{project.description}</p>',
        domain: "<strong>1 project</strong> · 2 people",
        full_list: f"<strong>2 people can request sessions in {project.path}.</strong>",
        reverse("domain_list"): "<strong>One domain uses the whole fleet.</strong>",
        reverse("project_list"): "<strong>1 project in 1 domain.</strong>",
    }.items():
        assert text in client_of_admin.get(address).content.decode(), address
    for address, query in ((project_page, f"project={project.pk}"), (domain, "domain=academy")):
        link = f'{reverse("session_list")}?{query}&amp;status=RUNNING">1 session</a> running'
        assert link in client_of_admin.get(address).content.decode()
    assert f'href="{project_page}#id_person"' in client_of_admin.get(full_list).content.decode()
    assert 'id="id_person"' in client_of_admin.get(project_page).content.decode()


def test_a_name_is_shown_once(client_of_admin, project, operator):
    operator.first_name, operator.last_name = "Otto", "Normal"
    operator.save()
    page = client_of_admin.get(reverse("project_detail", args=[project.pk])).content.decode()
    assert 'Otto Normal<span class="sub"> · otto</span>' in page
    assert "<span>vera</span>" in page


def test_a_viewer_sees_the_members_and_cannot_remove_them(client, viewer, large_project):
    client.force_login(viewer)
    page = client.get(reverse("member_list", args=[large_project.pk])).content.decode()
    assert "person-001" in page
    assert "Remove…" not in page


def test_an_unknown_name_stays_in_the_form_with_its_error(client_of_admin, project):
    response = client_of_admin.post(reverse("member_add", args=[project.pk]), {"person": "nobbody"})
    page = response.content.decode()
    assert response.status_code == 422
    assert 'value="nobbody"' in page
    assert 'aria-invalid="true"' in page
    assert "There is no “nobbody”." in page
    later = client_of_admin.get(reverse("project_detail", args=[project.pk])).content.decode()
    assert "nobbody" not in later


def test_a_known_name_is_added_and_confirmed(client_of_admin, project, stranger):
    address = reverse("member_add", args=[project.pk])
    page = client_of_admin.post(address, {"person": stranger.username}, follow=True).content.decode()
    assert f"{stranger} added to {project.path}." in page
    assert Membership.objects.filter(project=project, user=stranger).exists()
