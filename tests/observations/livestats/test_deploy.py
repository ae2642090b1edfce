"""Rules, scrape configuration and dashboard shipped with LCM."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client.core import REGISTRY

from lcm.controller.metrics import Metrics
from lcm.monitoring.metrics import FleetCollector
from observations.livestats import catalogue
from tests.support.prometheus import prometheus

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
RULES = DEPLOY / "prometheus" / "lcm.rules.yml"
NAME = re.compile(r"\b(?:[a-z]+:)?lcm_[a-z_]+(?::\w+)?")
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}


def promtool(*arguments):
    done = subprocess.run(
        [f"{prometheus()}/promtool", *map(str, arguments)],
        cwd=RULES.parent,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.prometheus
def test_promtool_accepts_the_rules():
    promtool("check", "rules", "--lint=all", "--lint-fatal", RULES)


@pytest.mark.prometheus
def test_promtool_tests_of_the_rules_pass():
    promtool("test", "rules", "lcm.rules.test.yml")


@pytest.mark.prometheus
def test_promtool_accepts_the_scrape_configuration():
    promtool("check", "config", "--syntax-only", "prometheus.yml")


def rules():
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def dashboard_queries():
    found = json.loads((DEPLOY / "grafana" / "lcm.json").read_text())
    panels = [target["expr"] for panel in found["panels"] for target in panel.get("targets", ())]
    return [*panels, *(each["definition"] for each in found["templating"]["list"] if "definition" in each)]


@pytest.fixture
def exported(session):
    """Return every name that LCM and its controllers export, and the names that the rules record."""
    families = [*REGISTRY.collect(), *FleetCollector().collect(), *Metrics().registry.collect()]
    names = {f"{each.name}{suffix}" for each in families for suffix in SUFFIXES.get(each.type, ("",))}
    return names | {rule["record"] for rule in rules() if "record" in rule}


def test_every_metric_in_rules_and_dashboard_exists(exported):
    queries = [rule["expr"] for rule in rules()] + dashboard_queries()
    named = {name for query in queries for name in NAME.findall(query)}
    assert len(named) > 20
    assert named - exported == set()


def test_queries_use_the_metrics_that_controllers_export(exported):
    assert {catalogue.UTILIZATION, catalogue.BYTES, catalogue.OBSERVED_AT} <= exported


def test_every_alert_is_tested_and_has_instructions():
    alerts = [rule for rule in rules() if "alert" in rule]
    tests = yaml.safe_load((RULES.parent / "lcm.rules.test.yml").read_text())["tests"]
    fired = {
        test["alertname"]
        for group in tests
        for test in group.get("alert_rule_test", ())
        if test["exp_alerts"]
    }
    assert {rule["alert"] for rule in alerts} == fired
    assert all(set(rule["annotations"]) == {"summary", "description"} for rule in alerts)


def test_panels_do_not_overlap():
    taken = set()
    for panel in json.loads((DEPLOY / "grafana" / "lcm.json").read_text())["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
