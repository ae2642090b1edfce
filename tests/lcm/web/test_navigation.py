"""Entries of the navigation bar and their keyboard shortcuts."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.urls import reverse

from lcm.web.navigation import navigation_groups


def test_each_page_has_its_own_letter_as_a_shortcut():
    letters = [entry.shortcut for group in navigation_groups() for entry in group.entries]
    assert all(len(letter) == 1 and letter.isalpha() and letter.islower() for letter in letters)
    assert len(set(letters)) == len(letters)


@pytest.mark.parametrize(("role", "sees_people"), [("viewer", False), ("admin", True)])
def test_the_shortcuts_of_pages_are_those_that_the_person_may_open(role, sees_people, client, request):
    client.force_login(request.getfixturevalue(role))
    for headers in ({}, {"HX-Request": "true"}):
        page = client.get(reverse("shortcuts"), headers=headers).content.decode()
        assert f'<kbd>s</kbd></td><td><a href="{reverse("session_list")}">' in page
        table = page[page.index("<table") : page.index("</table>")]
        assert (reverse("person_list") in table) is sees_people
        assert ("<html" in page) is (not headers)


def test_the_guide_lists_the_shortcuts_of_all_pages():
    guide = (settings.BASE_DIR / "docs" / "guide.md").read_text()
    for entry in (entry for group in navigation_groups() for entry in group.entries):
        assert f"| `g` `{entry.shortcut}` | {str(entry.label).lower()} |" in guide


def test_only_pages_of_one_object_are_kept_as_recent_objects(client, viewer, session):
    client.force_login(viewer)
    shown = client.get(reverse("session_detail", args=[session.pk])).content.decode()
    assert 'data-object="Session"' in shown
    assert "data-object" not in client.get(reverse("session_list")).content.decode()
