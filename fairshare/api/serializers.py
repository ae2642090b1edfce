"""Request and response bodies of the fair-share API; the rules are in the services."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from fairshare.arithmetic.policy import (
    GREATEST_DAMPENING,
    GREATEST_WEIGHT,
    LEAST_HALF_LIFE_DAYS,
    LEAST_WEIGHT,
    MAX_LOOKBACK_DAYS,
    PARENT,
)
from fairshare.arithmetic.units import exact_seconds
from fairshare.models import (
    FairShare,
    FairShareCalculation,
    FairShareOrder,
    Normalisation,
    UsageBucket,
)
from fairshare.models.levels import Level
from fairshare.selectors.trees import policy_read_with
from fairshare.services.policies import warnings_for
from lcm.api.amounts import AmountsSerializer
from lcm.domain.resources import RESOURCE_NAMES, RESOURCES, Resource
from scheduling.models import Pool


class HoursSerializer(AmountsSerializer):
    """Core-hours, GB-hours and GPU-hours."""

    def amount(self, resource: Resource) -> serializers.FloatField:
        return serializers.FloatField()


class ExactSecondsSerializer(AmountsSerializer):
    """Core-seconds, GB-seconds and GPU-seconds without rounding."""

    def amount(self, resource: Resource) -> serializers.CharField:
        return serializers.CharField()


class UsageBucketSerializer(serializers.ModelSerializer[UsageBucket]):
    subject = serializers.UUIDField(source="subject_id")
    parent = serializers.UUIDField(  # type: ignore[assignment]
        source="parent_id", help_text="The project of a person, the domain of a project."
    )
    name = serializers.CharField()
    parent_name = serializers.CharField()
    hours = HoursSerializer(read_only=True)
    exact_seconds = serializers.SerializerMethodField(help_text="Amount × seconds, without rounding.")

    class Meta:
        model = UsageBucket
        fields = [
            "id", "day", "pool", "level", "subject", "parent", "name", "parent_name", "hours",
            "exact_seconds",
        ]  # fmt: skip

    @extend_schema_field(ExactSecondsSerializer)
    def get_exact_seconds(self, row: UsageBucket) -> dict[str, str]:
        return {name: str(exact_seconds(getattr(row, name))) for name in RESOURCE_NAMES}


class CalculationSerializer(serializers.ModelSerializer[FairShareCalculation]):
    policy = serializers.DictField()

    class Meta:
        model = FairShareCalculation
        fields = ["at", "first_day", "last_day", "policy", "duration_ms", "subject_count"]


@extend_schema_field({"type": "number", "minimum": LEAST_HALF_LIFE_DAYS, "maximum": GREATEST_WEIGHT})
class HalfLifeField(serializers.FloatField):
    """Days, at least one hour; `fairshare.arithmetic.policy` rejects other values."""


@extend_schema_field({"type": "number", "minimum": LEAST_WEIGHT, "maximum": GREATEST_WEIGHT})
class PositiveField(serializers.FloatField):
    """A number greater than 0; `fairshare.arithmetic.policy` rejects other values."""


@extend_schema_field(
    {
        "oneOf": [
            {"type": "number", "minimum": 0, "maximum": GREATEST_WEIGHT},
            {"type": "string", "enum": [PARENT]},
        ]
    }
)
class WeightField(serializers.Field[Any, Any, Any, Any]):
    """A weight: a number, 0 or “parent”; `fairshare.arithmetic.policy` rejects other values."""

    def to_internal_value(self, data: object) -> Any:
        return data

    def to_representation(self, value: object) -> Any:
        return value


class FairShareSerializer(serializers.ModelSerializer[FairShare]):
    pool = serializers.CharField(source="pool.name")
    subject = serializers.UUIDField(source="subject_id")
    parent = serializers.UUIDField(source="parent_id")  # type: ignore[assignment]
    name = serializers.CharField()
    parent_name = serializers.CharField()
    weight = WeightField(source="own_weight", allow_null=True, read_only=True)
    weight_source = serializers.ChoiceField(choices=["own", "policy"])
    level_fair_share = serializers.FloatField(
        allow_null=True, help_text="Null: no usage, or a person with “parent”; first of the level."
    )
    decayed_hours = serializers.SerializerMethodField()
    calculated = serializers.SerializerMethodField(help_text="Time, days and policy of the calculation.")

    class Meta:
        model = FairShare
        fields = [
            "id", "pool", "level", "subject", "parent", "name", "parent_name", "weight", "weight_source",
            "effective_weight", "share", "norm_share", "decayed_hours", "usage", "actual_usage",
            "effective_usage", "factor", "level_fair_share", "domain_level_factor", "project_level_factor",
            "user_level_factor", "rank", "calculated",
        ]  # fmt: skip

    @extend_schema_field(HoursSerializer)
    def get_decayed_hours(self, row: FairShare) -> dict[str, float]:
        return {resource.name: getattr(row, f"{resource.short}_hours") for resource in RESOURCES}

    @extend_schema_field(CalculationSerializer(allow_null=True))
    def get_calculated(self, row: FairShare) -> Any:
        calculation = self.context.get("calculations", {}).get(row.pool_id)
        return CalculationSerializer(calculation).data if calculation else None


@extend_schema_field(
    {
        "type": "object",
        "properties": {
            name: {"type": "number", "minimum": 0, "maximum": GREATEST_WEIGHT} for name in RESOURCE_NAMES
        },
        "additionalProperties": False,
    }
)
class ResourceWeightsField(serializers.DictField):
    """A weight for each resource; `fairshare.arithmetic.policy` rejects other names and numbers."""


class WeightSerializer(serializers.Serializer[object]):
    level = serializers.ChoiceField(choices=Level.choices)
    subject = serializers.UUIDField()
    parent = serializers.UUIDField(required=False, help_text="Omit for a domain.")  # type: ignore[assignment]
    weight = WeightField(
        allow_null=True,
        help_text="Null: the policy's default. 0: no priority. “parent”: no share of its own.",
    )


class WeightsSerializer(serializers.Serializer[object]):
    pool = serializers.CharField(max_length=63)
    weights = WeightSerializer(many=True)
    reason = serializers.CharField(max_length=500, allow_blank=True, default="")


class ChangedSerializer(serializers.Serializer[object]):
    changed = serializers.IntegerField()


class RankChangeSerializer(serializers.Serializer[object]):
    name = serializers.CharField()
    parent_name = serializers.CharField()
    rank_before = serializers.IntegerField()
    rank_after = serializers.IntegerField()
    factor_before = serializers.FloatField()
    factor_after = serializers.FloatField()


class PreviewSerializer(serializers.Serializer[object]):
    text = serializers.CharField()
    up = RankChangeSerializer(many=True)
    down = RankChangeSerializer(many=True)
    up_count = serializers.IntegerField()
    down_count = serializers.IntegerField()
    same_count = serializers.IntegerField()
    waiting_moved = serializers.IntegerField()
    waiting = serializers.IntegerField()


class PolicyChangeSerializer(serializers.Serializer[object]):
    """Changes of a policy; the policy itself validates their ranges."""

    half_life_days = HalfLifeField(required=False)
    lookback_days = serializers.IntegerField(required=False, min_value=1, max_value=MAX_LOOKBACK_DAYS)
    normalisation = serializers.ChoiceField(choices=Normalisation.choices, required=False)
    order = serializers.ChoiceField(choices=FairShareOrder.choices, required=False)
    resource_weights = ResourceWeightsField(child=serializers.FloatField(), required=False)
    default_weight = PositiveField(required=False)
    dampening_factor = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=GREATEST_DAMPENING,
        help_text="A higher value lowers the factor less for usage above the share.",
    )


class PolicySaveSerializer(PolicyChangeSerializer):
    reason = serializers.CharField(max_length=500, help_text="Required; recorded in the change log.")


class PolicySerializer(serializers.Serializer[Any]):
    pool = serializers.UUIDField(source="pool.pk")
    pool_name = serializers.CharField(source="pool.name")
    is_custom = serializers.BooleanField(help_text="False: the pool uses the default policy.")
    half_life_days = serializers.FloatField(source="policy.half_life_days")
    lookback_days = serializers.IntegerField(source="policy.lookback_days")
    normalisation = serializers.ChoiceField(choices=Normalisation.choices, source="policy.normalisation")
    order = serializers.ChoiceField(choices=FairShareOrder.choices, source="policy.order")
    resource_weights = serializers.DictField(child=serializers.FloatField(), source="weights")
    resource_weight_sources = serializers.DictField(child=serializers.CharField(), source="sources")
    default_weight = serializers.FloatField(source="policy.default_weight")
    dampening_factor = serializers.IntegerField(source="policy.dampening_factor")
    warnings = serializers.ListField(child=serializers.CharField())

    def to_representation(self, pool: Pool) -> Any:
        policy = policy_read_with(pool)
        shown = {
            "pool": pool,
            "policy": policy,
            "is_custom": hasattr(pool, "fair_share_policy"),
            "weights": {name: weight for name, (weight, _) in policy.weight_sources.items()},
            "sources": {name: source for name, (_, source) in policy.weight_sources.items()},
            "warnings": warnings_for(pool),
        }
        return super().to_representation(shown)
