"""Queries of the inbox and of the objects that a person watches."""

from __future__ import annotations

from django.db.models import QuerySet

from lcm.models import Channel, Delivery, User, Watch


def inbox_of(user: User) -> QuerySet[Delivery]:
    """Return the entries of a person's inbox."""
    return Delivery.objects.filter(recipient=user, channel=Channel.INBOX)


def unread_of(user: User) -> QuerySet[Delivery]:
    return inbox_of(user).filter(read_at=None)


def watches_of(user: User) -> QuerySet[Watch]:
    return Watch.objects.filter(user=user)


def is_watching(user: User, object_type: str, object_id: object) -> bool:
    return watches_of(user).filter(object_type=object_type, object_id=str(object_id)).exists()
