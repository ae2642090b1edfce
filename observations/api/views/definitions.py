"""API of a definition's evidence: read, preview, apply, snooze."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api.schema import ErrorSerializer
from lcm.api.serializers import ReasonSerializer, RevisionSerializer
from lcm.api.views.base import UnpagedViewSet, command
from lcm.domain.access import ADMIN, VIEWER
from lcm.domain.errors import InvalidInput
from lcm.models import DefinitionRevision, LabletDefinition
from lcm.selectors.definitions import revision_numbered
from observations.api import evidence_json
from observations.api import serializers as s
from observations.arithmetic.measures import MEASURED, SOURCES
from observations.selectors.evidence import drivers_of, evidence_of, not_counted_sessions, outliers_of
from observations.selectors.nodes import node_aggregates
from observations.selectors.port_review import port_review_of
from observations.services.port_template_revision import apply_ports
from observations.services.requirement_preview import preview_change
from observations.services.requirement_revision import apply_requirements
from observations.services.review_snooze import dismiss_review, snooze_review

AGGREGATE = OpenApiTypes.OBJECT
LONGEST_REVISION = 9  # digits


@extend_schema(tags=["observations"])
class DefinitionEvidenceViewSet(UnpagedViewSet[LabletDefinition]):
    """Resource usage of a definition's sessions, and changes to its requirements."""

    queryset = LabletDefinition.objects.none()
    serializer_class = s.PreviewRequestSerializer
    access = {
        "resource_observations": VIEWER,
        "preview": VIEWER,
        "apply": ADMIN,
        "port_review": VIEWER,
        "apply_ports": ADMIN,
        "snooze": ADMIN,
        "dismiss": ADMIN,
    }

    def get_queryset(self) -> QuerySet[LabletDefinition]:
        return LabletDefinition.objects.select_related("current_revision")

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "revision",
                {"type": "integer", "minimum": 0, "maximum": 10**LONGEST_REVISION - 1},
                description="Only sessions of this revision. Class, flags and waste cover all revisions.",
            ),
            OpenApiParameter(
                "by", str, enum=["node"], description="Include each node, over the newest sessions."
            ),
            *(
                OpenApiParameter(name, str, enum=SOURCES, description="The source of the figures.")
                for name in MEASURED
            ),
        ],
        responses=AGGREGATE,
    )
    @action(detail=True, url_path="resource-observations")
    def resource_observations(self, request: Request, pk: str) -> Response:
        """Return figures by resource, recommendation, outliers, and excluded sessions with reasons."""
        definition, query = self.get_object(), _query(request)
        number = query["revision"]
        revision = None if number is None else revision_numbered(definition, number)
        evidence = evidence_of(definition, now=self.now(), sources=query["sources"], revision=revision)
        aggregate: dict[str, Any] = evidence_json.evidence_json(evidence)
        aggregate["outliers"] = [evidence_json.outlier_json(each) for each in outliers_of(evidence)]
        aggregate["maximum_by_node"] = evidence_json.drivers_json(drivers_of(evidence))
        aggregate["not_counted"] = [
            {
                "session": str(row.session_id),
                "not_counted_reason": row.not_counted_reason or "other_epoch",
                "reason": row.excluded_reason,
            }
            for row in not_counted_sessions(definition, revision=revision)
        ]
        if query["by"] == "node":
            aggregate["nodes"] = [evidence_json.node_json(node) for node in node_aggregates(evidence)]
        return Response(aggregate)

    @command(s.PreviewRequestSerializer, AGGREGATE)
    def preview(self, definition: LabletDefinition, choices: dict[str, Any]) -> dict[str, Any]:
        """Preview a change without applying it; the token binds a later apply to this preview."""
        preview = preview_change(definition=definition, choices=s.choices_in(choices), now=self.now())
        return evidence_json.preview_json(preview)

    @extend_schema(responses={201: RevisionSerializer, 412: ErrorSerializer})
    @command(s.ApplySerializer, RevisionSerializer, status=201)
    def apply(self, definition: LabletDefinition, choices: dict[str, Any], **data: Any) -> DefinitionRevision:
        """Apply exactly the previewed change; 412 states what has changed since."""
        chosen = s.choices_in(choices)
        return apply_requirements(
            definition=definition, choices=chosen, **data, actor=self.actor, now=self.now()
        )

    @extend_schema(responses=s.PortReviewSerializer)
    @action(detail=True, url_path="port-review")
    def port_review(self, request: Request, pk: str) -> Response:
        """Compare the port template with the ports of the newest sessions and suggest changes."""
        return Response(s.PortReviewSerializer(port_review_of(self.get_object())).data)

    @command(s.ApplyPortsSerializer, RevisionSerializer, status=201, url_path="port-review/apply")
    def apply_ports(self, definition: LabletDefinition, **data: Any) -> DefinitionRevision:
        """Apply exactly this port template; 409 if another revision was applied since the review."""
        return apply_ports(definition=definition, **data, actor=self.actor, now=self.now())

    @command(s.SnoozeSerializer, AGGREGATE, url_path="review/snooze")
    def snooze(self, definition: LabletDefinition, **data: Any) -> dict[str, Any]:
        snooze_review(definition=definition, **data, actor=self.actor, now=self.now())
        return evidence_json.evidence_json(evidence_of(definition, now=self.now()))

    @command(ReasonSerializer, AGGREGATE, url_path="review/dismiss")
    def dismiss(self, definition: LabletDefinition, reason: str) -> dict[str, Any]:
        """Dismiss this recommendation until it has changed by 10 % or more."""
        dismiss_review(definition=definition, reason=reason, actor=self.actor, now=self.now())
        return evidence_json.evidence_json(evidence_of(definition, now=self.now()))


def _query(request: Request) -> dict[str, Any]:
    """Return the query parameters of the aggregate; reject invalid ones."""
    given = request.query_params
    unknown = set(given) - {"revision", "by", *MEASURED}
    wrong = dict.fromkeys(sorted(unknown), _("Unknown parameter."))
    sources = {name: given[name] for name in MEASURED if given.get(name)}
    allowed = _("Must be one of %(allowed)s.") % {"allowed": ", ".join(SOURCES)}
    wrong |= dict.fromkeys((name for name, each in sources.items() if each not in SOURCES), allowed)
    revision = given.get("revision", "")
    if "revision" in given and (not revision.isdecimal() or len(revision) > LONGEST_REVISION):
        wrong["revision"] = _("Must be the number of a revision.")
    if given.get("by", "") not in ("", "node"):
        wrong["by"] = _("Must be “node”.")
    if wrong:
        raise InvalidInput(wrong)
    return {"sources": sources, "revision": int(revision) if revision else None, "by": given.get("by", "")}
