"""API views of domains, projects, people, tokens and the change log."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api import organisation_serializers as s
from lcm.api.serializers import ReasonSerializer
from lcm.api.views.base import ReadViewSet, change, command, deletion
from lcm.domain.access import ADMIN, VIEWER
from lcm.domain.roles import Role
from lcm.models import ApiToken, ChangeLog, Domain, Project, TokenKind, User
from lcm.selectors import organisation as selectors
from lcm.services import organisation as services
from lcm.services import people, tokens
from lcm.services.new_people import NewPerson, create_people
from lcm.services.password_links import PasswordLink, create_password_link
from lcm.web.filters import ChangeFilter, DomainFilter, ProjectFilter, TokenFilter, UserFilter

CRUD = {"list": VIEWER, "retrieve": VIEWER, "create": ADMIN, "partial_update": ADMIN, "destroy": ADMIN}


@extend_schema(tags=["organisation"])
class DomainViewSet(ReadViewSet[Domain]):
    queryset = selectors.domains()
    serializer_class = s.DomainSerializer
    filterset_class = DomainFilter
    sorts = ("name", "created_at")
    access = CRUD

    @extend_schema(responses={201: s.DomainSerializer})
    def create(self, request: Request) -> Response:
        domain = services.create_domain(**self.validated(s.DomainSerializer, request), actor=self.actor)
        return self.shown(domain, s.DomainSerializer, 201)

    @change(s.DomainSerializer, s.DomainSerializer)
    def partial_update(self, domain: Domain, **changes: Any) -> Domain:
        return services.update_domain(domain=domain, actor=self.actor, **changes)

    @deletion
    def destroy(self, domain: Domain, reason: str) -> None:
        services.delete_domain(domain=domain, reason=reason, actor=self.actor)


@extend_schema(tags=["organisation"])
class ProjectViewSet(ReadViewSet[Project]):
    queryset = selectors.projects()
    serializer_class = s.ProjectSerializer
    filterset_class = ProjectFilter
    sorts = ("name", "created_at")
    access = CRUD | {"members": VIEWER, "add_member": ADMIN, "remove_member": ADMIN}

    @extend_schema(responses={201: s.ProjectSerializer})
    def create(self, request: Request) -> Response:
        project = services.create_project(**self.validated(s.ProjectSerializer, request), actor=self.actor)
        return self.shown(project, s.ProjectSerializer, 201)

    @change(s.ProjectChangeSerializer, s.ProjectSerializer)
    def partial_update(self, project: Project, **changes: Any) -> Project:
        return services.update_project(project=project, actor=self.actor, **changes)

    @deletion
    def destroy(self, project: Project, reason: str) -> None:
        services.delete_project(project=project, reason=reason, actor=self.actor)

    @extend_schema(responses=s.PersonNameSerializer(many=True), filters=False)
    @action(detail=True, filterset_class=None, sorts=("username", "date_joined"))
    def members(self, request: Request, pk: str) -> Response:
        """List the ids and names of the members, for example as possible owners of a session."""
        people = selectors.people().filter(memberships__project=self.get_object())
        return self.paged(people, s.PersonNameSerializer)

    @extend_schema(request=s.MemberSerializer, responses={204: None})
    @members.mapping.post
    def add_member(self, request: Request, pk: str) -> Response:
        user = self.validated(s.MemberSerializer, request)["user"]
        services.add_member(project=self.get_object(), user=user, actor=self.actor)
        return Response(status=204)

    @extend_schema(request=s.MemberRemovalSerializer, responses={204: None})
    @action(detail=True, methods=["post"], url_path="members/remove")
    def remove_member(self, request: Request, pk: str) -> Response:
        data = self.validated(s.MemberRemovalSerializer, request)
        services.remove_member(project=self.get_object(), **data, actor=self.actor)
        return Response(status=204)


@extend_schema(tags=["organisation"])
class UserViewSet(ReadViewSet[User]):
    queryset = selectors.people()
    serializer_class = s.UserSerializer
    filterset_class = UserFilter
    sorts = ("username", "date_joined")
    shown_once = ("password_link",)
    access = {"list": ADMIN, "retrieve": ADMIN, "create": ADMIN, "role": ADMIN, "password_link": ADMIN}

    @extend_schema(request=s.NewPersonSerializer, responses={201: s.NewUserSerializer})
    def create(self, request: Request) -> Response:
        """Add a person and return the link with which they set a password. LCM sends no email."""
        person = NewPerson(**self.validated(s.NewPersonSerializer, request))
        (link,) = create_people(people=[person], actor=self.actor, now=self.now())
        return self.shown(self._with_link(link), s.NewUserSerializer, 201)

    @command(s.RoleChangeSerializer, s.UserSerializer)
    def role(self, user: User, role: Role, reason: str, is_active: bool | None = None) -> User:
        """Set the role of a person; it applies from their next request on, also to their tokens."""
        people.set_role(user=user, role=role, is_active=is_active, reason=reason, by=self._admin)
        return selectors.people().get(pk=user.pk)

    @command(ReasonSerializer, s.NewUserSerializer, status=201, url_path="password-link")
    def password_link(self, user: User, reason: str) -> User:
        """Create a link with which the person sets a new password; earlier links become invalid."""
        return self._with_link(create_password_link(user=user, reason=reason, by=self._admin, now=self.now()))

    @property
    def _admin(self) -> User:
        assert isinstance(self.request.user, User)
        return self.request.user

    def _with_link(self, link: PasswordLink) -> User:
        user = selectors.people().get(pk=link.user.pk)
        path = reverse("set_password", args=[link.uid, link.token])
        vars(user)["password_link"] = self.request.build_absolute_uri(path)
        vars(user)["password_link_expires_at"] = link.expires_at
        return user


@extend_schema(tags=["access"])
class TokenViewSet(ReadViewSet[ApiToken]):
    queryset = selectors.tokens()
    serializer_class = s.TokenSerializer
    filterset_class = TokenFilter
    sorts = ("-created_at", "name", "expires_at")
    shown_once = ("key",)
    access = {"list": ADMIN, "retrieve": ADMIN, "create": ADMIN, "rotate": ADMIN, "revoke": ADMIN}

    @extend_schema(request=s.TokenRequestSerializer, responses={201: s.NewTokenSerializer})
    def create(self, request: Request) -> Response:
        data = self.validated(s.TokenRequestSerializer, request)
        now = self.now()
        data.setdefault("expires_at", now + timedelta(days=settings.CONFIG["TOKEN_DAYS"]))
        data["kind"] = TokenKind(data["kind"])
        new_token = _with_key(*tokens.create_token(**data, actor=self.actor, now=now))
        return self.shown(new_token, s.NewTokenSerializer, 201)

    @command(ReasonSerializer, s.NewTokenSerializer, status=201)
    def rotate(self, token: ApiToken, reason: str) -> ApiToken:
        return _with_key(*tokens.rotate_token(token=token, reason=reason, actor=self.actor, now=self.now()))

    @command(ReasonSerializer, s.TokenSerializer)
    def revoke(self, token: ApiToken, reason: str) -> ApiToken:
        return tokens.revoke_token(token=token, reason=reason, actor=self.actor, now=self.now())


@extend_schema(tags=["access"])
class ChangeViewSet(ReadViewSet[ChangeLog]):
    queryset = selectors.changes()
    serializer_class = s.ChangeSerializer
    filterset_class = ChangeFilter
    lookup_value_regex = "[0-9]{1,18}"
    sorts = ("-at",)
    access = {"list": VIEWER, "retrieve": VIEWER}


def _with_key(token: ApiToken, key: str) -> ApiToken:
    token.key = key
    return token
