"""The kernels of a session share the requirements of its revision."""

from decimal import Decimal

import pytest
from django.db.models import Sum

from lcm.domain.actors import SYSTEM
from lcm.domain.resources import RESOURCE_NAMES
from lcm.services.definitions import revise_definition
from tests.support.factories import make_definition, make_session

MIXED = """
nodes:
  - {id: n0, label: outside, node_definition: external_connector}
  - {id: n1, label: switch, node_definition: unmanaged_switch}
  - {id: n2, label: fw, node_definition: asav, cpus: 3, cpu_limit: 50, ram: 2048, boot_disk_size: 8}
  - {id: n3, label: pc, node_definition: alpine, cpus: 1, ram: 512, boot_disk_size: 1,
     interfaces: [{id: i0, label: eth0}, {id: i1, label: eth1}]}
links: [{id: l0, n1: n3, i1: i0, n2: n3, i2: i1}]
"""
WEIGHTLESS = """
nodes:
  - {id: n0, label: a, node_definition: unmanaged_switch, interfaces: [{id: i0, label: port0}]}
  - {id: n1, label: b, node_definition: external_connector, interfaces: [{id: i0, label: port}]}
links: [{id: l0, n1: n0, i1: i0, n2: n1, i2: i0}]
"""


def amounts(session, resource):
    return {kernel.node_label: str(getattr(kernel, resource)) for kernel in session.kernels.all()}


def test_each_node_gets_its_part_of_the_requirements(session):
    assert amounts(session, "cpu_cores") == {"r1": "2.00", "r2": "1.00", "host": "1.00"}
    assert amounts(session, "memory_gb") == {"r1": "2.00", "r2": "1.00", "host": "0.50"}
    assert amounts(session, "storage_gb") == {"r1": "4.00", "r2": "2.00", "host": "1.00"}
    assert amounts(session, "gpu") == {"r1": "0.00", "r2": "0.00", "host": "0.00"}


def test_each_kernel_has_its_node_definition(session):
    kinds = {kernel.node_label: kernel.node_definition for kernel in session.kernels.all()}
    assert kinds == {"r1": "iosv", "r2": "iosv", "host": "alpine"}


def test_connectors_and_switches_get_no_resources(project, operator):
    session = make_session(make_definition(topology=MIXED), project, operator)
    assert amounts(session, "cpu_cores") == {"outside": "0.00", "switch": "0.00", "fw": "1.50", "pc": "1.00"}


def test_nodes_without_sizes_share_evenly(project, operator, now):
    definition = make_definition(topology=WEIGHTLESS, requirements={"cpu_cores": Decimal(1)})
    assert amounts(make_session(definition, project, operator), "cpu_cores") == {"a": "0.50", "b": "0.50"}


@pytest.mark.parametrize(
    ("cpu_cores", "memory_gb", "storage_gb", "gpu"),
    [("1.00", "1.00", "1.00", "1.00"), ("0.01", "0.02", "99999.99", "0"), ("7.77", "3.33", "10.01", "2.50")],
)
def test_amounts_sum_exactly_to_the_revision(cpu_cores, memory_gb, storage_gb, gpu, project, operator, now):
    requirements = dict(
        zip(RESOURCE_NAMES, map(Decimal, (cpu_cores, memory_gb, storage_gb, gpu)), strict=True)
    )
    definition = make_definition()
    revise_definition(
        definition=definition, requirements=requirements, based_on=1, reason="measured", actor=SYSTEM, now=now
    )
    session = make_session(definition, project, operator)
    assert session.kernels.aggregate(**{name: Sum(name) for name in RESOURCE_NAMES}) == requirements
