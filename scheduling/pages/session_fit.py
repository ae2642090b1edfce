"""Whether a session fits now, as a part of the form that requests it."""

from __future__ import annotations

from datetime import datetime

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from lcm.domain.errors import InvalidInput
from lcm.models import LabletSession
from lcm.services.kernels import build_kernels
from scheduling.placement.framework.configuration import InvalidConfiguration
from scheduling.selectors.session_fit import session_fit
from scheduling.services.reservations import draft_reservation


def fit_preview(session: LabletSession, now: datetime) -> SafeString:
    """Return whether the unsaved session fits now and where, or why no slot can hold it."""
    kernels = build_kernels(session)
    try:
        draft = draft_reservation(session, kernels, now=now)
    except InvalidInput as error:
        problems = [text for texts in error.fields.values() for text in texts]
        return render_to_string("capacity/fit.html", {"problems": problems})
    try:
        fit = session_fit(draft, kernels, now=now)
    except InvalidConfiguration:
        return render_to_string("capacity/fit.html", {"pool": draft.pool})
    return render_to_string("capacity/fit.html", {"fit": fit, "pool": draft.pool})
