"""API views of domains, projects, people, tokens and the change log."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api import serializers as s
from lcm.api.views.base import ReadViewSet, deletion_schema
from lcm.domain.access import ADMIN, VIEWER
from lcm.models import ApiToken, ChangeLog, Domain, Project, TokenKind, User
from lcm.selectors import organisation as selectors
from lcm.services import organisation as services
from lcm.services import tokens
from lcm.web.filters import ChangeFilter, DomainFilter, ProjectFilter, TokenFilter, UserFilter

CRUD = {"list": VIEWER, "retrieve": VIEWER, "create": ADMIN, "partial_update": ADMIN, "destroy": ADMIN}


@extend_schema(tags=["organisation"])
class DomainViewSet(ReadViewSet[Domain]):
    queryset = Domain.objects.none()
    serializer_class = s.DomainSerializer
    filterset_class = DomainFilter
    sorts = ("name", "created_at")
    access = CRUD

    def get_queryset(self) -> QuerySet[Domain]:
        return selectors.domains()

    @extend_schema(responses={201: s.DomainSerializer})
    def create(self, request: Request) -> Response:
        domain = services.create_domain(**self.validated(s.DomainSerializer, request), actor=self.actor)
        return Response(s.DomainSerializer(domain).data, status=201)

    def partial_update(self, request: Request, pk: str) -> Response:
        changes = self.validated_changes(s.DomainSerializer, request)
        domain = services.update_domain(domain=self.get_object(), actor=self.actor, **changes)
        return Response(s.DomainSerializer(domain).data)

    @deletion_schema
    def destroy(self, request: Request, pk: str) -> Response:
        reason = self.deletion_reason(request)
        services.delete_domain(domain=self.get_object(), reason=reason, actor=self.actor)
        return Response(status=204)


@extend_schema(tags=["organisation"])
class ProjectViewSet(ReadViewSet[Project]):
    queryset = Project.objects.none()
    serializer_class = s.ProjectSerializer
    filterset_class = ProjectFilter
    sorts = ("name", "created_at")
    access = CRUD | {"members": VIEWER, "add_member": ADMIN, "remove_member": ADMIN}

    def get_queryset(self) -> QuerySet[Project]:
        return selectors.projects()

    @extend_schema(responses={201: s.ProjectSerializer})
    def create(self, request: Request) -> Response:
        project = services.create_project(**self.validated(s.ProjectSerializer, request), actor=self.actor)
        return Response(s.ProjectSerializer(project).data, status=201)

    @extend_schema(request=s.ProjectChangeSerializer, responses=s.ProjectSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        changes = self.validated_changes(s.ProjectChangeSerializer, request)
        project = services.update_project(project=self.get_object(), actor=self.actor, **changes)
        return Response(s.ProjectSerializer(project).data)

    @deletion_schema
    def destroy(self, request: Request, pk: str) -> Response:
        reason = self.deletion_reason(request)
        services.delete_project(project=self.get_object(), reason=reason, actor=self.actor)
        return Response(status=204)

    @extend_schema(responses=s.PersonNameSerializer(many=True), filters=False)
    @action(detail=True, filterset_class=None, sorts=("username", "date_joined"))
    def members(self, request: Request, pk: str) -> Response:
        """List the ids and names of the members, for example as possible owners of a session."""
        people: Any = selectors.people().filter(memberships__project=self.get_object())
        rows: Any = self.paginate_queryset(people)
        return self.get_paginated_response(s.PersonNameSerializer(rows, many=True).data)

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
    queryset = User.objects.none()
    serializer_class = s.UserSerializer
    filterset_class = UserFilter
    sorts = ("username", "date_joined")
    access = {"list": ADMIN, "retrieve": ADMIN}

    def get_queryset(self) -> QuerySet[User]:
        return selectors.people()


@extend_schema(tags=["access"])
class TokenViewSet(ReadViewSet[ApiToken]):
    queryset = ApiToken.objects.none()
    serializer_class = s.TokenSerializer
    filterset_class = TokenFilter
    sorts = ("-created_at", "name", "expires_at")
    shown_once = ("key",)
    access = {"list": ADMIN, "retrieve": ADMIN, "create": ADMIN, "rotate": ADMIN, "revoke": ADMIN}

    def get_queryset(self) -> QuerySet[ApiToken]:
        return selectors.tokens()

    @extend_schema(request=s.TokenRequestSerializer, responses={201: s.NewTokenSerializer})
    def create(self, request: Request) -> Response:
        data = self.validated(s.TokenRequestSerializer, request)
        now = self.now()
        data.setdefault("expires_at", now + timedelta(days=settings.CONFIG["TOKEN_DAYS"]))
        data["kind"] = TokenKind(data["kind"])
        token, key = tokens.create_token(**data, actor=self.actor, now=now)
        return self._with_key(token, key)

    @extend_schema(request=s.ReasonSerializer, responses={201: s.NewTokenSerializer})
    @action(detail=True, methods=["post"])
    def rotate(self, request: Request, pk: str) -> Response:
        data = self.validated(s.ReasonSerializer, request)
        made = tokens.rotate_token(token=self.get_object(), **data, actor=self.actor, now=self.now())
        return self._with_key(*made)

    @extend_schema(request=s.ReasonSerializer, responses=s.TokenSerializer)
    @action(detail=True, methods=["post"])
    def revoke(self, request: Request, pk: str) -> Response:
        data = self.validated(s.ReasonSerializer, request)
        token = tokens.revoke_token(token=self.get_object(), **data, actor=self.actor, now=self.now())
        return Response(s.TokenSerializer(token).data)

    def _with_key(self, token: ApiToken, key: str) -> Response:
        return Response({**s.TokenSerializer(token).data, "key": key}, status=201)


@extend_schema(tags=["access"])
class ChangeViewSet(ReadViewSet[ChangeLog]):
    queryset = ChangeLog.objects.none()
    serializer_class = s.ChangeSerializer
    filterset_class = ChangeFilter
    lookup_value_regex = "[0-9]{1,18}"
    sorts = ("-at",)
    access = {"list": VIEWER, "retrieve": VIEWER}

    def get_queryset(self) -> QuerySet[ChangeLog]:
        return selectors.changes()
