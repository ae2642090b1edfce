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
from lcm.api.views.base import ReadViewSet, change, command, deletion
from lcm.domain.access import ADMIN, VIEWER
from lcm.domain.errors import InvalidInput
from lcm.models import DefinitionRevision, DefinitionStatus, LabletDefinition
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
        return self.shown(definition, s.DefinitionDetailSerializer, 201)

    @change(s.DefinitionChangeSerializer, s.DefinitionDetailSerializer)
    def partial_update(self, definition: LabletDefinition, **changes: Any) -> LabletDefinition:
        return services.update_definition(definition=definition, actor=self.actor, **changes)

    @deletion
    def destroy(self, definition: LabletDefinition, reason: str) -> None:
        services.delete_definition(definition=definition, reason=reason, actor=self.actor)

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
        result = {"definition": definition, "topology": topology.to_dict()}
        return Response(s.ImportResultSerializer(result).data, status=201 if definition else 200)

    @command(s.StatusChangeSerializer, s.DefinitionDetailSerializer, url_path="status")
    def set_status(self, definition: LabletDefinition, status: str, reason: str) -> LabletDefinition:
        return services.set_definition_status(
            definition=definition, status=DefinitionStatus(status), reason=reason, actor=self.actor
        )

    @extend_schema(responses=s.RevisionSerializer(many=True), filters=False)
    @action(detail=True, filterset_class=None, sorts=("-number",))
    def revisions(self, request: Request, pk: str) -> Response:
        return self.paged(selectors.revisions_of(self.get_object()), s.RevisionSerializer)

    @command(s.ReviseSerializer, s.RevisionSerializer, status=201)
    def revise(self, definition: LabletDefinition, **data: Any) -> DefinitionRevision:
        """Set requirements, the port template or both by hand; use `apply` to apply a recommendation."""
        return services.revise_definition(definition=definition, **data, actor=self.actor, now=self.now())

    @command(
        s.RevertSerializer,
        s.RevisionSerializer,
        status=201,
        url_path=r"revisions/(?P<number>[0-9]{1,9})/revert",
    )
    def revert(self, definition: LabletDefinition, number: str, **data: Any) -> DefinitionRevision:
        return services.revert_definition(
            definition=definition, number=int(number), **data, actor=self.actor, now=self.now()
        )
