"""Request and response bodies of the observations API; the rules are in the services."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from lcm.api.serializers import NewPortSerializer, PortSerializer, ReasonSerializer
from lcm.cml.topology.port_comparison import ADD, REMOVE
from observations.arithmetic.measures import MEASURED, SOURCES
from observations.arithmetic.recommendation import BASES
from observations.models import DriftReview, ObservationRequest, RequestState, ReviewState
from observations.models.drift import KIND_CHOICES
from observations.services.requirement_preview import CUSTOM, KEEP, RequirementChoice


class DriftItemSerializer(serializers.Serializer[object]):
    kind = serializers.ChoiceField(choices=KIND_CHOICES)
    name = serializers.CharField()
    allocated = serializers.IntegerField(allow_null=True)
    observed = serializers.IntegerField(allow_null=True)
    other = serializers.CharField(help_text="The other session that uses the port.")


class RecordedSerializer(serializers.Serializer[Any]):
    session_id = serializers.UUIDField()
    observation_count = serializers.IntegerField()
    port_drift_detected = serializers.BooleanField(
        help_text="At least one observation showed ports that differ from the plan."
    )
    port_drift_open = serializers.BooleanField(
        help_text="The newest observation of the ports differs from the plan, and the session has not ended."
    )
    drift = DriftItemSerializer(many=True)
    observed_at = serializers.DateTimeField(allow_null=True)


class SessionEvidenceSerializer(RecordedSerializer):
    """Observed figures of one session."""

    observed_resources = serializers.DictField(allow_null=True, help_text="The newest observation in full.")
    observed_ports = serializers.DictField(child=serializers.IntegerField(), allow_null=True)
    peak = serializers.DictField(help_text="Over all observations: cores and GB.")
    counted = serializers.BooleanField(help_text="Whether it counts in the definition's aggregate.")
    not_counted_reason = serializers.CharField(allow_blank=True)


class RequestedObservationSerializer(serializers.ModelSerializer[ObservationRequest]):
    state = serializers.ChoiceField(choices=RequestState.choices)

    class Meta:
        model = ObservationRequest
        fields = ["id", "session", "state", "actor", "requested_at", "expires_at", "completed_at"]


class ChoiceSerializer(serializers.Serializer[object]):
    basis = serializers.ChoiceField(choices=[KEEP, *BASES, CUSTOM])
    value = serializers.DecimalField(
        max_digits=10, decimal_places=2, required=False, allow_null=True, help_text="For the basis `custom`."
    )
    source: Any = serializers.ChoiceField(
        choices=SOURCES, required=False, help_text="Empty: the default source."
    )


class ChoicesSerializer(serializers.Serializer[object]):
    """The basis of each resource; omitted resources keep their value."""

    def get_fields(self) -> dict[str, Any]:
        return {name: ChoiceSerializer(required=False) for name in MEASURED}


class PreviewRequestSerializer(serializers.Serializer[Any]):
    choices = ChoicesSerializer()


class ApplySerializer(PreviewRequestSerializer):
    token = serializers.CharField(max_length=4_000, help_text="Token of the preview.")
    reason = serializers.CharField(max_length=500)


def choices_in(choices: dict[str, Any]) -> dict[str, RequirementChoice]:
    """Return the validated choices by resource."""
    return {
        name: RequirementChoice(each["basis"], each.get("value"), each.get("source", ""))
        for name in MEASURED
        if (each := choices.get(name))
    }


class PortLineSerializer(serializers.Serializer[object]):
    """A port of the template or of observed labs."""

    name = serializers.CharField()
    port = PortSerializer(allow_null=True, help_text="Null if no observed tag describes it.")
    in_template = serializers.BooleanField()
    observed = serializers.IntegerField(help_text="Sessions whose lab has the port.")
    action = serializers.ChoiceField(
        choices=[ADD, REMOVE, ""], help_text="The possible change; empty if there is none."
    )
    suggested = serializers.BooleanField(help_text="Whether most sessions support the change.")
    problem = serializers.CharField(help_text="Why an observed port cannot be added.")


class PortReviewSerializer(serializers.Serializer[object]):
    based_on = serializers.IntegerField(source="revision.number", help_text="The current revision.")
    sessions = serializers.IntegerField(help_text="The newest sessions that were compared, at most 20.")
    ports = PortLineSerializer(source="lines", many=True)
    suggested_template = PortSerializer(many=True, help_text="The template with all suggested changes.")


class ApplyPortsSerializer(ReasonSerializer):
    port_template = NewPortSerializer(many=True, help_text="All ports of new sessions.")
    based_on = serializers.IntegerField(min_value=1, help_text="The revision that was reviewed.")


class SnoozeSerializer(ReasonSerializer):
    until = serializers.DateTimeField()


class AcknowledgeSerializer(ReasonSerializer):
    until = serializers.DateTimeField(required=False, allow_null=True, help_text="30 days from now.")


class DriftReviewSerializer(serializers.ModelSerializer[DriftReview]):
    state = serializers.SerializerMethodField()

    class Meta:
        model = DriftReview
        fields = [
            "id", "definition", "kind", "name", "fingerprint", "state", "acknowledged_until", "reason",
            "actor", "first_seen", "last_seen", "sessions", "last_session", "example",
        ]  # fmt: skip

    def get_state(self, review: DriftReview) -> str:
        """Return the current state; an expired acknowledgement counts as open."""
        from django.utils import timezone

        return ReviewState(review.state_at(timezone.now())).value
