"""Live demo: sessions are requested, cancelled and extended, and spot workers interrupted."""

from datetime import timedelta
from random import Random

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from django.utils import timezone

from fairshare.models import FairShare, UsageBucket
from lcm.demo import activity
from lcm.demo.credentials import set_simulator_url, write_controller_token
from lcm.demo.loader import WRONG_REQUIREMENTS, load_demo, run_observers
from lcm.demo.names import DEFINITIONS, POOLS, TOPOLOGIES
from lcm.domain.lifecycle import ACTIVE, FINAL, SessionStatus
from lcm.models import (
    ApiToken,
    ChangeLog,
    Domain,
    LabletDefinition,
    LabletSession,
    Membership,
    Project,
    User,
)
from lcm.services.definitions import import_definition
from lcm.services.organisation import add_member, create_domain, create_project
from lcm.services.session_transitions import transition_session
from lcm.services.sessions import create_session
from lcm.services.tokens import find_token
from scheduling.models import SimulatedInstance, Slot
from scheduling.selectors.pool_overview import is_silent
from scheduling.services.pools import create_pool
from tests.support.factories import WAY_TO

S = SessionStatus
pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.xdist_group("demo")]


NOW = timezone.now().replace(microsecond=0)


@pytest.fixture(scope="module")
def loaded(django_db_setup, django_db_blocker):
    """Load the fleet once. Each test's changes are rolled back."""
    with django_db_blocker.unblock(), transaction.atomic():
        load_demo(now=NOW, live=True)
        yield
        transaction.set_rollback(True)


@pytest.fixture
def fleet(loaded, db):
    pass


@pytest.fixture
def now():
    return NOW


def active_sessions():
    return LabletSession.objects.filter(status__in=ACTIVE)


def test_a_live_fleet_starts_with_waiting_and_past_sessions(fleet, now):
    assert set(active_sessions().values_list("status", flat=True)) == {"PENDING"}
    assert all(session.ends_at > now for session in active_sessions())
    assert LabletSession.objects.filter(status__in=FINAL).count() > 30


def test_objects_are_older_than_their_events(fleet, now):
    first = LabletSession.objects.order_by("created_at").first().created_at
    assert all(project.created_at < first for project in Project.objects.all())
    assert all(
        slot.pool.created_at < slot.created_at == slot.last_state_change for slot in Slot.objects.all()
    )
    assert not Membership.objects.filter(joined_at__gt=first).exists()
    setup_changes = ChangeLog.objects.filter(
        event__in=("domain.created", "project.created", "project.member_added")
    )
    assert setup_changes.exists()
    assert not setup_changes.filter(at__gt=first).exists()
    assert not ChangeLog.objects.filter(event="pool.created", at__gt=now - timedelta(days=9)).exists()
    assert not ChangeLog.objects.filter(event="definition.imported", at__gt=now - timedelta(days=9)).exists()


def test_no_worker_misses_heartbeats_before_its_controller_starts(fleet, now):
    assert not Slot.objects.filter(is_silent(now)).exists()


def test_some_definitions_are_over_provisioned_and_some_under_provisioned(fleet):
    for name, factor in WRONG_REQUIREMENTS.items():
        definition = LabletDefinition.objects.get(name=name)
        needed_gb = sum(node["memory_mb"] for node in definition.nodes) / 1024
        required_gb = float(definition.current_revision.memory_gb)
        assert (required_gb > needed_gb * 1.5) if factor > 1 else (required_gb < needed_gb)


def test_sessions_are_requested_up_to_the_target(fleet, now):
    demo = activity.DemoActivity(Random(1))
    for step in range(20):
        demo.step(now=now + timedelta(seconds=8 * step))
    assert active_sessions().count() == activity.TARGET_SESSIONS
    lengths = {(each.ends_at - each.starts_at).total_seconds() / 60 for each in active_sessions()}
    assert all(activity.SESSION_MINUTES[0] <= length <= activity.SESSION_MINUTES[1] for length in lengths)


def run_all_sessions(now):
    for session in active_sessions():
        for step in WAY_TO[S.RUNNING]:
            transition_session(session=session, to=step, actor=activity.DEMO, now=now)


def test_running_sessions_are_cancelled_and_extended(fleet, now, monkeypatch):
    run_all_sessions(now)
    monkeypatch.setattr(activity, "CANCEL_PROBABILITY", 1.0)
    monkeypatch.setattr(activity, "EXTEND_PROBABILITY", 1.0)
    before = {each.pk: each.ends_at for each in active_sessions()}
    activity.DemoActivity(Random(1)).step(now=now)
    assert active_sessions().filter(status=S.STOPPING).count() == 1
    assert sum(each.ends_at != before.get(each.pk, each.ends_at) for each in active_sessions()) == 1


def test_a_spot_worker_gets_an_interruption_notice(fleet, now, monkeypatch):
    monkeypatch.setattr(activity, "INTERRUPT_PROBABILITY", 1.0)
    activity.DemoActivity(Random(1)).step(now=now)
    (noticed,) = SimulatedInstance.objects.exclude(interrupted_at=None)
    assert (noticed.market, noticed.pool) == ("spot", "cml-us")


def test_the_demo_ignores_pools_definitions_and_sessions_of_users(fleet, now, tmp_path, monkeypatch):
    for name in ("CANCEL_PROBABILITY", "EXTEND_PROBABILITY", "INTERRUPT_PROBABILITY"):
        monkeypatch.setattr(activity, name, 1.0)
    lab = (TOPOLOGIES / f"{DEFINITIONS[0]}.yaml").read_text()
    with_spot = {"spot": True}
    create_pool(name="mine", spot_policy="only", runtime_settings=with_spot, max_slots=2, actor=activity.DEMO)
    SimulatedInstance.objects.update(ended_at=now)
    SimulatedInstance.objects.create(id="i-1", pool="mine", market="spot", launched_at=now)
    import_fields = {"topology": lab, "status": "active", "actor": activity.DEMO, "now": now}
    import_definition(name="mine", **import_fields)
    import_definition(name=DEFINITIONS[0], version="2.0", **import_fields)
    # A demo definition that a user moved to a pool of their own.
    LabletDefinition.objects.filter(name=DEFINITIONS[1]).update(pool="mine")
    admin = User.objects.get(username="admin")
    project = create_project(domain=Domain.objects.first(), name="empty", actor=activity.DEMO)
    create_project(domain=create_domain(name="mine", actor=activity.DEMO), name="mine", actor=activity.DEMO)
    add_member(project=project, user=admin, actor=activity.DEMO)
    active_sessions().delete()
    user_session = create_session(
        definition=LabletDefinition.objects.get(name=DEFINITIONS[2]),
        owner=admin,
        project=project,
        starts_at=now,
        ends_at=now + timedelta(hours=1),
        actor=activity.DEMO,
        now=now,
    )
    run_all_sessions(now)
    for step in range(20):
        activity.DemoActivity(Random(step)).step(now=now)
    user_session.refresh_from_db()
    assert (user_session.status, user_session.ends_at) == (S.RUNNING, now + timedelta(hours=1))
    demo_sessions = active_sessions().exclude(pk=user_session.pk)
    assert demo_sessions.count() == activity.TARGET_SESSIONS
    assert {each.definition.version for each in demo_sessions} == {"1.0"}
    assert {each.definition.name for each in demo_sessions} <= {*DEFINITIONS} - {DEFINITIONS[1]}
    assert set(demo_sessions.values_list("pool", flat=True)) <= {*POOLS}
    assert not SimulatedInstance.objects.exclude(interrupted_at=None).exists()
    write_controller_token(tmp_path / "token", now=now)
    assert find_token(key=(tmp_path / "token").read_text(), now=now).scopes == [
        f"pool:{pool}" for pool in POOLS
    ]


def test_workers_have_the_url_of_the_simulator(fleet):
    set_simulator_url("http://127.0.0.1:9")
    for slot in Slot.objects.exclude(instance_id=""):
        assert slot.endpoint == f"http://127.0.0.1:9/{slot.instance_id}"


def test_the_token_of_the_controller_is_kept_and_private(fleet, now, tmp_path):
    path = tmp_path / "token"
    write_controller_token(path, now=now)
    key = path.read_text()
    write_controller_token(path, now=now)
    assert path.read_text() == key
    assert path.stat().st_mode & 0o077 == 0
    assert find_token(key=key, now=now).scopes == ["pool:cml-eu", "pool:cml-us"]
    path.write_text("lcm_wrong")
    write_controller_token(path, now=now)
    assert path.read_text() not in (key, "lcm_wrong")
    assert ApiToken.objects.filter(name="demo-controller", revoked_at=None).count() == 1


def test_without_demo_no_activity_runs(settings):
    settings.DEMO = False
    with pytest.raises(CommandError, match="demo only"):
        call_command("live_demo")


def test_past_usage_is_counted_before_the_first_page_view(fleet, now):
    run_observers(lambda: now)
    days = UsageBucket.objects.filter(level="domain").values_list("day", flat=True)
    assert min(days) < (now - timedelta(days=14)).date()
    assert FairShare.objects.filter(level="user", factor__lt=1).exists()
