"""Policy form of a pool, with a preview of the rank changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from fairshare.arithmetic.policy import DEFAULT_RESOURCE_WEIGHTS, Policy
from fairshare.models import FairShareOrder, Normalisation
from fairshare.pages.texts import policy_sentence
from fairshare.selectors.previews import preview_fair_share
from fairshare.selectors.trees import TreeRules, policy_read_with, weights_of, with_policies
from fairshare.services.policies import changed_policy, save_policy, warnings_for
from lcm.domain.errors import InvalidInput
from lcm.domain.resources import RESOURCE_NAMES, RESOURCES
from lcm.domain.roles import Role
from lcm.models.messages import translated
from lcm.web.access import htmx_of, role_required
from lcm.web.form_page import FormResult, actor_of, redirect_with_message, save_form
from lcm.web.forms import PageForm, add_errors
from scheduling.models import Pool


class PolicyForm(PageForm):
    """Form of a policy; the service validates the values."""

    # A preview is requested before a reason is entered.
    use_required_attribute = False

    half_life_days = forms.FloatField(
        label=_("Half-life, days"), help_text=_("Time after which usage counts half.")
    )
    lookback_days = forms.IntegerField(label=_("Lookback, days"), help_text=_("Older usage does not count."))
    normalisation = forms.ChoiceField(label=_("Normalised"), choices=Normalisation.choices)
    order = forms.ChoiceField(label=_("Order"), choices=FairShareOrder.choices)
    default_weight = forms.FloatField(
        label=_("Default weight"),
        help_text=_("Weight of domains, projects and people without their own weight."),
    )
    dampening_factor = forms.IntegerField(
        label=_("Dampening factor"),
        help_text=_("1 to 65,535. A higher value lowers the factor less for usage above the share."),
    )
    reason = forms.CharField(
        label=_("Reason"), max_length=500, help_text=_("Recorded in the change log under your name.")
    )

    def __init__(self, *args: object, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        reason = self.fields.pop("reason")
        for resource in RESOURCES:
            self.fields[resource.name] = forms.FloatField(
                label=translated(resource.hour_weight_label),
                required=False,
                help_text=gettext("Empty: the default, %(weight)s.")
                % {"weight": f"{DEFAULT_RESOURCE_WEIGHTS[resource.name]:g}"},
                widget=forms.NumberInput(attrs={"class": "input"}),
            )
        self.fields["reason"] = reason

    def groups(self) -> Iterator[tuple[str, list[forms.BoundField]]]:
        """Yield the fields under their headings; the reason is next to the save button instead."""
        own = [name for name in self.fields if name not in (*RESOURCE_NAMES, "reason")]
        yield gettext("Usage and order"), [self[name] for name in own]
        yield gettext("Resource weights"), [self[name] for name in RESOURCE_NAMES]

    @property
    def changes(self) -> dict[str, Any]:
        """Return the changed values of the policy."""
        data = dict(self.cleaned_data)
        data.pop("reason", None)
        weights = {name: data.pop(name) for name in RESOURCE_NAMES}
        return {
            **data,
            "resource_weights": {name: weight for name, weight in weights.items() if weight is not None},
        }


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def policy_edit(request: HttpRequest) -> HttpResponseBase:
    """Show the form; with `preview` respond with the rank changes, otherwise save."""
    pool = get_object_or_404(with_policies(Pool.objects.all()), name=request.GET.get("pool", ""))
    present = policy_read_with(pool)
    form = PolicyForm(request.POST if request.method == "POST" else None, initial=_initial(present))
    back = f"{reverse('fair_share')}?pool={pool.name}"
    context: dict[str, Any] = {
        "pool": pool,
        "form": form,
        "sentence": policy_sentence(present),
        "back": back,
        "warnings": warnings_for(pool),
        "crumbs": [(gettext("Fair share"), back), (gettext("Policy"), "")],
    }
    if form.is_bound and "preview" in request.POST:
        form.fields["reason"].required = False
        context["preview"] = _preview_or_none(pool, present, form)
        if htmx_of(request):
            return render(request, "fairshare/preview.html", context)
    elif form.is_bound:

        def save(data: Mapping[str, Any]) -> FormResult:
            _policy, warnings = save_policy(
                pool=pool, actor=actor_of(request), reason=data["reason"], **form.changes
            )
            for warning in warnings:
                messages.warning(request, warning)
            text = gettext("Policy of %(pool)s saved. It takes effect with the next calculation.")
            return FormResult(text % {"pool": pool}, back)

        if done := save_form(form, save):
            return redirect_with_message(request, done)
        return render(request, "fairshare/policy.html", context, status=422)
    return render(request, "fairshare/policy.html", context)


def _preview_or_none(pool: Pool, present: Policy, form: PolicyForm) -> Any:
    """Return the rank changes; None if the form is invalid, with errors at the fields."""
    if not form.is_valid():
        return None
    try:
        changed = changed_policy(present, form.changes)
        return preview_fair_share(
            pool, now=timezone.now(), policy=changed, stored=TreeRules(present, weights_of(pool))
        )
    except InvalidInput as error:
        add_errors(form, error)
        return None


def _initial(policy: Policy) -> dict[str, Any]:
    """Return initial values as users write them: “7”, not “7.0”."""
    values = {**vars(policy), **policy.resource_weights}
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in values.items()
    }
