"""Steps of a new installation: domain, project, controller token, definition and session."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from lcm.models import (
    ApiToken,
    DefinitionStatus,
    Domain,
    LabletDefinition,
    LabletSession,
    Membership,
    TokenKind,
)
from lcm.web.first_steps import FirstStep

FIRST_STEPS = (
    FirstStep(
        10,
        _("Create a domain"),
        _("An organisation or a part of one."),
        lambda: Domain.objects.exists(),
        lambda: reverse("domain_create"),
        "first-worker.html#4-project-and-session",
    ),
    FirstStep(
        20,
        _("Create a project and add a member"),
        _("Sessions belong to a member of a project."),
        lambda: Membership.objects.exists(),
        lambda: reverse("project_create"),
        "first-worker.html#4-project-and-session",
    ),
    FirstStep(
        50,
        _("Create a token for the controller"),
        _("The controller runs labs on the workers of a pool."),
        lambda: ApiToken.objects.filter(kind=TokenKind.CONTROLLER).exists(),
        lambda: f"{reverse('token_create')}?kind={TokenKind.CONTROLLER}",
        "first-worker.html#3-token-and-controller",
    ),
    FirstStep(
        60,
        _("Import a definition"),
        _("A CML topology with its requirements. Only active definitions can be requested."),
        lambda: LabletDefinition.objects.filter(status=DefinitionStatus.ACTIVE).exists(),
        lambda: reverse("definition_import"),
        "first-worker.html#4-project-and-session",
    ),
    FirstStep(
        70,
        _("Request a session"),
        _("LCM starts the lab when a slot is assigned."),
        lambda: LabletSession.objects.exists(),
        lambda: reverse("session_create"),
        "first-worker.html#4-project-and-session",
    ),
)
