"""How to connect to a session: a panel of its page, and a page to print."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from lcm.domain.roles import Role
from lcm.models import LabletDefinition, LabletSession
from lcm.selectors.sessions import sessions
from lcm.templatetags.lcm import humanize_name
from lcm.web.access import role_required
from lcm.web.charts.topology import NodeMark, Picture, picture_of
from lcm.web.crumbs import session_crumbs
from lcm.web.form_page import render_page
from scheduling.selectors.session_access import AccessSheet, AccessState, session_access


@require_GET
@role_required(Role.VIEWER)
def session_access_page(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """The access sheet as a page of its own, for printing."""
    session = get_object_or_404(sessions().prefetch_related("kernels"), pk=pk)
    context = {**_context(session), "crumbs": session_crumbs(session, _("How to connect"))}
    return render_page(request, "capacity/access.html", context, part="panel")


def access_panel(request: HttpRequest, session: LabletSession) -> SafeString:
    """Return the panel as part of the session's page, which refreshes it."""
    return render_to_string("capacity/access.html#panel", {**_context(session), "in_page": True}, request)


def _context(session: LabletSession) -> dict[str, Any]:
    sheet = session_access(session, list(session.kernels.all()), now=timezone.now())
    has_picture = sheet.state not in (AccessState.WAITING, AccessState.ENDED)
    return {"session": session, "sheet": sheet, "picture": _picture(session, sheet) if has_picture else None}


def _picture(session: LabletSession, sheet: AccessSheet) -> Picture:
    """Return the topology; its nodes lead to their rows, if the sheet has rows."""
    definitions = LabletDefinition.objects.filter(pk=session.definition_id)
    nodes, links = definitions.values_list("nodes", "links").get()
    rows = {node.kernel.node_label: f"#access-{number}" for number, node in enumerate(sheet.nodes, 1)}
    in_lab = {node.kernel.node_label: node.lab_state for node in sheet.nodes}
    marks = {
        each.node_label: NodeMark(
            in_lab.get(each.node_label) or each.status,
            humanize_name(in_lab.get(each.node_label, "")).capitalize() or each.get_status_display(),
            rows.get(each.node_label, ""),
        )
        for each in session.kernels.all()
    }
    return picture_of(nodes, links, marks)
