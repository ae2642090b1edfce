"""Serializers of decisions, explanations and dry runs."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from scheduling.api.serializers import ResourcesSerializer
from scheduling.models import Decision, DecisionOutcome
from scheduling.placement.framework.configuration import MAX_CHARACTERS
from scheduling.selectors.dry_run import MAX_NEW_SLOTS


class ReasonCountSerializer(serializers.Serializer[object]):
    """One reason and the slots it applies to."""

    code = serializers.CharField()
    plugin = serializers.CharField()
    text = serializers.CharField()
    slots = serializers.IntegerField(source="nodes")
    example_slots = serializers.ListField(child=serializers.CharField(), help_text="Names of a few slots.")


class StoredReasonSerializer(ReasonCountSerializer):
    slots = serializers.IntegerField(source="nodes", default=0)


class DecisionSerializer(serializers.ModelSerializer[Decision]):
    pool = serializers.CharField(source="pool.name", read_only=True)
    session = serializers.UUIDField(source="reservation.session_id", read_only=True, allow_null=True)
    slot_name = serializers.CharField(source="slot.name", read_only=True, default=None, allow_null=True)
    message = serializers.CharField(source="why.message", read_only=True, default="")
    main_reason = serializers.CharField(source="why.main_reason", read_only=True, default="")
    reasons = StoredReasonSerializer(source="why.reasons", many=True, read_only=True, default=list)
    scores = serializers.DictField(
        child=serializers.FloatField(), read_only=True, help_text="Score of the chosen slot by plugin."
    )

    class Meta:
        model = Decision
        fields = [
            "id", "at", "tick", "pool", "reservation", "session", "outcome", "position", "slot", "slot_name",
            "message", "main_reason", "reasons", "scores",
        ]  # fmt: skip


class NextStepSerializer(serializers.Serializer[object]):
    kind = serializers.CharField()
    text = serializers.CharField()
    slot = serializers.UUIDField(source="slot.pk", default=None, allow_null=True)
    slot_name = serializers.CharField(source="slot.name", default=None, allow_null=True)
    at = serializers.DateTimeField(allow_null=True)


class SlotReasonsSerializer(serializers.Serializer[object]):
    slot = serializers.UUIDField(source="id")
    name = serializers.CharField()
    reasons = serializers.ListField(child=serializers.CharField())


class ExplanationSerializer(serializers.Serializer[Any]):
    """Wait reasons of a session."""

    reservation = serializers.UUIDField(source="reservation.pk")
    pool = serializers.CharField(source="reservation.pool.name")
    outcome = serializers.ChoiceField(choices=DecisionOutcome.choices)
    message = serializers.CharField()
    decided = serializers.BooleanField(help_text="False while its first scheduling cycle is due.")
    position = serializers.IntegerField(
        allow_null=True, help_text="Null for an advance booking, and if no tick has evaluated it yet."
    )
    ahead = serializers.IntegerField(allow_null=True)
    waiting = serializers.IntegerField(help_text="Number of reservations in the pool's queue.")
    ordered_at = serializers.DateTimeField(allow_null=True)
    slots = serializers.IntegerField(help_text="READY slots evaluated.")
    reasons = ReasonCountSerializer(many=True)
    failures = ReasonCountSerializer(many=True, help_text="Plugins that failed and were ignored.")
    next_steps = NextStepSerializer(source="steps", many=True)
    by_slot = SlotReasonsSerializer(many=True, help_text="With `?slots=true`; the first 200.")


class RequirementSerializer(serializers.Serializer[object]):
    definition = serializers.UUIDField(required=False)
    session = serializers.UUIDField(required=False)
    resources = ResourcesSerializer()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("definition" in attrs) == ("session" in attrs):
            raise serializers.ValidationError(_("Specify a definition or a session."))
        return attrs


class DryRunSerializer(serializers.Serializer[object]):
    """Changes that a dry run assumes."""

    drain = serializers.ListField(
        child=serializers.UUIDField(), default=list, help_text="READY slots that would be drained."
    )
    add_slots = serializers.IntegerField(default=0, min_value=0, max_value=MAX_NEW_SLOTS)
    requirements = RequirementSerializer(many=True, default=list)
    scheduler = serializers.CharField(
        max_length=MAX_CHARACTERS,
        required=False,
        trim_whitespace=False,
        help_text="Another scheduler document for this run; default: the pool's own.",
    )


class PlacementChangeSerializer(serializers.Serializer[object]):
    reservation = serializers.UUIDField()
    position = serializers.IntegerField()
    before = serializers.CharField(help_text="Slot that it would be placed on now; empty if it would wait.")
    after = serializers.CharField()
    reason = serializers.CharField()


class DryRunResultSerializer(serializers.Serializer[object]):
    waiting = serializers.IntegerField()
    placed_before = serializers.IntegerField()
    placed_after = serializers.IntegerField()
    newly_placed = PlacementChangeSerializer(many=True)
    no_longer_placed = PlacementChangeSerializer(many=True)
    moved = PlacementChangeSerializer(many=True)
    evicted_before = serializers.IntegerField(help_text="Sessions that would be evicted now.")
    evicted_after = serializers.IntegerField()
    failures = ReasonCountSerializer(many=True)
