"""The body of an observation in the OpenAPI document, from the model that validates it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.plumbing import ResolvedComponent
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema
from rest_framework import serializers

from lcm.cml.observation.model import observation_adapter


class ObservationSerializer(serializers.Serializer[object]):
    """An observation of a running lab. Unknown values are null or omitted, never 0."""


def _without(schema: JsonSchemaValue, *names: str) -> JsonSchemaValue:
    return {name: value for name, value in schema.items() if name not in names}


class _OpenApi30(GenerateJsonSchema):
    """JSON schema in the dialect of OpenAPI 3.0, which has `nullable` and no titles or null types."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return {**self.generate_inner(schema["schema"]), "nullable": True}

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        return _without(super().dict_schema(schema), "propertyNames")

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return _without(super().dataclass_schema(schema), "title", "description")

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


class ObservationBody(OpenApiSerializerExtension):
    """Adds the model and the models of its parts to the components of the document."""

    target_class = ObservationSerializer

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        schema = observation_adapter().json_schema(
            ref_template="#/components/schemas/{model}Request", schema_generator=_OpenApi30
        )
        for name, part in schema.pop("$defs").items():
            component = ResolvedComponent(f"{name}Request", ResolvedComponent.SCHEMA, part, name)
            auto_schema.registry.register_on_missing(component)
        return {**schema, "description": self.target.__doc__}
