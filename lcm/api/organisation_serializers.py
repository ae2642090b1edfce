"""Serializers of domains, projects, people, tokens and the change log."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from lcm.api.serializers import ReasonSerializer
from lcm.domain.roles import Role, role_of
from lcm.models import ApiToken, ChangeLog, Domain, Project, TokenKind, User
from lcm.selectors.organisation import values_are_for_admins

ROLES = {role.label: role for role in Role}
MAX_PROJECTS = 50


class DomainSerializer(serializers.ModelSerializer[Domain]):
    project_count = serializers.IntegerField(read_only=True, default=0)

    class Meta:
        model = Domain
        fields = ["id", "name", "description", "project_count", "created_at", "updated_at"]
        validators: list[Any] = []
        extra_kwargs: dict[str, Any] = {"name": {"validators": []}}


class ProjectSerializer(serializers.ModelSerializer[Project]):
    domain_name = serializers.CharField(source="domain.name", read_only=True)
    member_count = serializers.IntegerField(read_only=True, default=0)

    class Meta:
        model = Project
        fields = [
            "id", "domain", "domain_name", "name", "description", "member_count", "created_at", "updated_at",
        ]  # fmt: skip
        validators: list[Any] = []


class ProjectChangeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=63, required=False)
    description = serializers.CharField(max_length=300, allow_blank=True, required=False)


class MemberSerializer(serializers.Serializer[Any]):
    user = serializers.PrimaryKeyRelatedField(queryset=User.objects.all())


class MemberRemovalSerializer(MemberSerializer):
    reason = serializers.CharField(max_length=500)


class PersonNameSerializer(serializers.ModelSerializer[User]):
    """A person as colleagues see them; account details are for administrators."""

    class Meta:
        model = User
        fields = ["id", "username", "first_name", "last_name"]


class UserSerializer(serializers.ModelSerializer[User]):
    role = serializers.SerializerMethodField()

    class Meta:
        model = User
        fields = ["id", "username", "first_name", "last_name", "email", "role", "is_active", "last_login"]

    @extend_schema_field(serializers.ChoiceField(choices=list(ROLES)))
    def get_role(self, user: User) -> str:
        return user.role.label


class RoleField(serializers.ChoiceField):
    """A role by name."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=list(ROLES), **kwargs)

    def to_internal_value(self, data: Any) -> Role:  # type: ignore[override]
        return ROLES[super().to_internal_value(data)]


class NewPersonSerializer(serializers.Serializer[Any]):
    username = serializers.CharField(
        max_length=150, help_text="Letters, digits and @ . + - _; for signing in."
    )
    first_name = serializers.CharField(max_length=150, allow_blank=True, default="")
    last_name = serializers.CharField(max_length=150, allow_blank=True, default="")
    email = serializers.EmailField(max_length=254, allow_blank=True, default="")
    role = RoleField(default=Role.NONE)
    projects = serializers.ListField(
        child=serializers.UUIDField(),
        max_length=MAX_PROJECTS,
        default=list,
        help_text="Ids of projects that the person joins.",
    )

    def validate_projects(self, ids: list[UUID]) -> tuple[Project, ...]:
        found = Project.objects.select_related("domain").in_bulk(ids)
        if unknown := [str(each) for each in ids if each not in found]:
            raise serializers.ValidationError(_("Unknown projects: %(ids)s.") % {"ids": ", ".join(unknown)})
        return tuple(found.values())


class PasswordLinkSerializer(serializers.Serializer[Any]):
    password_link = serializers.CharField(
        read_only=True, help_text="With it the person sets a password, once. Shown only in this response."
    )
    password_link_expires_at = serializers.DateTimeField(read_only=True)


class NewUserSerializer(PasswordLinkSerializer, UserSerializer):
    class Meta(UserSerializer.Meta):
        fields = [*UserSerializer.Meta.fields, "password_link", "password_link_expires_at"]


class RoleChangeSerializer(ReasonSerializer):
    role = RoleField()
    is_active = serializers.BooleanField(
        required=False, help_text="False closes the account. Default: unchanged."
    )


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    state = serializers.ChoiceField(choices=["valid", "expired", "revoked"], read_only=True)

    class Meta:
        model = ApiToken
        fields = [
            "id", "name", "kind", "user", "scopes", "hint", "state",
            "created_at", "expires_at", "revoked_at", "last_used_at",
        ]  # fmt: skip
        extra_kwargs = {"scopes": {"help_text": "Scopes of a controller: `pool:NAME`."}}


class TokenRequestSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=63)
    kind = serializers.ChoiceField(choices=TokenKind.choices)
    user = serializers.PrimaryKeyRelatedField(queryset=User.objects.all(), required=False, allow_null=True)
    scopes = serializers.ListField(child=serializers.CharField(max_length=80), default=list, max_length=100)
    expires_at = serializers.DateTimeField(required=False)


class NewTokenSerializer(TokenSerializer):
    key = serializers.CharField(read_only=True, help_text="Shown only in this response.")

    class Meta(TokenSerializer.Meta):
        fields = [*TokenSerializer.Meta.fields, "key"]


class ChangeSerializer(serializers.ModelSerializer[ChangeLog]):
    class Meta:
        model = ChangeLog
        fields = [
            "id", "at", "actor", "user", "request_id", "object_type", "object_id", "object_label",
            "event", "message", "reason", "before", "after",
        ]  # fmt: skip
        extra_kwargs = {
            name: {
                "help_text": "Null for roles below Admin if the object is a person, token, webhook or rule."
            }
            for name in ("before", "after")
        }

    def to_representation(self, instance: ChangeLog) -> dict[str, Any]:
        shown: dict[str, Any] = super().to_representation(instance)
        if values_are_for_admins(instance) and role_of(self.context["request"].user) < Role.ADMIN:
            shown |= {"before": None, "after": None}
        return shown
