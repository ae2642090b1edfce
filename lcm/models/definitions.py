"""Lablet definitions and their revisions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from lcm.cml.node_sizes import DEFINITIONS_WITHOUT_VM
from lcm.cml.topology.port_templates import PortChanges, port_changes
from lcm.domain.resources import RESOURCES
from lcm.models.base import DatedModel, IdModel
from lcm.models.messages import translated
from lcm.models.people import User, slug_name
from lcm.models.resources import NOT_NEGATIVE, ResourceColumns

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

SOURCE_WORDS: dict[str, StrOrPromise] = {"used": _("used"), "allocated": _("allocated")}
KEEP = "keep"


class DefinitionStatus(models.TextChoices):
    DRAFT = "draft", _("Draft")
    ACTIVE = "active", _("Active")
    DEPRECATED = "deprecated", _("Deprecated")


class Placement(models.TextChoices):
    TOGETHER = "together", _("Together on one worker")
    SPREAD = "spread", _("Spread over workers")


class RevisionBasis(models.TextChoices):
    """How the requirements of a revision were chosen; `mixed` if resources have different bases."""

    IMPORTED = "imported", _("Imported")
    CUSTOM = "custom", _("Custom")
    MAX = "max", _("Max")
    AVG = "avg", _("Avg")
    P95 = "p95", "p95"
    LATEST = "latest", _("Latest")
    RECOMMENDED = "recommended", _("Recommended")
    MIXED = "mixed", _("Mixed")
    REVERT = "revert", _("Revert")


class RevisionOutcome(models.TextChoices):
    """Verdict of a revision's sessions; `superseded` if another revision replaced it first."""

    WATCHING = "watching", _("Watching")
    VERIFIED = "verified", _("Verified")
    REGRESSED = "regressed", _("Regressed")
    SUPERSEDED = "superseded", _("Superseded")


def label_map(value: object) -> None:
    """Validate labels: at most 20 names and values of at most 63 characters."""
    if (
        not isinstance(value, dict)
        or len(value) > 20
        or not all(
            isinstance(text, str) and 0 < len(name) <= 63 and len(text) <= 63 for name, text in value.items()
        )
    ):
        raise ValidationError(
            gettext("Labels must map names to texts: at most 20 labels, at most 63 characters each.")
        )


def _basis_words(chosen: Mapping[str, str | None]) -> tuple[str, StrOrPromise]:
    basis, source = str(chosen["basis"]), chosen["source"] or ""
    label = str(dict(RevisionBasis.choices).get(basis, basis))
    return label.lower(), SOURCE_WORDS.get(source, source)


class LabletDefinition(DatedModel):
    """A lab that people can request. Its current revision holds its requirements."""

    name = models.CharField(max_length=63, validators=[slug_name])
    version = models.CharField(max_length=20, default="1.0")
    description = models.CharField(max_length=500, blank=True)
    status = models.CharField(max_length=10, choices=DefinitionStatus, default=DefinitionStatus.DRAFT)
    system = models.CharField(max_length=30, default="cml", help_text="The kind of worker the lab runs on.")
    pool = models.CharField(
        max_length=63, blank=True, help_text="The pool of its sessions, unless a session requests another."
    )
    placement = models.CharField(max_length=8, choices=Placement, default=Placement.TOGETHER)
    preemptible = models.BooleanField(default=False)
    awaits_arrival = models.BooleanField(
        default=False, help_text="Sessions start to run when their user arrives, not when the lab is ready."
    )
    slot_labels = models.JSONField(
        default=dict,
        blank=True,
        validators=[label_map],
        help_text='Labels a slot must have to run the lab, such as {"gpu": "a10"}.',
    )
    max_duration = models.DurationField(default=timedelta(hours=8))

    topology_yaml = models.TextField(blank=True, help_text="Empty for a definition without a topology.")
    topology_hash = models.CharField(
        max_length=64,
        db_index=True,
        help_text="Epoch of the topology; observations of one epoch are comparable.",
    )
    nodes = models.JSONField(default=list, blank=True)
    links = models.JSONField(default=list, blank=True)
    node_count = models.PositiveIntegerField()

    current_revision = models.ForeignKey(
        "DefinitionRevision", on_delete=models.PROTECT, related_name="+", null=True, editable=False
    )
    needs_review = models.BooleanField(default=False)
    review_reasons = models.JSONField(default=list, blank=True)
    review_since = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name", "version", "id"]
        verbose_name = _("definition")
        constraints = [
            models.UniqueConstraint(
                fields=["name", "version"],
                name="definition_name_version",
                violation_error_message=_("A definition with this name and version already exists."),
            ),
            models.CheckConstraint(
                name="definition_status_known", condition=Q(status__in=DefinitionStatus.values)
            ),
            models.CheckConstraint(
                name="definition_placement_known", condition=Q(placement__in=Placement.values)
            ),
            models.CheckConstraint(name="definition_has_nodes", condition=Q(node_count__gte=1)),
            models.CheckConstraint(
                name="definition_max_duration_positive", condition=Q(max_duration__gt=timedelta(0))
            ),
        ]
        indexes = [
            models.Index(fields=["created_at", "id"], name="definition_newest"),
            # Few rows match, and every request for the overview reads them.
            models.Index(
                fields=["review_since"], condition=Q(needs_review=True), name="definition_to_review"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"

    @property
    def revision(self) -> DefinitionRevision:
        """Return the current revision, which every saved definition has."""
        assert self.current_revision is not None
        return self.current_revision

    @property
    def node_definitions_used(self) -> list[str]:
        """Return the node definitions of the topology, most frequent first, without connectors."""
        kinds = [
            node["node_definition"]
            for node in self.nodes
            if node["node_definition"] not in DEFINITIONS_WITHOUT_VM
        ]
        return sorted(set(kinds), key=lambda kind: (-kinds.count(kind), kind))


class DefinitionRevision(ResourceColumns, IdModel):
    """Requirements of a definition from a point in time on. Immutable except for its outcome."""

    definition = models.ForeignKey(LabletDefinition, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    port_template = models.JSONField(default=list, blank=True)
    before = models.JSONField(
        null=True, blank=True, help_text="Requirements and port template of the previous revision."
    )
    basis = models.CharField(max_length=11, choices=RevisionBasis)
    bases = models.JSONField(
        default=dict,
        blank=True,
        help_text="Resource → its basis (or keep) and source (used, allocated or none).",
    )
    aggregate = models.JSONField(null=True, blank=True, help_text="The evidence for the requirements.")
    reason = models.CharField(max_length=500, blank=True)
    actor = models.CharField(max_length=150)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField()
    reverts = models.ForeignKey("self", on_delete=models.RESTRICT, null=True, blank=True, related_name="+")
    outcome = models.CharField(
        max_length=10,
        choices=RevisionOutcome,
        default=RevisionOutcome.WATCHING,
        null=True,
        blank=True,
        help_text="None for an import: it changed nothing that sessions could verify.",
    )
    outcome_at = models.DateTimeField(null=True, blank=True, help_text="When its outcome was decided.")

    class Meta:
        ordering = ["-number"]
        verbose_name = _("revision")
        constraints = [
            models.UniqueConstraint(fields=["definition", "number"], name="revision_number_in_definition"),
            models.CheckConstraint(name="revision_amounts_in_range", condition=NOT_NEGATIVE),
            models.CheckConstraint(name="revision_number_positive", condition=Q(number__gte=1)),
            models.CheckConstraint(name="revision_basis_known", condition=Q(basis__in=RevisionBasis.values)),
            models.CheckConstraint(
                name="revision_outcome_known", condition=Q(outcome__in=RevisionOutcome.values)
            ),
            models.CheckConstraint(
                name="revision_reverts_an_older_one", condition=Q(reverts=None) | ~Q(reverts=F("id"))
            ),
        ]

    def __str__(self) -> str:
        return f"revision {self.number}"

    @property
    def outcome_label(self) -> str:
        return self.get_outcome_display() or gettext("None")

    @property
    def mixed_bases(self) -> str:
        """Return the basis of each resource of a mixed revision: `CPU p95 used, memory custom`."""
        if self.basis != RevisionBasis.MIXED:
            return ""
        chosen = [(each.word, self.bases[each.name]) for each in RESOURCES if each.name in self.bases]
        return ", ".join(
            " ".join(str(word) for word in (translated(name), *_basis_words(each)) if word)
            for name, each in chosen
            if each["basis"] != KEEP
        )

    @property
    def requirements(self) -> dict[str, Decimal]:
        return self.amounts.as_dict()

    @property
    def port_changes(self) -> PortChanges:
        """Return the ports that differ from the previous revision; none for an import."""
        return (
            port_changes(self.before["port_template"], self.port_template) if self.before else PortChanges()
        )

    @property
    def snapshot(self) -> dict[str, Any]:
        """Return requirements and ports as JSON; the next revision stores it as `before`."""
        return {
            "requirements": {name: str(value) for name, value in self.requirements.items()},
            "port_template": self.port_template,
        }
