"""Serializers with a field for each resource."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from rest_framework import serializers

from lcm.domain.resources import RESOURCES, Resource

LEAST_AMOUNT = Decimal("0.01")


def amount_field(resource: Resource, **options: Any) -> serializers.DecimalField:
    return serializers.DecimalField(max_digits=resource.max_digits, decimal_places=2, **options)


class AmountsSerializer(serializers.Serializer[object]):
    """An amount of each resource; missing ones are unchanged or unknown."""

    def amount(self, resource: Resource) -> serializers.Field[Any, Any, Any, Any]:
        return amount_field(resource, required=False)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {**super().get_fields(), **{each.name: self.amount(each) for each in RESOURCES}}


class RequirementsSerializer(AmountsSerializer):
    def amount(self, resource: Resource) -> serializers.Field[Any, Any, Any, Any]:
        return amount_field(resource, min_value=0, required=False)


class NewRequirementsSerializer(AmountsSerializer):
    """Requirements of a new definition."""

    def amount(self, resource: Resource) -> serializers.Field[Any, Any, Any, Any]:
        return amount_field(
            resource, min_value=LEAST_AMOUNT if resource.required else 0, required=resource.required
        )
