"""List of observed sessions, with bulk actions to exclude and include them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.urls import reverse_lazy
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from lcm.domain.actors import Actor
from lcm.domain.roles import Role
from lcm.web.bulk_actions import BulkOperation, BulkTexts, bulk_view, for_each_row
from lcm.web.list_page import list_view
from lcm.web.wording import Plural
from observations.models import SessionObservation
from observations.pages.lists import EVIDENCE
from observations.services.session_exclusion import exclude_session, include_session


def _exclude(row: SessionObservation, given: Mapping[str, Any], actor: Actor, now: datetime) -> None:
    exclude_session(session=row.session, reason=given["reason"], actor=actor, now=now)


def _include(row: SessionObservation, given: Mapping[str, Any], actor: Actor, now: datetime) -> None:
    include_session(session=row.session, reason=given["reason"], actor=actor, now=now)


# Each changes the whole aggregate of its definition.
AT_ONCE = 25

EXCLUDE = BulkOperation(
    name="exclude-evidence",
    page=EVIDENCE,
    list_url="evidence_list",
    texts=BulkTexts(
        button=Plural(
            ngettext_lazy("Exclude %(count)s observed session", "Exclude %(count)s observed sessions")
        ),
        question=Plural(
            ngettext_lazy("Exclude %(count)s observed session?", "Exclude %(count)s observed sessions?")
        ),
        result=Plural(
            ngettext_lazy("%(count)s observed session excluded.", "%(count)s observed sessions excluded.")
        ),
        effect=_(
            "The usage of these sessions no longer counts for their definitions. "
            "You can include the sessions again."
        ),
        none_eligible=Plural(
            ngettext_lazy(
                "This observed session cannot be excluded",
                "None of the %(count)s observed sessions can be excluded",
            )
        ),
        some_eligible=_("%(count)s of %(selected)s observed sessions can be excluded."),
        ineligible=_("Sessions that are already excluded stay excluded."),
    ),
    eligible_rows=lambda rows: rows.filter(excluded_reason=""),
    run=for_each_row(_exclude),
    at_once=AT_ONCE,
    created_field="session__created_at",
)
INCLUDE = BulkOperation(
    name="include-evidence",
    page=EVIDENCE,
    list_url="evidence_list",
    texts=BulkTexts(
        button=Plural(
            ngettext_lazy("Include %(count)s observed session", "Include %(count)s observed sessions")
        ),
        question=Plural(
            ngettext_lazy("Include %(count)s observed session?", "Include %(count)s observed sessions?")
        ),
        result=Plural(
            ngettext_lazy("%(count)s observed session included.", "%(count)s observed sessions included.")
        ),
        effect=_(
            "The usage of these sessions counts for their definitions again if the sessions are eligible."
        ),
        none_eligible=Plural(
            ngettext_lazy(
                "This observed session cannot be included",
                "None of the %(count)s observed sessions can be included",
            )
        ),
        some_eligible=_("%(count)s of %(selected)s observed sessions can be included."),
        ineligible=_("Sessions that are not excluded stay as they are."),
    ),
    eligible_rows=lambda rows: rows.exclude(excluded_reason=""),
    run=for_each_row(_include),
    at_once=AT_ONCE,
    created_field="session__created_at",
)

evidence_list = list_view(
    EVIDENCE, crumbs=[(_("Definitions"), reverse_lazy("definition_list")), (EVIDENCE.title, "")]
)
evidence_bulk_exclude = bulk_view(EXCLUDE, Role.ADMIN)
evidence_bulk_include = bulk_view(INCLUDE, Role.ADMIN)
