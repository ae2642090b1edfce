"""Models, serializers, forms and lists have every resource of the table."""

import pytest
from django import forms
from django.apps import apps
from rest_framework.serializers import Serializer

from fairshare.api.serializers import ExactSecondsSerializer, HoursSerializer
from fairshare.arithmetic.policy import DEFAULT_RESOURCE_WEIGHTS
from fairshare.models import Allocation, FairShare, UsageBucket, UsageRecord
from fairshare.models.shares import RESULT_FIELDS
from fairshare.pages.policies import PolicyForm
from lcm.api.amounts import NewRequirementsSerializer, RequirementsSerializer
from lcm.api.serializers import KernelSerializer
from lcm.domain.resources import RESOURCE_NAMES, RESOURCES, Amounts
from lcm.models import DefinitionRevision, Kernel
from lcm.models.resources import ResourceColumns
from lcm.pages.definition_import import ReviewForm
from lcm.pages.definitions import ReviseForm
from scheduling.api.serializers import (
    PoolChangeSerializer,
    PoolRequestSerializer,
    PoolSerializer,
    ResourcesSerializer,
    SlotSerializer,
)
from scheduling.models import Pool, Reservation, ReservationPart, Slot
from scheduling.pages.dry_run import DryRunForm
from scheduling.pages.pool_forms import NewPoolForm, PoolForm
from scheduling.placement.framework.amounts import amounts_of
from scheduling.placement.framework.nodes import LEASES, PORTS
from scheduling.placement.plugins.fill_level import FillLevelPlugin

AMOUNTS = (DefinitionRevision, Kernel, Pool, Slot, Reservation, ReservationPart)
USAGE = (Allocation, UsageRecord, UsageBucket)
SERIALIZERS = (
    ExactSecondsSerializer, HoursSerializer, KernelSerializer, NewRequirementsSerializer,
    PoolChangeSerializer, PoolRequestSerializer, PoolSerializer, RequirementsSerializer,
    ResourcesSerializer, SlotSerializer,
)  # fmt: skip
FORMS = (PolicyForm, PoolForm, NewPoolForm, ReviewForm, ReviseForm)


@pytest.mark.parametrize("model", [*AMOUNTS, *USAGE])
def test_models_of_amounts_have_a_column_for_each_resource(model):
    assert set(RESOURCE_NAMES) <= {field.name for field in model._meta.get_fields()}


def test_every_model_with_decimal_amounts_uses_the_shared_columns():
    found = {model for model in apps.get_models() if issubclass(model, ResourceColumns)}
    assert found == set(AMOUNTS)
    for model in AMOUNTS:
        for resource in RESOURCES:
            column = model._meta.get_field(resource.name)
            assert (column.max_digits, column.decimal_places) == (resource.max_digits, 2)


def test_shares_have_hours_of_each_resource():
    names = {f"{resource.short}_hours" for resource in RESOURCES}
    assert names <= {field.name for field in FairShare._meta.get_fields()}
    assert names <= set(RESULT_FIELDS)


@pytest.mark.parametrize("serializer", SERIALIZERS)
def test_serializers_of_amounts_have_a_field_for_each_resource(serializer: type[Serializer]):
    assert set(RESOURCE_NAMES) <= set(serializer().fields)


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_amounts_have_a_field_for_each_resource(form: type[forms.Form]):
    assert set(RESOURCE_NAMES) <= set(form().fields)


@pytest.mark.django_db
def test_a_dry_run_has_a_field_for_each_resource():
    assert [field.name for field in DryRunForm(Pool(name="p")).amounts()] == list(RESOURCE_NAMES)


def test_a_plain_model_row_gives_its_amounts():
    pool = Pool(cpu_cores=8)
    assert pool.amounts == Amounts.read({name: getattr(pool, name) for name in RESOURCE_NAMES})
    assert pool.amounts["cpu_cores"] == 8


def test_the_scheduler_counts_every_resource():
    assert amounts_of(dict.fromkeys(RESOURCE_NAMES, 1)) == (100,) * len(RESOURCES)
    assert (len(RESOURCES), len(RESOURCES) + 1) == (LEASES, PORTS)
    assert set(RESOURCE_NAMES) <= set(FillLevelPlugin.__dataclass_fields__)


def test_usage_of_every_resource_has_a_weight():
    assert tuple(DEFAULT_RESOURCE_WEIGHTS) == RESOURCE_NAMES
