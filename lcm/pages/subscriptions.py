"""Own notifications: channels by event type, watched objects, and the link that stops e-mail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST

from lcm.domain.errors import InvalidInput
from lcm.domain.roles import Role
from lcm.events.mail_client import mail_is_configured
from lcm.events.mail_message import user_of_token
from lcm.events.personal import WATCHED, chosen, offered_choices
from lcm.models import Channel, User
from lcm.selectors.inbox import watches_of
from lcm.services.subscriptions import choose_notifications, stop_mail, stop_watching, watch_object
from lcm.web.access import is_local_address, public, role_required
from lcm.web.delivery_filters import event_title
from lcm.web.form_page import FormPage, actor_of, form_view
from lcm.web.forms import PageForm
from lcm.web.object_links import is_watchable, link_objects, model_of, page_of


def _choices() -> list[tuple[str, Any]]:
    return [
        (name, _("Events of objects that I watch") if name == WATCHED else event_title(name))
        for name in offered_choices()
    ]


class NotificationForm(PageForm):
    inbox = forms.MultipleChoiceField(label=_("Inbox"), choices=_choices, required=False)
    email = forms.MultipleChoiceField(label=_("E-mail"), choices=_choices, required=False)

    def rows(self) -> list[tuple[str, Any, bool, bool]]:
        """Return each event with its label and whether it is chosen for the inbox and e-mail."""
        inbox, email = (self[name].value() or () for name in ("inbox", "email"))
        return [(name, label, name in inbox, name in email) for name, label in _choices()]


@form_view(Role.VIEWER)
def notification_settings(request: HttpRequest) -> FormPage:
    assert isinstance(request.user, User)
    user: User = User.objects.get(pk=request.user.pk)
    watches = list(watches_of(user))
    link_objects(watches)

    def save(data: Mapping[str, Any]) -> User:
        choices = {Channel.INBOX: data["inbox"], Channel.EMAIL: data["email"]}
        return choose_notifications(user=user, choices=choices, actor=actor_of(request), now=timezone.now())

    return FormPage(
        title=gettext("Notifications"),
        text=_mail_text(user),
        form=NotificationForm,
        submit=gettext("Save notifications"),
        save=save,
        done=gettext("Notifications saved."),
        next=reverse("notification_settings"),
        initial={
            "inbox": list(chosen(user, Channel.INBOX)),
            "email": list(chosen(user, Channel.EMAIL)),
            "watches": watches,
        },
        crumbs=[(gettext("Profile"), reverse("profile")), (gettext("Notifications"), "")],
        links=[(gettext("Inbox"), reverse("inbox_list"))],
        template="inbox/settings.html",
    )


def _mail_text(user: User) -> str:
    if not mail_is_configured():
        return gettext("These are events of your own sessions and webhooks. **LCM sends no e-mail.**")
    if not user.email:
        return gettext(
            "These are events of your own sessions and webhooks. **Your account has no e-mail address.** "
            "Enter one in your profile to get e-mail."
        )
    return gettext("These are events of your own sessions and webhooks. E-mail goes to **%(address)s**.") % {
        "address": user.email
    }


@require_POST
@role_required(Role.VIEWER)
def watch(request: HttpRequest, object_type: str, object_id: UUID) -> HttpResponseBase:
    """Watch an object, or stop watching it, and return to the page with the button."""
    assert isinstance(request.user, User)
    model = model_of(object_type)
    if model is None or not is_watchable(object_type):
        raise Http404
    if request.POST.get("stop"):
        stop_watching(user=request.user, object_type=object_type, object_id=str(object_id))
        messages.success(request, gettext("You no longer watch this object."))
    else:
        _watch(request, get_object_or_404(model, pk=object_id))
    back = request.POST.get("next", "")
    return redirect(back if is_local_address(request, back) else page_of(object_type, str(object_id)))


def _watch(request: HttpRequest, obj: Any) -> None:
    assert isinstance(request.user, User)
    try:
        watch_object(user=request.user, obj=obj, now=timezone.now())
    except InvalidInput as error:
        messages.error(request, error.message)
    else:
        messages.success(request, gettext("You watch this object. Its events come to your inbox."))


@require_http_methods(["GET", "POST"])
def _unsubscribe(request: HttpRequest, token: str) -> HttpResponseBase:
    """Ask whether to stop e-mail, and stop it on POST; mail programs post without a cookie."""
    key = user_of_token(token)
    user = User.objects.filter(pk=key).first() if key else None
    if user and request.method == "POST":
        stop_mail(user=user, now=timezone.now())
    context = {"person": user, "is_done": request.method == "POST"}
    response = render(request, "inbox/unsubscribe.html", context, status=200 if user else 404)
    response["Referrer-Policy"] = "no-referrer"
    return response


# The token in the address is the authority, so a forged request needs it too.
unsubscribe = public(csrf_exempt(_unsubscribe))
