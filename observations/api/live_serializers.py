"""Request and response bodies of the live statistics API."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from observations.livestats.states import LiveState
from observations.selectors.live import RANGES, WHOLE_SESSION

MOST_KERNELS = 5_000
STATES = [(state.value, state.value) for state in LiveState]


class MetricValueSerializer(serializers.Serializer[object]):
    """`current` is the value to show: a gauge's value, a counter's growth over the window, or its rate."""

    current = serializers.FloatField(allow_null=True)
    capacity = serializers.FloatField(allow_null=True)
    pct = serializers.FloatField(allow_null=True)
    unit = serializers.CharField()
    rate = serializers.FloatField(allow_null=True, help_text="Growth per second; counters only.")
    max = serializers.FloatField(allow_null=True, help_text="Maximum over the window.")
    avg = serializers.FloatField(allow_null=True, help_text="Mean over the window.")
    observed_at = serializers.DateTimeField(allow_null=True, help_text="Time of reading from the lab.")


class KernelLiveSerializer(serializers.Serializer[object]):
    state = serializers.ChoiceField(choices=STATES)
    observed_at = serializers.DateTimeField(allow_null=True)
    metrics = serializers.DictField(child=MetricValueSerializer(), help_text="By metric name.")


class LiveSerializer(serializers.Serializer[Any]):
    """Live statistics by kernel, with an entry for every requested kernel."""

    state = serializers.ChoiceField(choices=STATES)
    requested_at = serializers.DateTimeField()
    missing = serializers.ListField(child=serializers.CharField(), help_text="Kinds of query that failed.")
    problems = serializers.ListField(child=serializers.CharField(), help_text="Reasons of the failures.")
    warnings = serializers.ListField(child=serializers.CharField(), help_text="Warnings from Prometheus.")
    dropped = serializers.IntegerField(help_text="Number of unusable series.")
    kernels = serializers.DictField(child=KernelLiveSerializer())


class SessionLiveSerializer(LiveSerializer):
    nodes = serializers.DictField(child=serializers.CharField(), help_text="Node labels by kernel.")
    totals = serializers.DictField(child=MetricValueSerializer(), help_text="Total of all nodes.")


class BatchLiveSerializer(LiveSerializer):
    sessions = serializers.DictField(
        child=serializers.ListField(child=serializers.UUIDField()),
        help_text="The kernels of the requested sessions.",
    )


def _ids() -> serializers.ListField:
    return serializers.ListField(
        child=serializers.UUIDField(),
        allow_empty=False,
        min_length=1,
        max_length=MOST_KERNELS,
        required=False,
    )


class BatchSerializer(serializers.Serializer[object]):
    """IDs of kernels, sessions or both: at least one ID and at most 5,000 kernels."""

    kernels = _ids()
    sessions = _ids()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError(_("Send the ID of at least one kernel or session."))
        return attrs


class HistoryRangeSerializer(serializers.Serializer[object]):
    range = serializers.ChoiceField(
        choices=[*RANGES, WHOLE_SESSION],
        default="1h",
        help_text="The last hour, the last day, or the whole session.",
    )


class HistorySerializer(serializers.Serializer[object]):
    """Values over time, at most 240 points per series."""

    state = serializers.ChoiceField(choices=STATES)
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    step = serializers.FloatField(help_text="Seconds between points.")
    problems = serializers.ListField(child=serializers.CharField())
    kernels = serializers.DictField(
        child=serializers.DictField(
            child=serializers.ListField(child=serializers.ListField(child=serializers.FloatField()))
        ),
        help_text="By kernel and metric: pairs of a time, in seconds since 1970, and a value.",
    )
