"""Pages of webhooks. The secret is shown once, after creation and rotation."""

from __future__ import annotations

from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from lcm.domain.roles import Role
from lcm.events.catalog import event_types
from lcm.models import Webhook, WebhookFormat
from lcm.pages.notification_lists import WEBHOOKS
from lcm.selectors import deliveries
from lcm.selectors.organisation import changes_of
from lcm.services import webhooks as services
from lcm.services.deliveries import send_test
from lcm.web.access import role_required
from lcm.web.form_page import FormPage, form_view, service_call
from lcm.web.forms import PageForm
from lcm.web.list_page import list_view

DELIVERIES_SHOWN = 10


class WebhookForm(PageForm):
    name = forms.CharField(label=_("Name"), max_length=63)
    url = forms.CharField(
        label=_("URL"),
        max_length=500,
        help_text=_("LCM sends to public addresses, and to the networks of WEBHOOK_ALLOWED_NETWORKS."),
    )
    format = forms.ChoiceField(label=_("Format"), choices=WebhookFormat.choices)


class WebhookChangeForm(WebhookForm):
    enabled = forms.BooleanField(
        label=_("Enabled"),
        required=False,
        help_text=_("When you disable a webhook, its pending deliveries are dropped."),
    )


class SendTestForm(PageForm):
    event_type = forms.ChoiceField(
        label=_("Event type"),
        choices=lambda: [(name, f"{name}: {kind.title}") for name, kind in event_types().items()],
    )


webhook_list = list_view(WEBHOOKS, Role.ADMIN)


@require_GET
@role_required(Role.ADMIN)
def webhook_detail(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    webhook = get_object_or_404(deliveries.webhooks(), pk=pk)
    context = {
        "webhook": webhook,
        "now": timezone.now(),
        "rules": deliveries.rules().filter(webhook=webhook),
        "deliveries": deliveries.deliveries().filter(webhook=webhook)[:DELIVERIES_SHOWN],
        "changes": changes_of(webhook),
        "crumbs": [(gettext("Webhooks"), reverse("webhook_list")), (webhook.name, "")],
    }
    return render(request, "notifications/webhook.html", context)


@form_view(Role.ADMIN)
def webhook_create(request: HttpRequest) -> FormPage:
    return FormPage(
        title=gettext("New webhook"),
        text=gettext(
            "**The secret is shown once, on the next page.** The receiver verifies requests with it."
        ),
        form=WebhookForm,
        submit=gettext("Create webhook"),
        save=service_call(request, services.create_webhook),
        show=lambda created: _show_once(request, *created),
        crumbs=[(gettext("Webhooks"), reverse("webhook_list")), (gettext("New webhook"), "")],
    )


@form_view(Role.ADMIN)
def webhook_edit(request: HttpRequest, pk: UUID) -> FormPage:
    webhook = get_object_or_404(Webhook, pk=pk)
    return FormPage(
        title=gettext("Edit %(webhook)s") % {"webhook": webhook},
        form=WebhookChangeForm,
        submit=gettext("Save"),
        save=service_call(request, services.update_webhook, webhook=webhook),
        done=gettext("Webhook %(webhook)s saved.") % {"webhook": webhook},
        initial={name: getattr(webhook, name) for name in WebhookChangeForm.base_fields},
        crumbs=webhook_crumbs(webhook, gettext("Edit")),
    )


@form_view(Role.ADMIN)
def webhook_rotate(request: HttpRequest, pk: UUID) -> FormPage:
    webhook = get_object_or_404(Webhook, pk=pk)
    return FormPage(
        title=gettext("Rotate the secret of %(webhook)s?") % {"webhook": webhook},
        text=gettext(
            "**For 24 hours each request has the signatures of both secrets.** "
            "The new secret is shown once, on the next page."
        ),
        submit=gettext("Rotate secret"),
        save=service_call(request, services.rotate_webhook_secret, webhook=webhook),
        show=lambda created: _show_once(request, *created),
        crumbs=webhook_crumbs(webhook, gettext("Rotate secret")),
    )


@form_view(Role.ADMIN)
def webhook_delete(request: HttpRequest, pk: UUID) -> FormPage:
    webhook = get_object_or_404(Webhook, pk=pk)
    return FormPage(
        title=gettext("Delete %(webhook)s?") % {"webhook": webhook},
        text=gettext("Its deliveries are deleted too. A webhook that a rule uses cannot be deleted."),
        submit=gettext("Delete webhook"),
        danger=True,
        save=service_call(request, services.delete_webhook, webhook=webhook),
        done=gettext("Webhook %(webhook)s deleted.") % {"webhook": webhook},
        next=reverse("webhook_list"),
        crumbs=webhook_crumbs(webhook, gettext("Delete")),
    )


@form_view(Role.ADMIN)
def webhook_test(request: HttpRequest, pk: UUID) -> FormPage:
    webhook = get_object_or_404(Webhook, pk=pk)
    return FormPage(
        title=gettext("Send test to %(webhook)s") % {"webhook": webhook},
        text=gettext("LCM sends the example of the event type once, without retries."),
        form=SendTestForm,
        submit=gettext("Send test"),
        save=service_call(request, send_test, webhook=webhook),
        done=gettext("Test enqueued."),
        next=lambda delivery: reverse("delivery_detail", args=[delivery.pk]),
        initial={"event_type": request.GET.get("event_type", "")},
        crumbs=webhook_crumbs(webhook, gettext("Send test")),
    )


def webhook_crumbs(webhook: Webhook, last: str) -> list[tuple[str, str]]:
    page = reverse("webhook_detail", args=[webhook.pk])
    return [(gettext("Webhooks"), reverse("webhook_list")), (webhook.name, page), (last, "")]


def _show_once(request: HttpRequest, webhook: Webhook, secret: str) -> HttpResponseBase:
    context = {
        "webhook": webhook,
        "secret": secret,
        "crumbs": webhook_crumbs(webhook, gettext("Secret")),
    }
    response = render(request, "notifications/secret.html", context)
    response["Cache-Control"] = "no-store"
    return response
