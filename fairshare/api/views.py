"""API of usage, shares and policies."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fairshare.api import serializers as s
from fairshare.filters import FairShareFilter, UsageBucketFilter
from fairshare.models import FairShare, UsageBucket
from fairshare.models.levels import ROOT
from fairshare.selectors.previews import preview_fair_share
from fairshare.selectors.shares import calculation_of, shares
from fairshare.selectors.subject_names import with_names
from fairshare.selectors.trees import SubjectKey, policy_read_with
from fairshare.services.policies import changed_policy, checked_weights, save_policy, set_weights
from lcm.api.views.base import LcmViewSet, ReadViewSet
from lcm.domain.access import ADMIN, VIEWER
from lcm.domain.errors import InvalidInput
from scheduling.models import Pool


@extend_schema(tags=["fair share"])
class UsageBucketViewSet(mixins.ListModelMixin, LcmViewSet[UsageBucket]):
    """Usage by UTC day of people in projects, of projects and of domains."""

    queryset = UsageBucket.objects.none()
    serializer_class = s.UsageBucketSerializer
    filterset_class = UsageBucketFilter
    sorts = ("-day",)
    access = {"list": VIEWER}

    def get_queryset(self) -> QuerySet[UsageBucket]:
        return with_names(UsageBucket.objects.all())


@extend_schema(tags=["fair share"])
class FairShareViewSet(ReadViewSet[FairShare]):
    """Fair share of domains, projects and people in a pool, and their weights."""

    queryset = FairShare.objects.none()
    serializer_class = s.FairShareSerializer
    filterset_class = FairShareFilter
    sorts = ("id", "rank", "factor")
    lookup_value_regex = "[0-9]{1,18}"
    access = {"list": VIEWER, "retrieve": VIEWER, "weights": ADMIN, "preview": ADMIN}

    def get_queryset(self) -> QuerySet[FairShare]:
        return with_names(shares())

    def get_serializer_context(self) -> dict[str, Any]:
        pools = Pool.objects.all() if self.request else []
        calculations = {pool.pk: calculation_of(pool) for pool in pools}
        return {**super().get_serializer_context(), "calculations": calculations}

    @extend_schema(request=s.WeightsSerializer, responses=s.ChangedSerializer)
    @action(detail=False, methods=["post"])
    def weights(self, request: Request) -> Response:
        """Set weights, all or none; they take effect with the next calculation."""
        pool, weights, reason = self._read_weights(request)
        changed = set_weights(pool=pool, weights=weights, actor=self.actor, reason=reason)
        return Response({"changed": changed})

    @extend_schema(request=s.WeightsSerializer, responses=s.PreviewSerializer)
    @action(detail=False, methods=["post"])
    def preview(self, request: Request) -> Response:
        """Preview the effect of these weights on ranks; nothing is changed."""
        pool, weights, _reason = self._read_weights(request)
        preview = preview_fair_share(pool, now=self.now(), weights=checked_weights(weights))
        return Response(s.PreviewSerializer(preview).data)

    def _read_weights(self, request: Request) -> tuple[Pool, dict[SubjectKey, Any], str]:
        data = self.validated(s.WeightsSerializer, request)
        pool = Pool.objects.filter(name=data["pool"]).first()
        if pool is None:
            raise InvalidInput({"pool": _("Pool “%(name)s” does not exist.") % {"name": data["pool"]}})
        weights = {
            SubjectKey(row["level"], row["subject"], row.get("parent", ROOT)): row["weight"]
            for row in data["weights"]
        }
        return pool, weights, data["reason"]


@extend_schema(tags=["fair share"])
class PolicyViewSet(ReadViewSet[Pool]):
    """The fair-share policy of each pool, by pool ID; a pool without a policy has the defaults."""

    queryset = Pool.objects.none()
    serializer_class = s.PolicySerializer
    filter_backends = []
    sorts = ("name",)
    access = {"list": VIEWER, "retrieve": VIEWER, "partial_update": ADMIN, "preview": ADMIN}

    def get_queryset(self) -> QuerySet[Pool]:
        return Pool.objects.select_related("fair_share_policy")

    @extend_schema(request=s.PolicySaveSerializer, responses=s.PolicySerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        changes = {"reason": "", **self.validated(s.PolicySaveSerializer, request, partial=True)}
        pool = self.get_object()
        save_policy(pool=pool, actor=self.actor, **changes)
        return Response(self.get_serializer(self.get_queryset().get(pk=pool.pk)).data)

    @extend_schema(request=s.PolicyChangeSerializer, responses=s.PreviewSerializer)
    @action(detail=True, methods=["post"])
    def preview(self, request: Request, pk: str) -> Response:
        """Preview the effect of these values on ranks; nothing is changed."""
        changes = self.validated(s.PolicyChangeSerializer, request, partial=True)
        pool = self.get_object()
        changed = changed_policy(policy_read_with(pool), changes)
        return Response(s.PreviewSerializer(preview_fair_share(pool, now=self.now(), policy=changed)).data)
