"""Bulk actions on definitions, sessions and tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from lcm.domain import lifecycle
from lcm.domain.actors import Actor
from lcm.models import ApiToken, DefinitionStatus, LabletDefinition, LabletSession
from lcm.pages.lists import DEFINITIONS, SESSIONS, TOKENS
from lcm.services.definitions import set_definition_status
from lcm.services.sessions import cancel_sessions
from lcm.services.tokens import revoke_token
from lcm.web.bulk_actions import BulkOperation, BulkResult, BulkTexts, Work, for_each_row, register_bulk
from lcm.web.wording import Plural


def _cancel(
    rows: Sequence[LabletSession], given: Mapping[str, Any], actor: Actor, now: datetime
) -> BulkResult:
    return BulkResult(*cancel_sessions(sessions=rows, actor=actor, now=now, reason=given["reason"]))


def _set_status(status: DefinitionStatus) -> Work:
    def do(definition: LabletDefinition, given: Mapping[str, Any], actor: Actor, now: datetime) -> None:
        set_definition_status(definition=definition, status=status, reason=given["reason"], actor=actor)

    return for_each_row(do)


def _revoke(token: ApiToken, given: Mapping[str, Any], actor: Actor, now: datetime) -> None:
    revoke_token(token=token, reason=given["reason"], actor=actor, now=now)


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


def register_actions() -> None:
    for action in (CANCEL, ACTIVATE, DEPRECATE, REVOKE):
        register_bulk(action)
