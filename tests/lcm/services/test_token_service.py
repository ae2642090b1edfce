"""API tokens: creation, lookup, rotation and revocation."""

import json
from datetime import timedelta

import pytest
from django.apps import apps
from django.core.serializers.json import DjangoJSONEncoder

from lcm.domain.actors import SYSTEM, Actor
from lcm.domain.errors import InvalidInput, StateConflict
from lcm.models import ApiToken, ChangeLog, TokenKind
from lcm.services.tokens import create_token, find_token, revoke_token, rotate_token
from tests.support.factories import make_person, make_person_token

DAY = timedelta(days=1)


@pytest.fixture
def make(db, now):
    """`make(field=value)`: create a controller token for 30 days, with these arguments changed."""

    def create(**changes):
        arguments = {
            "name": "worker-1",
            "kind": TokenKind.CONTROLLER,
            "scopes": ["pool:cml-eu"],
            "expires_at": now + 30 * DAY,
        }
        return create_token(**(arguments | changes), actor=SYSTEM, now=now)

    return create


def everything_stored():
    """Return all rows of all tables as one text."""
    rows = [list(model._base_manager.values()) for model in apps.get_models()]
    return json.dumps(rows, cls=DjangoJSONEncoder)


def test_only_superusers_get_the_keys_of_superusers(make, admin):
    root = make_person("root", is_superuser=True)
    given = {"kind": TokenKind.PERSON, "user": root, "scopes": []}
    token, key = make(**given)
    now = token.created_at
    arguments = {"token": token, "reason": "leaked", "now": now}
    with pytest.raises(StateConflict, match="Only superusers"):
        create_token(**given, name="mine", expires_at=now + DAY, actor=Actor.person(admin), now=now)
    with pytest.raises(StateConflict, match="Only superusers"):
        rotate_token(**arguments, actor=Actor.person(admin))
    assert find_token(key=key, now=now) == token, "the old key still works"
    assert rotate_token(**arguments, actor=Actor.person(root))


def test_the_key_is_not_stored_in_the_database(make):
    _, key = make()
    stored = everything_stored()
    assert "worker-1" in stored
    assert key not in stored
    assert key.removeprefix("lcm_") not in stored


def test_a_key_is_long_and_random_with_a_known_prefix(make):
    (token, key), (_, other) = make(), make(name="worker-2")
    assert key.startswith("lcm_")
    assert len(key) >= 4 + 43
    assert key != other
    assert (token.hint, len(token.hint)) == (key[:9], 9)


def test_a_key_finds_its_token(make, now):
    token, key = make()
    assert find_token(key=key, now=now) == token


@pytest.mark.parametrize("key", ["", "lcm_", "lcm_wrong", "x" * 10_000, "lcm_\x00", "lcm_ä\ufffd"])
def test_other_keys_find_no_token(key, make, now):
    make()
    assert find_token(key=key, now=now) is None


def test_the_hash_is_not_accepted_as_a_key(make, now):
    token, _ = make()
    assert find_token(key=token.hash, now=now) is None


@pytest.mark.parametrize(("days", "found"), [(29.99, True), (30, False), (31, False)])
def test_an_expired_key_finds_no_token(days, found, make, now):
    _, key = make()
    assert (find_token(key=key, now=now + days * DAY) is not None) == found


def test_a_revoked_key_finds_no_token(make, now):
    token, key = make()
    revoke_token(token=token, actor=SYSTEM, now=now, reason="leaked")
    assert find_token(key=key, now=now) is None
    assert ChangeLog.objects.get(event="token.revoked").reason == "leaked"


def test_a_token_cannot_be_revoked_twice(make, now):
    token, _ = make()
    revoke_token(token=token, actor=SYSTEM, now=now, reason="lost")
    with pytest.raises(StateConflict, match="revoked already"):
        revoke_token(token=token, actor=SYSTEM, now=now + DAY, reason="lost")
    token.refresh_from_db()
    assert token.revoked_at == now


def test_the_key_of_an_inactive_user_finds_no_token(viewer, now):
    holder = make_person_token(viewer)
    viewer.is_active = False
    viewer.save()
    assert find_token(key=holder.key, now=now) is None


def test_use_is_recorded_at_most_once_a_minute(make, now):
    token, key = make()
    seen = []
    for seconds in (0, 59, 61):
        find_token(key=key, now=now + timedelta(seconds=seconds))
        token.refresh_from_db()
        seen.append((token.last_used_at - now).total_seconds())
    assert seen == [0, 0, 61]


def test_rotation_revokes_the_old_key_and_keeps_name_scopes_and_lifetime(make, now):
    old, old_key = make()
    later = now + 10 * DAY
    new, new_key = rotate_token(token=old, actor=SYSTEM, now=later, reason="yearly")
    assert find_token(key=old_key, now=later) is None
    assert find_token(key=new_key, now=later) == new
    assert (new.name, new.kind, new.scopes) == (old.name, old.kind, old.scopes)
    assert new.expires_at == later + 30 * DAY
    assert old.pk != new.pk
    assert ChangeLog.objects.get(event="token.revoked").reason == "yearly"


def test_rotating_and_revoking_need_a_reason(make, now):
    token, key = make()
    for end in (revoke_token, rotate_token):
        with pytest.raises(InvalidInput, match="Enter a reason"):
            end(token=token, actor=SYSTEM, now=now, reason=" ")
    assert find_token(key=key, now=now) == token


def test_an_expired_token_can_be_rotated(make, now):
    token, _ = make()
    later = now + 40 * DAY
    _, key = rotate_token(token=token, actor=SYSTEM, now=later, reason="yearly")
    assert find_token(key=key, now=later)


def test_a_revoked_token_cannot_be_rotated(make, now):
    token, _ = make()
    revoke_token(token=token, actor=SYSTEM, now=now, reason="lost")
    with pytest.raises(StateConflict):
        rotate_token(token=token, actor=SYSTEM, now=now, reason="yearly")
    assert ApiToken.objects.count() == 1


def test_a_name_in_use_is_rejected_until_its_token_is_revoked(make, now):
    token, _ = make()
    with pytest.raises(InvalidInput, match="A token with this name already exists"):
        make()
    revoke_token(token=token, actor=SYSTEM, now=now, reason="lost")
    make()
    assert ApiToken.objects.filter(name="worker-1").count() == 2


@pytest.mark.parametrize(
    "scope",
    [
        "",
        "cml-eu",
        "pool:",
        "pool:CML",
        "pool:cml eu",
        "pool: cml-eu",
        ":cml-eu",
        "pool:*",
        "Pool:a",
        "pool:a\n",
    ],
)
def test_an_invalid_scope_is_rejected(scope, make):
    with pytest.raises(InvalidInput) as caught:
        make(scopes=["pool:cml-eu", scope])
    assert list(caught.value.fields) == ["scopes"]
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize(
    "scopes", [["pool:cml-eu"], ["pool:cml-eu", "pool:cml-us"], ["pool:7"], ["site:lab-1"]]
)
def test_a_valid_scope_is_accepted(scopes, make):
    assert make(scopes=scopes)[0].scopes == scopes


@pytest.mark.parametrize("lifetime", [timedelta(0), -DAY, 731 * DAY])
def test_an_invalid_expiry_is_rejected(lifetime, make, now):
    with pytest.raises(InvalidInput) as caught:
        make(expires_at=now + lifetime)
    assert list(caught.value.fields) == ["expires_at"]


def test_a_controller_token_needs_a_scope(make):
    with pytest.raises(InvalidInput) as caught:
        make(scopes=[])
    assert list(caught.value.fields) == ["scopes"]


def test_a_controller_token_cannot_belong_to_a_user(make, viewer):
    with pytest.raises(InvalidInput) as caught:
        make(user=viewer)
    assert list(caught.value.fields) == ["user"]


def test_a_personal_token_needs_a_user_and_takes_no_scope(make):
    with pytest.raises(InvalidInput) as caught:
        make(kind=TokenKind.PERSON)
    assert set(caught.value.fields) == {"user", "scopes"}


@pytest.mark.parametrize("name", ["", "n" * 64])
def test_a_name_of_invalid_length_is_rejected(name, make):
    with pytest.raises(InvalidInput) as caught:
        make(name=name)
    assert list(caught.value.fields) == ["name"]


def test_deleting_a_user_deletes_their_tokens(stranger, now):
    holder = make_person_token(stranger)
    stranger.delete()
    assert find_token(key=holder.key, now=now) is None
