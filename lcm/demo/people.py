"""Users of the demo: one account per role, and owners of sessions."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import Group

from lcm.demo.names import ORGANISATION, students_of
from lcm.domain.actors import SYSTEM
from lcm.models import Domain, Membership, Project, User
from lcm.services import organisation

# Name, password, role. Written only into an empty database when DEMO is set.
DEMO_LOGINS: list[tuple[str, str, str]] = [
    ("admin", "demo-admin", "Admin"),
    ("operator", "demo-operator", "Operator"),
    ("viewer", "demo-viewer", "Viewer"),
]


def make_people(*, at: datetime) -> None:
    for name, password, role in DEMO_LOGINS:
        person = User.objects.create_user(name, password=password, is_staff=role == "Admin", date_joined=at)
        person.groups.add(Group.objects.get(name=role))


def make_organisation(*, at: datetime) -> list[Project]:
    """Create domains and projects with a few students each."""
    staff = User.objects.get(username=DEMO_LOGINS[0][0])
    projects = []
    for domain_name, project_names in ORGANISATION.items():
        domain: Domain = organisation.create_domain(name=domain_name, actor=SYSTEM, now=at)
        for name, description in project_names.items():
            project = organisation.create_project(
                domain=domain, name=name, description=description, actor=SYSTEM, now=at
            )
            organisation.add_member(project=project, user=staff, actor=SYSTEM, now=at)
            for username in students_of(name):
                student = User.objects.create(username=username, date_joined=at)
                student.set_unusable_password()
                student.save(update_fields=["password"])
                organisation.add_member(project=project, user=student, actor=SYSTEM, now=at)
            projects.append(project)
    Membership.objects.update(joined_at=at)
    return projects
