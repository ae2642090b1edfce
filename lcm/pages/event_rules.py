"""Pages of rules: the form with a preview of the events that a rule would have matched."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from lcm.domain.roles import Role
from lcm.events.catalog import Severity, event_types, matching_types
from lcm.models import Channel, EventRule, Webhook
from lcm.models.events import DIGEST_INTERVAL
from lcm.pages.notification_lists import RULES
from lcm.pages.webhooks import SendTestForm
from lcm.selectors import deliveries
from lcm.services import event_rules as services
from lcm.services.deliveries import send_rule_test
from lcm.web.access import role_required
from lcm.web.durations import DurationTextField
from lcm.web.form_page import FormPage, form_view, render_page, service_call
from lcm.web.forms import PageForm
from lcm.web.list_page import list_view

SEVERITY_LABELS = {
    Severity.INFO: _("Info"),
    Severity.WARNING: _("Warning"),
    Severity.CRITICAL: _("Critical"),
}


class LinesField(forms.CharField):
    """A list of texts, one per line."""

    widget = forms.Textarea(attrs={"rows": 2, "class": "input half", "spellcheck": "false"})

    def prepare_value(self, value: object) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: object) -> Any:
        return [line.strip() for line in super().clean(value).splitlines() if line.strip()]


class ConditionsForm(PageForm):
    event_types = LinesField(
        label=_("Event types"),
        help_text=_("Names or patterns such as session.*, one per line."),
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
    )
    severities = forms.MultipleChoiceField(
        label=_("Severities"),
        choices=list(SEVERITY_LABELS.items()),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    pools = LinesField(label=_("Pools"), required=False, help_text=_("Names or patterns, one per line."))
    definitions = LinesField(
        label=_("Definitions"), required=False, help_text=_("For example ospf v1.0 or ospf v*, one per line.")
    )
    domains = LinesField(label=_("Domains"), required=False, help_text=_("Names or patterns, one per line."))
    projects = LinesField(
        label=_("Projects"), required=False, help_text=_("For example academy / ccna, one per line.")
    )


class RuleForm(ConditionsForm):
    name = forms.CharField(label=_("Name"), max_length=63)
    channel = forms.ChoiceField(label=_("Channel"), choices=Channel.choices)
    webhook = forms.ModelChoiceField(Webhook.objects.all(), label=_("Webhook"), required=False)
    recipients = LinesField(
        label=_("Recipients"),
        required=False,
        help_text=_("User names and roles such as role:Admin, one per line; for e-mail also addresses."),
    )
    digest_interval = DurationTextField(
        label=_("Digest interval"),
        required=False,
        help_text=_("Events of the rule within this time become one e-mail. 0 s: one e-mail for each."),
    )
    enabled = forms.BooleanField(label=_("Enabled"), required=False)
    optional_words = {
        "webhook": _("for the channel Webhook"),
        "recipients": _("for the channels E-mail and Inbox"),
    }
    field_order = ["name", "channel", "webhook", "recipients", "digest_interval", "event_types"]

    def clean_digest_interval(self) -> timedelta:
        found: timedelta | None = self.cleaned_data["digest_interval"]
        return DIGEST_INTERVAL if found is None else found


rule_list = list_view(RULES, Role.ADMIN)


@form_view(Role.ADMIN)
def rule_create(request: HttpRequest) -> FormPage:
    return FormPage(
        title=gettext("New rule"),
        text=_text(),
        form=RuleForm,
        submit=gettext("Create rule"),
        save=service_call(request, services.create_rule),
        done=lambda rule: gettext("Rule %(rule)s created.") % {"rule": rule},
        initial={
            "enabled": True,
            "channel": Channel.WEBHOOK,
            "digest_interval": DIGEST_INTERVAL,
            "all_types": list(event_types().values()),
        },
        crumbs=[(gettext("Rules"), reverse("rule_list")), (gettext("New rule"), "")],
        template="notifications/rule_form.html",
    )


@form_view(Role.ADMIN)
def rule_edit(request: HttpRequest, pk: UUID) -> FormPage:
    rule = get_object_or_404(deliveries.rules(), pk=pk)
    values = {name: getattr(rule, name) for name in RuleForm.base_fields}
    return FormPage(
        title=gettext("Edit %(rule)s") % {"rule": rule},
        text=_text(),
        form=RuleForm,
        submit=gettext("Save"),
        save=service_call(request, services.update_rule, rule=rule),
        done=gettext("Rule %(rule)s saved.") % {"rule": rule},
        initial={**values, "webhook": rule.webhook_id, "all_types": list(event_types().values())},
        crumbs=[(gettext("Rules"), reverse("rule_list")), (rule.name, "")],
        links=[(gettext("Send test"), reverse("rule_test", args=[rule.pk]))],
        template="notifications/rule_form.html",
    )


@form_view(Role.ADMIN)
def rule_test(request: HttpRequest, pk: UUID) -> FormPage:
    rule = get_object_or_404(deliveries.rules(), pk=pk)
    return FormPage(
        title=gettext("Send test of %(rule)s") % {"rule": rule},
        text=gettext(
            "LCM sends the example of the event type to everybody whom the rule notifies, without retries."
        ),
        form=SendTestForm,
        submit=gettext("Send test"),
        save=service_call(request, send_rule_test, rule=rule),
        done=gettext("Test enqueued."),
        next=f"{reverse('delivery_list')}?rule={rule.pk}",
        initial={"event_type": next(iter(matching_types(rule.event_types)), "")},
        crumbs=[
            (gettext("Rules"), reverse("rule_list")),
            (rule.name, reverse("rule_edit", args=[rule.pk])),
            (gettext("Send test"), ""),
        ],
    )


@form_view(Role.ADMIN)
def rule_delete(request: HttpRequest, pk: UUID) -> FormPage:
    rule = get_object_or_404(EventRule, pk=pk)
    return FormPage(
        title=gettext("Delete %(rule)s?") % {"rule": rule},
        text=gettext("LCM sends no further events for this rule. Its deliveries stay in the delivery log."),
        submit=gettext("Delete rule"),
        danger=True,
        save=service_call(request, services.delete_rule, rule=rule),
        done=gettext("Rule %(rule)s deleted.") % {"rule": rule},
        crumbs=[(gettext("Rules"), reverse("rule_list")), (gettext("Delete %(rule)s") % {"rule": rule}, "")],
    )


@require_GET
@role_required(Role.ADMIN)
def rule_preview(request: HttpRequest) -> HttpResponseBase:
    """Return the events of the last 7 days that the rule in the form would have matched."""
    form = ConditionsForm(request.GET)
    preview = None
    if form.is_valid():
        preview = deliveries.preview_rule(EventRule(**form.cleaned_data), now=timezone.now())
    context = {
        "preview": preview,
        "crumbs": [(gettext("Rules"), reverse("rule_list")), (gettext("Preview"), "")],
    }
    return render_page(request, "notifications/preview.html", context, part="preview")


def _text() -> str:
    return gettext(
        "**LCM sends the events that match the types and all conditions.** "
        "A condition without entries matches all events."
    )
