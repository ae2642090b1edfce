"""Watch objects, and choose the events that LCM sends to oneself."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from django.db import models, transaction
from django.utils.translation import gettext as _

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput
from lcm.events.personal import chosen, offered_choices
from lcm.models import PERSONAL, Channel, Delivery, DeliveryState, User, Watch
from lcm.services.changelog import log_change

MAX_WATCHES = 200


def watch_object(*, user: User, obj: models.Model, now: datetime) -> Watch:
    """Send the events of an object to the person; watching it again changes nothing."""
    key = {"user": user, "object_type": obj._meta.model_name or "", "object_id": str(obj.pk)}
    if (found := Watch.objects.filter(**key).first()) is not None:
        return found
    if Watch.objects.filter(user=user).count() >= MAX_WATCHES:
        raise InvalidInput(
            {"__all__": _("You can watch at most %(count)s objects.") % {"count": MAX_WATCHES}}
        )
    watch, _created = Watch.objects.get_or_create(
        **key, defaults={"object_label": str(obj)[:200], "created_at": now}
    )
    return watch


def stop_watching(*, user: User, object_type: str, object_id: str) -> bool:
    """Send no further events of an object; return whether the person watched it."""
    removed, _by_model = Watch.objects.filter(
        user=user, object_type=object_type, object_id=object_id
    ).delete()
    return bool(removed)


def choose_notifications(
    *, user: User, choices: Mapping[Channel, Collection[str]], actor: Actor, now: datetime
) -> User:
    """Replace the choices of some channels; other channels keep theirs."""
    offered = offered_choices()
    for channel, names in choices.items():
        if unknown := sorted(set(names).difference(offered)):
            raise InvalidInput({channel: _("There is no event type %(name)s.") % {"name": unknown[0]}})
    with transaction.atomic():
        stored = User.objects.select_for_update().get(pk=user.pk)
        before = stored.notification_choices
        after = before | {
            channel.value: sorted(set(names), key=offered.index) for channel, names in choices.items()
        }
        user.notification_choices = after
        if after != before:
            user.save(update_fields=["notification_choices"])
            log_change(
                user,
                actor=actor,
                event="person.notifications_changed",
                message=f"notifications of {user} changed",
                before=before,
                after=after,
                now=now,
            )
    return user


def choose_type(*, user: User, name: str, channels: dict[Channel, bool], actor: Actor, now: datetime) -> User:
    """Change the channels of one event type."""
    user.refresh_from_db(fields=["notification_choices"])
    choices = {}
    for channel, is_on in channels.items():
        others = (chosen(user, channel) & set(offered_choices())) - {name}
        choices[channel] = others | {name} if is_on else others
    return choose_notifications(user=user, choices=choices, actor=actor, now=now)


def stop_mail(*, user: User, now: datetime) -> None:
    """Send no further e-mail about own and watched objects, also none that waits."""
    with transaction.atomic():
        choose_notifications(user=user, choices={Channel.EMAIL: ()}, actor=Actor.person(user), now=now)
        Delivery.objects.filter(
            recipient=user, channel=Channel.EMAIL, cause__in=PERSONAL, state=DeliveryState.PENDING
        ).update(
            state=DeliveryState.DROPPED,
            next_attempt_at=None,
            error=f"{user} stopped e-mail about own objects.",
        )
