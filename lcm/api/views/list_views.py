"""API views of saved views of lists."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api import list_view_serializers as s
from lcm.api.views.base import ReadViewSet, change, command
from lcm.domain.access import VIEWER
from lcm.models import SavedView, User
from lcm.selectors.list_views import views_changeable_by, views_for
from lcm.services import list_views as services
from lcm.web.filters import SavedViewFilter


@extend_schema(tags=["views"])
class SavedViewViewSet(ReadViewSet[SavedView]):
    """The caller's own views and shared ones. Owners change their views, Admins also shared ones."""

    queryset = SavedView.objects.none()
    serializer_class = s.SavedViewSerializer
    filterset_class = SavedViewFilter
    sorts = ("name", "created_at")
    access = dict.fromkeys(("list", "retrieve", "create", "partial_update", "destroy", "default"), VIEWER)

    @property
    def _person(self) -> User:
        assert isinstance(self.request.user, User)
        return self.request.user

    def get_queryset(self) -> QuerySet[SavedView]:
        if getattr(self, "swagger_fake_view", False):
            return SavedView.objects.none()
        is_change = self.action in ("partial_update", "destroy")
        rows = views_changeable_by(self._person) if is_change else views_for(self._person)
        return rows.select_related("owner")

    @extend_schema(request=s.NewViewSerializer, responses={201: s.SavedViewSerializer})
    def create(self, request: Request) -> Response:
        data = self.validated(s.NewViewSerializer, request)
        view = services.create_view(owner=self._person, now=self.now(), **data)
        return self.shown(view, s.SavedViewSerializer, 201)

    @change(s.ViewChangeSerializer, s.SavedViewSerializer)
    def partial_update(self, view: SavedView, **changes: Any) -> SavedView:
        return services.update_view(view=view, by=self._person, now=self.now(), **changes)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        self.reject_fields(request)
        services.delete_view(view=self.get_object(), by=self._person, now=self.now())
        return Response(status=204)

    @command(s.DefaultViewSerializer, s.SavedViewSerializer)
    def default(self, view: SavedView, is_default: bool) -> SavedView:
        """Open the list with this view from now on, or no longer. It applies to the caller only."""
        services.set_default_view(user=self._person, view=view, is_default=is_default)
        return view
