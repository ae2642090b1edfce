"""The summary of the fair-share page."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fairshare.arithmetic.policy import Policy
from fairshare.models import FairShare
from fairshare.pages.texts import sentence
from fairshare.selectors.shares import TreeRow
from fairshare.selectors.subject_names import SubjectName

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
DEFAULT = Policy()


def row(name, usage, rank, *, share=0.25, level="domain", uses_parent=False):
    values = FairShare(
        level=level, usage=usage, actual_usage=usage, norm_share=share, rank=rank, uses_parent=uses_parent
    )
    return TreeRow(values, SubjectName(name), 1, is_open=False, bar=0, mark=0)


def summary(*rows, policy=DEFAULT):
    return sentence(rows, policy, NOON, used=True)


def test_only_domains_of_the_first_rank_go_first():
    """Support is slightly above its share: not enough to be named, but research goes before it."""
    rows = [row("sales", 0.54, 3), row("support", 0.26, 2), row("research", 0.2, 1, share=0.5)]
    assert summary(*rows) == "**sales is above its share.** Within a priority, research goes first."


def test_a_domain_without_a_share_is_above_its_share_and_does_not_go_first():
    rows = [row("guests", 0.1, 2, share=0.0), row("sales", 0.9, 1, share=1.0)]
    assert summary(*rows) == "**guests is above its share.** Within a priority, sales goes first."


def test_domains_of_equal_rank_go_first_together():
    rows = [row("sales", 1.0, 3, share=0.5), row("support", 0, 1), row("research", 0, 1)]
    assert summary(*rows).endswith(" Within a priority, support and research go first.")


@pytest.mark.parametrize(("policy", "uses_parent"), [(Policy(order="classic"), False), (DEFAULT, True)])
def test_no_domain_goes_first_if_the_queue_does_not_compare_domains(policy, uses_parent):
    rows = [row("sales", 0.8, 2, share=0.5), row("support", 0.2, 1, share=0.5, uses_parent=uses_parent)]
    assert summary(*rows, policy=policy) == "**sales is above its share.**"


def test_no_domain_is_above_its_share():
    rows = [row("sales", 0.5, 1, share=0.5), row("support", 0.5, 1, share=0.5)]
    assert summary(*rows) == "**No domain is above its share.**"


def test_a_project_without_a_share_is_named_without_a_multiple():
    rows = [row("sales", 0.8, 2, share=0.5), row("trial", 0.8, 1, share=0.0, level="project")]
    assert summary(*rows).endswith(" Project trial contributes most and has no share.")
