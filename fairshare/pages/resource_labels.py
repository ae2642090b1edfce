"""Labels and units of resources on pages."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

RESOURCE_LABELS = {
    "cpu_cores": _("CPU"),
    "memory_gb": _("Memory"),
    "storage_gb": _("Storage"),
    "gpu": _("GPU"),
}
HOUR_NAMES = {
    "cpu_cores": _("core-hours"),
    "memory_gb": _("GB-hours"),
    "storage_gb": _("GB-hours"),
    "gpu": _("GPU-hours"),
}
