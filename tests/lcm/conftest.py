"""Fixtures for tests of all URLs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.utils import timezone

from lcm.events.catalog import event_types, example_event
from lcm.models import ChangeLog, Delivery, Job, SavedView
from lcm.services.subscriptions import watch_object
from observations.models import DriftReview
from scheduling.models import Pool, Slot, SlotState, TickRun
from tests.support.factories import make_delivery


@pytest.fixture
def url_arguments(session, project, controller, viewer) -> dict[str, dict[str, Any]]:
    """URL arguments: ids of existing objects, by prefix of the URL name and for special URLs."""
    definition = session.definition
    change = ChangeLog.objects.first()
    pool = Pool.objects.get(name="cml-eu")
    slot = Slot.objects.create(
        pool=pool, number=1, state=SlotState.READY, max_leases=1, cpu_cores=1, memory_gb=1, storage_gb=1
    )
    now = session.created_at
    drift = DriftReview.objects.create(
        definition=definition, fingerprint="f", kind="extra", name="r1_vnc", first_seen=now, last_seen=now
    )
    webhook, rule, delivery = make_delivery(now)
    view = SavedView.objects.create(list_name="sessions", name="Mine", owner=viewer, shared=True)
    by_prefix = {
        "session": {"pk": session.pk},
        "internal-session": {"pk": session.pk},
        "definition": {"pk": definition.pk},
        "domain": {"pk": project.domain_id},
        "project": {"pk": project.pk},
        "token": {"pk": controller.token.pk},
        "view": {"pk": view.pk},
        "saved-view": {"pk": view.pk},
        "change": {"pk": change.pk},
        "user": {"pk": viewer.pk},
        "person": {"pk": viewer.pk},
        "pool": {"pk": pool.pk},
        "slot": {"pk": slot.pk},
        "internal-slot": {"pk": slot.pk},
        "reservation": {"pk": session.reservations.get().pk},
        "fair-share": {"pk": 1},
        "fair-share-policy": {"pk": pool.pk},
        "tick": {"pk": TickRun.objects.create(pool=pool, started_at=timezone.now(), duration_ms=1).pk},
        "review": {"pk": definition.pk},
        "drift": {"pk": drift.pk},
        "webhook": {"pk": webhook.pk},
        "rule": {"pk": rule.pk},
        "event-rule": {"pk": rule.pk},
        "delivery": {"pk": delivery.pk},
        "inbox": {
            "pk": Delivery.objects.create(
                channel="inbox",
                recipient=viewer,
                event=change.pk,
                type="session.requested",
                state="delivered",
                payload=json.dumps(example_event(event_types()["session.requested"])),
                retry_until=now,
            ).pk
        },
        "watch": {"pk": watch_object(user=viewer, obj=slot, now=now).pk},
        "job": {"pk": Job.objects.create(kind="bulk", title="Cancel", actor="otto").pk},
    }
    special = {
        "watch": {"object_type": "slot", "object_id": slot.pk},
        "unsubscribe": {"token": "not-valid"},
        "api:subscription-detail": {"event_type": "session.ready"},
        "list_layout": {"name": "sessions"},
        "view_create": {"name": "sessions"},
        "api:event-type-detail": {"name": "session.ready"},
        "event_type_detail": {"name": "session.ready"},
        "api:event-type-schema": {"name": "session.ready"},
        "help": {"path": "guide.html"},
        "suggest": {"kind": "people"},
        "person_create": {},
        "person_import": {},
        "set_password": {"uidb64": "MQ", "token": "not-valid"},
        "observer_detail": {"name": "usage-record"},
        "observer_run": {"name": "usage-record"},
        "capacity:observer-detail": {"name": "usage-record"},
        "capacity:observer-run": {"name": "usage-record"},
        "member_list": {"pk": project.pk},
        "member_add": {"pk": project.pk},
        "member_remove": {"pk": project.pk, "user_pk": viewer.pk},
        "definition_revert": {"pk": definition.pk, "number": 1},
        "api:definition-revert": {"pk": definition.pk, "number": 1},
    }
    return {"by_prefix": by_prefix, "special": special}
