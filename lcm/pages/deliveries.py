"""The delivery log: list, detail with attempts, and retries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from lcm.domain.actors import Actor
from lcm.domain.roles import Role
from lcm.models import Delivery
from lcm.pages.notification_lists import DELIVERIES
from lcm.selectors import deliveries
from lcm.services.deliveries import can_retry, retry_delivery
from lcm.web.access import role_required
from lcm.web.bulk_actions import BulkOperation, BulkTexts, bulk_view, for_each_row
from lcm.web.form_page import FormPage, form_view, render_page, service_call
from lcm.web.list_page import list_view
from lcm.web.wording import Plural

delivery_list = list_view(DELIVERIES, Role.ADMIN)


@require_GET
@role_required(Role.ADMIN)
def delivery_detail(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Return the page, or for htmx its changing part while the delivery is pending."""
    delivery = get_object_or_404(deliveries.deliveries(), pk=pk)
    context = {
        "delivery": delivery,
        "attempts": delivery.attempts.all(),
        "payload_title": gettext("Request body") if delivery.webhook_id else gettext("Event"),
        "payload": json.dumps(json.loads(delivery.payload), indent=2, ensure_ascii=False),
        "crumbs": [(gettext("Delivery log"), reverse("delivery_list")), (delivery.short_id, "")],
    }
    return render_page(request, "notifications/delivery.html", context, part="state")


@form_view(Role.ADMIN)
def delivery_retry(request: HttpRequest, pk: UUID) -> FormPage:
    delivery = get_object_or_404(deliveries.deliveries(), pk=pk)
    page = reverse("delivery_detail", args=[pk])
    return FormPage(
        title=gettext("Retry delivery %(delivery)s?") % {"delivery": delivery.short_id},
        text=gettext("LCM sends the same request again, with the same id.")
        if delivery.webhook_id
        else gettext("LCM sends the event by e-mail again."),
        submit=gettext("Retry delivery"),
        save=service_call(request, retry_delivery, delivery=delivery),
        done=gettext("Delivery enqueued."),
        crumbs=[
            (gettext("Delivery log"), reverse("delivery_list")),
            (delivery.short_id, page),
            (gettext("Retry"), ""),
        ],
    )


def _retry(delivery: Delivery, given: Mapping[str, Any], actor: Actor, now: datetime) -> None:
    retry_delivery(delivery=delivery, reason=given["reason"], actor=actor, now=now)


RETRY = BulkOperation(
    name="retry-deliveries",
    page=DELIVERIES,
    list_url="delivery_list",
    texts=BulkTexts(
        button=Plural(ngettext_lazy("Retry %(count)s delivery", "Retry %(count)s deliveries")),
        question=Plural(ngettext_lazy("Retry %(count)s delivery?", "Retry %(count)s deliveries?")),
        result=Plural(ngettext_lazy("%(count)s delivery enqueued.", "%(count)s deliveries enqueued.")),
        effect=_("LCM sends the same events again, to webhooks with the same ids."),
        ineligible=_(
            "Pending deliveries, entries of inboxes and deliveries of disabled webhooks stay unchanged."
        ),
    ),
    eligible_rows=lambda rows: rows.filter(can_retry()),
    run=for_each_row(_retry),
)
delivery_bulk_retry = bulk_view(RETRY, Role.ADMIN)
