"""Users, domains, projects and memberships."""

from __future__ import annotations

import uuid
import zoneinfo
from functools import cache

from django.contrib.auth.models import AbstractUser
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from lcm.domain.roles import Role, role_of
from lcm.models.base import DatedModel, IdModel

slug_name = RegexValidator(
    r"^[a-z0-9]+(-[a-z0-9]+)*\Z",
    _("Use lowercase letters, digits and single hyphens between them, for example “network-academy”."),
)


@cache
def time_zones() -> frozenset[str]:
    """Return the names of all time zones; cached, because reading them opens hundreds of files."""
    return frozenset(zoneinfo.available_timezones())


def known_time_zone(name: str) -> None:
    if name and name not in time_zones():
        raise ValidationError(
            gettext("“%(name)s” is not a time zone. Enter a name such as Europe/Vienna.") % {"name": name}
        )


class Theme(models.TextChoices):
    SYSTEM = "system", _("System")
    LIGHT = "light", _("Light")
    DARK = "dark", _("Dark")


class User(AbstractUser):
    """A person. Roles are groups; see `lcm.domain.roles`."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    time_zone = models.CharField(
        max_length=63,
        blank=True,
        validators=[known_time_zone],
        help_text="Empty: the time zone of this installation.",
    )
    theme = models.CharField(max_length=6, choices=Theme, default=Theme.SYSTEM)
    # Number of links to set the password so far; only the newest one is valid.
    password_links = models.PositiveIntegerField(default=0, editable=False)
    # Columns, density and default view by list; see `lcm.selectors.list_views`.
    list_settings = models.JSONField(default=dict, blank=True, editable=False)
    # Event types by channel; empty: the defaults of `lcm.events.personal`.
    notification_choices = models.JSONField(default=dict, blank=True, editable=False)

    class Meta(AbstractUser.Meta):
        ordering = ["username"]
        constraints = [
            models.CheckConstraint(name="user_theme_known", condition=models.Q(theme__in=Theme.values)),
        ]

    @property
    def role(self) -> Role:
        return role_of(self)

    @property
    def display_name(self) -> str:
        return self.get_full_name() or self.username


class Domain(DatedModel):
    """An organisation or a part of one; contains projects."""

    name = models.CharField(max_length=63, unique=True, validators=[slug_name])
    description = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Project(DatedModel):
    """A project of a domain. Its members request sessions in it."""

    domain = models.ForeignKey(Domain, on_delete=models.PROTECT, related_name="projects")
    name = models.CharField(max_length=63, validators=[slug_name])
    description = models.CharField(max_length=300, blank=True)
    members = models.ManyToManyField(User, through="Membership", related_name="projects")

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["domain", "name"],
                name="project_name_in_domain",
                violation_error_message=_("This domain already has a project with this name."),
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> str:
        return f"{self.domain.name} / {self.name}"


class Membership(IdModel):
    """A person's membership in a project; fair share is computed per membership."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    joined_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["user__username"]
        constraints = [models.UniqueConstraint(fields=["project", "user"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user} in {self.project}"
