"""Inline editing of weights: entered values, their effect, and saving."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from fairshare.arithmetic.policy import Weight
from fairshare.arithmetic.tree import FairShareResult
from fairshare.models.levels import Level
from fairshare.selectors.previews import FairSharePreview, preview_fair_share
from fairshare.selectors.subject_names import names_of
from fairshare.selectors.trees import (
    SubjectKey,
    TreeRules,
    Weights,
    policy_read_with,
    weights_of,
    with_policies,
)
from fairshare.services.policies import checked_weights, set_weights
from lcm.domain.errors import InvalidInput
from lcm.domain.roles import Role
from lcm.templatetags.lcm import percent
from lcm.web.access import role_required
from lcm.web.form_page import FormResult, actor_of, redirect_with_message, render_page, save_form
from lcm.web.forms import ReasonForm
from scheduling.models import Pool

PREFIX = "w:"
SHOWN_CHANGES = 3


@require_POST
@role_required(Role.ADMIN)
def weights_bar(request: HttpRequest) -> HttpResponseBase:
    """The bar below the tree with a summary of the effect, and the new values in the rows of the tree."""
    pool, stored = _pool_and_rules(request)
    context = _preview_context(pool, stored, _changes(request, stored.weights))
    context["new_values"] = _new_values(request, context.get("preview"))
    return render(request, "fairshare/weights_bar.html", context)


@require_POST
@role_required(Role.ADMIN)
def weights_save(request: HttpRequest) -> HttpResponseBase:
    """Show the rank changes and a field for the reason; save once a reason is given."""
    pool, stored = _pool_and_rules(request)
    changes = _changes(request, stored.weights)
    back = f"{reverse('fair_share')}?pool={pool.name}"
    if not changes:
        return redirect_with_message(request, FormResult(_("No weight was changed."), back))
    form = ReasonForm(request.POST if "reason" in request.POST else None)

    def save(data: Mapping[str, Any]) -> FormResult:
        count = set_weights(pool=pool, weights=changes, actor=actor_of(request), reason=data["reason"])
        message = ngettext(
            "{count:,} weight saved. It takes effect with the next calculation.",
            "{count:,} weights saved. They take effect with the next calculation.",
            count,
        )
        return FormResult(message.format(count=count), back)

    if form.is_bound and (done := save_form(form, save)):
        return redirect_with_message(request, done)
    context = {
        **_preview_context(pool, stored, changes),
        "form": form,
        "back": back,
        "typed": [(name, value) for name, value in request.POST.items() if name.startswith(PREFIX)],
        "crumbs": [(_("Fair share"), back), (_("Weights"), "")],
    }
    return render_page(request, "fairshare/weights.html", context, status=422 if form.is_bound else 200)


def _pool_and_rules(request: HttpRequest) -> tuple[Pool, TreeRules]:
    pool = get_object_or_404(with_policies(Pool.objects.all()), name=request.POST.get("pool", ""))
    return pool, TreeRules(policy_read_with(pool), weights_of(pool))


def _preview_context(pool: Pool, stored: TreeRules, changes: dict[SubjectKey, Any]) -> dict[str, Any]:
    context: dict[str, Any] = {
        "pool": pool,
        "count": len(changes),
        "changes_text": _changes_text(stored.weights, changes),
    }
    if changes:
        try:
            checked = checked_weights(changes)
            context["preview"] = preview_fair_share(pool, now=timezone.now(), weights=checked, stored=stored)
        except InvalidInput as error:
            context["problem"] = error.message
    return context


@dataclass(frozen=True)
class NewValues:
    """Share, factor and rank of a row with the entered weights; empty where nothing changes."""

    key: str
    share: str = ""
    factor: str = ""
    rank: str = ""


def _new_values(request: HttpRequest, preview: FairSharePreview | None) -> list[NewValues]:
    """Return the values of each row of the form."""
    names = [name for name in request.POST if _key(name)]
    return [_row_values(name.removeprefix(PREFIX), _key(name), preview) for name in names]


def _row_values(name: str, key: SubjectKey | None, preview: FairSharePreview | None) -> NewValues:
    if preview is None or key is None or key not in preview.after or key not in preview.before:
        return NewValues(name)
    (old, new) = (_shown(results[key]) for results in (preview.before, preview.after))
    return NewValues(
        name, *(after if after != before else "" for before, after in zip(old, new, strict=True))
    )


def _shown(result: FairShareResult) -> tuple[str, str, str]:
    return percent(result.norm_share), f"{result.factor:.3f}", str(result.rank)


def _changes(request: HttpRequest, stored: Weights) -> dict[SubjectKey, Any]:
    """Return weights that differ from the stored ones; an empty field means the policy's default."""
    changes: dict[SubjectKey, Any] = {}
    for name, text in request.POST.items():
        key = _key(name)
        if key is None:
            continue
        value = str(text).strip().replace(",", ".") or None
        old = stored.get(key)
        if value == old or _same(value, old):
            continue
        changes[key] = value
    return changes


def _same(value: str | None, old: Weight) -> bool:
    try:
        return value is not None and old is not None and float(value) == old
    except ValueError:
        return False


def _key(name: str) -> SubjectKey | None:
    parts = name.removeprefix(PREFIX).split(":")
    if not name.startswith(PREFIX) or len(parts) != 3 or parts[0] not in Level.values:
        return None
    try:
        return SubjectKey(parts[0], UUID(parts[1]), UUID(parts[2]))
    except ValueError:
        return None


def _changes_text(stored: Weights, changes: Mapping[SubjectKey, Any]) -> str:
    """Return text such as “Security 1 → 2, ccna default → 3”."""
    names = names_of(list(changes)[:SHOWN_CHANGES])
    parts = [
        f"{names[key].name} {_weight_text(stored.get(key))} → {_weight_text(changes[key])}" for key in names
    ]
    others = len(changes) - len(parts)
    listed = ", ".join(parts)
    return _("%(changes)s and %(count)s more") % {"changes": listed, "count": others} if others else listed


def _weight_text(weight: object) -> str:
    if weight is None:
        return _("default")
    return f"{weight:g}" if isinstance(weight, float) else str(weight)
