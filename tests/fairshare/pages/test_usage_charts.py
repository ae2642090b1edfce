"""Usage by day and subject: top subjects with their own colours, and the total of the others."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from django.db import connection

from fairshare.arithmetic.units import UNITS_AN_HOUR
from fairshare.models import UsageBucket
from fairshare.models.levels import ROOT, Level
from fairshare.selectors.usage import Period, top_domains, usage_by_day, usage_by_subject
from lcm.web.charts.series import LEAST_NAMED
from tests.support.factories import make_person, make_project

TODAY = date(2026, 5, 20)
DAYS = [TODAY - timedelta(days=age) for age in (2, 1, 0)]
PEOPLE = LEAST_NAMED + 3
CPU = "cpu_cores"


@pytest.fixture
def used(db):
    """Seven people in separate domains; person n used n core-hours a day in each of two pools."""
    rows = []
    for number in range(1, PEOPLE + 1):
        person = make_person(f"person-{number}")
        project = make_project(f"domain-{number}", "labs")
        keys = {
            Level.USER: (person.pk, project.pk),
            Level.PROJECT: (project.pk, project.domain_id),
            Level.DOMAIN: (project.domain_id, ROOT),
        }
        rows += [
            UsageBucket(
                day=day,
                pool=pool,
                level=level,
                subject_id=subject,
                parent_id=parent,
                cpu_cores=number * UNITS_AN_HOUR,
                memory_gb=0,
                storage_gb=0,
                gpu=0,
            )
            for level, (subject, parent) in keys.items()
            for day in DAYS
            for pool in ("cml-eu", "cml-us")
        ]
    UsageBucket.objects.bulk_create(rows)


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize(("pool", "pools"), [("", 2), ("cml-us", 1)])
def test_top_subjects_have_a_series_each_and_the_others_share_one(used, level, pool, pools):
    period = Period(DAYS[0], TODAY, pool)
    found = usage_by_subject(period, level, CPU, 5)
    assert [round(each.amounts[CPU]) for each in found.subjects] == [pools * 3 * n for n in (7, 6, 5, 4, 3)]
    assert found.count == PEOPLE
    assert found.subjects[0].share == pytest.approx(7 / 28)
    chart = usage_by_day(period, level, CPU, found.top)
    assert [series.values for series in chart.series] == [[pools * n] * 3 for n in (4, 5, 6, 7, 1 + 2 + 3)]
    assert chart.series[-1].name == "others"


def test_the_same_subjects_keep_their_order_whatever_their_usage(used):
    period = Period(DAYS[0], TODAY)
    top = top_domains(period, CPU)[:3]
    names = [
        [each.name for each in usage_by_day(period, Level.DOMAIN, CPU, t).series] for t in (top, top[::-1])
    ]
    assert names == [["domain-5", "domain-6", "domain-7", "others"]] * 2


def test_top_domains_are_ordered_by_usage(used):
    period = Period(DAYS[0], TODAY, "cml-eu")
    top = top_domains(period, CPU)
    assert [amount // UNITS_AN_HOUR for _, amount in top] == [21, 18, 15, 12, 9, 6, 3]
    assert top_domains(Period(DAYS[0] - timedelta(days=9), DAYS[0] - timedelta(days=1)), CPU) == []


def test_days_without_usage_are_zero(used):
    period = Period(TODAY, TODAY + timedelta(days=1), "cml-eu")
    chart = usage_by_day(period, Level.DOMAIN, CPU, top_domains(period, CPU))
    assert [series.values for series in chart.series] == [[n, 0] for n in (4, 5, 6, 7, 1 + 2 + 3)]
    assert usage_by_day(period, Level.DOMAIN, CPU, []).series == []


def test_usage_of_domains_is_read_through_the_partial_index(used):
    plan = Period(DAYS[0], TODAY).buckets(Level.DOMAIN).order_by().explain()
    assert "bucket_of_groups" in plan or connection.vendor == "postgresql", plan
