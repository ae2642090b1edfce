"""Bulk actions on definitions, sessions and tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext, ngettext_lazy

from lcm.domain import lifecycle
from lcm.domain.actors import Actor
from lcm.models import ApiToken, DefinitionStatus, LabletDefinition, LabletSession, Priority
from lcm.pages.lists import DEFINITIONS, SESSIONS, TOKENS
from lcm.services.definitions import set_definition_status
from lcm.services.session_priority import change_priority
from lcm.services.sessions import cancel_sessions, extend_session
from lcm.services.tokens import revoke_token
from lcm.web.bulk_actions import BulkOperation, BulkResult, BulkTexts, Work, for_each_row
from lcm.web.forms import ReasonForm
from lcm.web.wording import Plural

# Hours that the form of the bulk extension offers.
EXTENSIONS = (1, 2, 4, 8)


def _cancel(
    rows: Sequence[LabletSession], given: Mapping[str, Any], actor: Actor, now: datetime
) -> BulkResult:
    return BulkResult(*cancel_sessions(sessions=rows, actor=actor, now=now, reason=given["reason"]))


def _extend(session: LabletSession, given: Mapping[str, Any], actor: Actor, now: datetime) -> None:
    """Extend by hours from the current end, or from now if the timeslot is over."""
    ends_at = max(session.ends_at, now) + timedelta(hours=int(given["hours"]))
    extend_session(session=session, ends_at=ends_at, actor=actor, now=now, reason=given["reason"])


def _set_priority(session: LabletSession, given: Mapping[str, Any], actor: Actor, now: datetime) -> None:
    priority = int(given["priority"])
    change_priority(session=session, priority=priority, reason=given["reason"], actor=actor, now=now)


class BulkExtendForm(ReasonForm):
    hours = forms.ChoiceField(
        label=_("Extend by"),
        choices=lambda: [
            (str(count), ngettext("%(count)s hour", "%(count)s hours", count) % {"count": count})
            for count in EXTENSIONS
        ],
    )
    field_order = ("hours", "reason")


class BulkPriorityForm(ReasonForm):
    priority = forms.ChoiceField(label=_("Priority"), choices=Priority.choices, initial=Priority.HIGH)
    field_order = ("priority", "reason")


def _set_status(status: DefinitionStatus) -> Work:
    def do(definition: LabletDefinition, given: Mapping[str, Any], actor: Actor, now: datetime) -> None:
        set_definition_status(definition=definition, status=status, reason=given["reason"], actor=actor)

    return for_each_row(do)


def _revoke(token: ApiToken, given: Mapping[str, Any], actor: Actor, now: datetime) -> None:
    revoke_token(token=token, reason=given["reason"], actor=actor, now=now)


EXTEND = BulkOperation(
    name="extend-sessions",
    page=SESSIONS,
    list_url="session_list",
    texts=BulkTexts(
        button=Plural(ngettext_lazy("Extend %(count)s session", "Extend %(count)s sessions")),
        question=Plural(ngettext_lazy("Extend %(count)s session?", "Extend %(count)s sessions?")),
        result=Plural(ngettext_lazy("%(count)s session extended.", "%(count)s sessions extended.")),
        effect=_(
            "The timeslots end later. Sessions that would exceed the longest duration of their definition "
            "are rejected."
        ),
        none_eligible=Plural(
            ngettext_lazy("This session cannot be extended", "None of the %(count)s sessions can be extended")
        ),
        some_eligible=_("%(count)s of %(selected)s sessions can be extended."),
        ineligible=_("Sessions that have ended or are stopping stay unchanged."),
    ),
    eligible_rows=lambda rows: rows.filter(status__in=lifecycle.EXTENDABLE),
    run=for_each_row(_extend),
    form=BulkExtendForm,
    is_repeatable=False,
)
PRIORITY = BulkOperation(
    name="prioritize-sessions",
    page=SESSIONS,
    list_url="session_list",
    texts=BulkTexts(
        button=Plural(
            ngettext_lazy("Change priority of %(count)s session", "Change priority of %(count)s sessions")
        ),
        question=Plural(
            ngettext_lazy(
                "Change the priority of %(count)s session?", "Change the priority of %(count)s sessions?"
            )
        ),
        result=Plural(
            ngettext_lazy("Priority of %(count)s session changed.", "Priority of %(count)s sessions changed.")
        ),
        effect=_("Their positions in the queue change. Fair share still applies within a priority."),
        none_eligible=Plural(
            ngettext_lazy("This session is not waiting", "None of the %(count)s sessions are waiting")
        ),
        some_eligible=_("%(count)s of %(selected)s sessions are waiting."),
        ineligible=_("Only sessions without a slot can get another priority."),
    ),
    eligible_rows=lambda rows: rows.filter(status=lifecycle.SessionStatus.PENDING),
    filter_by_form=lambda rows, given: rows.exclude(priority=int(given["priority"])),
    run=for_each_row(_set_priority),
    form=BulkPriorityForm,
)
CANCEL = BulkOperation(
    name="cancel-sessions",
    page=SESSIONS,
    list_url="session_list",
    texts=BulkTexts(
        button=Plural(ngettext_lazy("Cancel %(count)s session", "Cancel %(count)s sessions")),
        question=Plural(ngettext_lazy("Cancel %(count)s session?", "Cancel %(count)s sessions?")),
        result=Plural(
            ngettext_lazy(
                "%(count)s session cancelled or being stopped.",
                "%(count)s sessions cancelled or being stopped.",
            )
        ),
        effect=_("Waiting sessions leave the queue. Running sessions stop and lose unsaved work."),
        none_eligible=Plural(
            ngettext_lazy(
                "This session cannot be cancelled", "None of the %(count)s sessions can be cancelled"
            )
        ),
        some_eligible=_("%(count)s of %(selected)s sessions can be cancelled."),
        ineligible=_("Sessions that have ended or are stopping stay unchanged."),
        dismiss=_("Keep sessions"),
    ),
    eligible_rows=lambda rows: rows.filter(status__in=list(lifecycle.CANCEL_TARGETS)),
    run=_cancel,
    danger=True,
)
ACTIVATE = BulkOperation(
    name="activate-definitions",
    page=DEFINITIONS,
    list_url="definition_list",
    texts=BulkTexts(
        button=Plural(ngettext_lazy("Activate %(count)s definition", "Activate %(count)s definitions")),
        question=Plural(ngettext_lazy("Activate %(count)s definition?", "Activate %(count)s definitions?")),
        result=Plural(ngettext_lazy("%(count)s definition activated.", "%(count)s definitions activated.")),
        effect=_("People can request sessions of these definitions."),
        none_eligible=Plural(
            ngettext_lazy(
                "This definition cannot be activated", "None of the %(count)s definitions can be activated"
            )
        ),
        some_eligible=_("%(count)s of %(selected)s definitions can be activated."),
        ineligible=_("Definitions that are already active stay unchanged."),
    ),
    eligible_rows=lambda rows: rows.exclude(status=DefinitionStatus.ACTIVE),
    run=_set_status(DefinitionStatus.ACTIVE),
)
DEPRECATE = BulkOperation(
    name="deprecate-definitions",
    page=DEFINITIONS,
    list_url="definition_list",
    texts=BulkTexts(
        button=Plural(ngettext_lazy("Deprecate %(count)s definition", "Deprecate %(count)s definitions")),
        question=Plural(ngettext_lazy("Deprecate %(count)s definition?", "Deprecate %(count)s definitions?")),
        result=Plural(ngettext_lazy("%(count)s definition deprecated.", "%(count)s definitions deprecated.")),
        effect=_(
            "People can no longer request sessions of these definitions. Existing sessions are not affected."
        ),
        none_eligible=Plural(
            ngettext_lazy(
                "This definition cannot be deprecated", "None of the %(count)s definitions can be deprecated"
            )
        ),
        some_eligible=_("%(count)s of %(selected)s definitions can be deprecated."),
        ineligible=_("Definitions that are already deprecated stay unchanged."),
    ),
    eligible_rows=lambda rows: rows.exclude(status=DefinitionStatus.DEPRECATED),
    run=_set_status(DefinitionStatus.DEPRECATED),
    danger=True,
)
REVOKE = BulkOperation(
    name="revoke-tokens",
    page=TOKENS,
    list_url="token_list",
    texts=BulkTexts(
        button=Plural(ngettext_lazy("Revoke %(count)s token", "Revoke %(count)s tokens")),
        question=Plural(ngettext_lazy("Revoke %(count)s token?", "Revoke %(count)s tokens?")),
        result=Plural(ngettext_lazy("%(count)s token revoked.", "%(count)s tokens revoked.")),
        effect=_("Requests with these tokens are rejected from now on. This cannot be undone."),
        none_eligible=Plural(
            ngettext_lazy("This token cannot be revoked", "None of the %(count)s tokens can be revoked")
        ),
        some_eligible=_("%(count)s of %(selected)s tokens can be revoked."),
        ineligible=_("Tokens that are already revoked stay unchanged."),
    ),
    eligible_rows=lambda rows: rows.filter(revoked_at=None),
    run=for_each_row(_revoke),
    danger=True,
)
