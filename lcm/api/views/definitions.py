"""API views of definitions."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from lcm.api import serializers as s
from lcm.api.views.base import ReadViewSet, deletion_schema
from lcm.domain.access import ADMIN, VIEWER
from lcm.domain.errors import InvalidInput
from lcm.models import DefinitionStatus, LabletDefinition
from lcm.selectors import definitions as selectors
from lcm.services import definitions as services
from lcm.web.filters import DefinitionFilter


@extend_schema(tags=["definitions"])
class DefinitionViewSet(ReadViewSet[LabletDefinition]):
    """Lab definitions that people can request sessions of."""

    queryset = LabletDefinition.objects.none()
    filterset_class = DefinitionFilter
    sorts = ("name", "created_at", "updated_at", "node_count", "status")
    access = {
        "list": VIEWER,
        "retrieve": VIEWER,
        "create": ADMIN,
        "partial_update": ADMIN,
        "destroy": ADMIN,
        "import_topology": ADMIN,
        "set_status": ADMIN,
        "revisions": VIEWER,
        "revise": ADMIN,
        "revert": ADMIN,
    }

    def get_queryset(self) -> QuerySet[LabletDefinition]:
        return selectors.definitions() if self.action == "list" else selectors.definition_with_everything()

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        return s.DefinitionSerializer if self.action == "list" else s.DefinitionDetailSerializer

    @extend_schema(request=s.NewDefinitionSerializer, responses={201: s.DefinitionDetailSerializer})
    def create(self, request: Request) -> Response:
        """Create a definition without a topology; use `import` to create one from a topology."""
        data = self.validated(s.NewDefinitionSerializer, request)
        definition = services.create_definition(**data, actor=self.actor, now=self.now())
        return Response(self.get_serializer(definition).data, status=201)

    @extend_schema(request=s.DefinitionChangeSerializer, responses=s.DefinitionDetailSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        changes = self.validated_changes(s.DefinitionChangeSerializer, request)
        definition = services.update_definition(definition=self.get_object(), actor=self.actor, **changes)
        return Response(self.get_serializer(definition).data)

    @deletion_schema
    def destroy(self, request: Request, pk: str) -> Response:
        reason = self.deletion_reason(request)
        services.delete_definition(definition=self.get_object(), reason=reason, actor=self.actor)
        return Response(status=204)

    @extend_schema(
        request=s.DefinitionImportSerializer,
        responses={
            201: s.ImportResultSerializer,
            200: OpenApiResponse(s.ImportResultSerializer, description="Dry run: nothing was saved."),
        },
    )
    @action(detail=False, methods=["post"], url_path="import", url_name="import", filterset_class=None)
    def import_topology(self, request: Request) -> Response:
        data = self.validated(s.DefinitionImportSerializer, request)
        topology = services.read_topology(text=data["topology"])
        definition = None
        if not data.pop("dry_run"):
            if not data.get("name"):
                raise InvalidInput({"name": _("A definition needs a name.")})
            definition = services.import_definition(**data, actor=self.actor, now=self.now())
        answer = {"definition": definition, "topology": topology.to_dict()}
        return Response(s.ImportResultSerializer(answer).data, status=201 if definition else 200)

    @extend_schema(request=s.StatusChangeSerializer, responses=s.DefinitionDetailSerializer)
    @action(detail=True, methods=["post"], url_path="status")
    def set_status(self, request: Request, pk: str) -> Response:
        data = self.validated(s.StatusChangeSerializer, request)
        definition = services.set_definition_status(
            definition=self.get_object(),
            status=DefinitionStatus(data["status"]),
            reason=data["reason"],
            actor=self.actor,
        )
        return Response(self.get_serializer(definition).data)

    @extend_schema(responses=s.RevisionSerializer(many=True), filters=False)
    @action(detail=True, filterset_class=None, sorts=("-number",))
    def revisions(self, request: Request, pk: str) -> Response:
        found: Any = selectors.revisions_of(self.get_object())
        rows: Any = self.paginate_queryset(found)
        return self.get_paginated_response(s.RevisionSerializer(rows, many=True).data)

    @extend_schema(request=s.ReviseSerializer, responses={201: s.RevisionSerializer})
    @action(detail=True, methods=["post"])
    def revise(self, request: Request, pk: str) -> Response:
        """Set requirements, the port template or both by hand; use `apply` to apply a recommendation."""
        data = self.validated(s.ReviseSerializer, request)
        revision = services.revise_definition(
            definition=self.get_object(), **data, actor=self.actor, now=self.now()
        )
        return Response(s.RevisionSerializer(revision).data, status=201)

    @extend_schema(request=s.RevertSerializer, responses={201: s.RevisionSerializer})
    @action(detail=True, methods=["post"], url_path=r"revisions/(?P<number>[0-9]{1,9})/revert")
    def revert(self, request: Request, pk: str, number: str) -> Response:
        data = self.validated(s.RevertSerializer, request)
        revision = services.revert_definition(
            definition=self.get_object(), number=int(number), **data, actor=self.actor, now=self.now()
        )
        return Response(s.RevisionSerializer(revision).data, status=201)
