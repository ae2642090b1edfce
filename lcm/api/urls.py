"""URLs of the API."""

from django.urls import include, path, re_path
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.routers import SimpleRouter

from lcm.api.views.definitions import DefinitionViewSet
from lcm.api.views.event_types import EventTypeViewSet
from lcm.api.views.inbox import InboxViewSet, SubscriptionViewSet, WatchViewSet
from lcm.api.views.internal import InternalSessionViewSet
from lcm.api.views.jobs import JobViewSet
from lcm.api.views.list_views import SavedViewViewSet
from lcm.api.views.organisation import ChangeViewSet, DomainViewSet, ProjectViewSet, TokenViewSet, UserViewSet
from lcm.api.views.schema import SchemaView
from lcm.api.views.sessions import SessionViewSet
from lcm.api.views.webhooks import DeliveryViewSet, EventRuleViewSet, WebhookViewSet
from lcm.api.watch.view import WatchView
from lcm.domain.roles import Role
from lcm.web.access import role_required

app_name = "api"


class Router(SimpleRouter):
    """Router that accepts URLs with and without a trailing slash."""

    def __init__(self) -> None:
        super().__init__()
        self.trailing_slash = "/?"


router = Router()
router.register("lablet-definitions", DefinitionViewSet, "definition")
router.register("lablet-sessions", SessionViewSet, "session")
router.register("domains", DomainViewSet, "domain")
router.register("projects", ProjectViewSet, "project")
router.register("users", UserViewSet, "user")
router.register("tokens", TokenViewSet, "token")
router.register("saved-views", SavedViewViewSet, "saved-view")
router.register("jobs", JobViewSet, "job")
router.register("changes", ChangeViewSet, "change")
router.register("event-types", EventTypeViewSet, "event-type")
router.register("webhooks", WebhookViewSet, "webhook")
router.register("event-rules", EventRuleViewSet, "event-rule")
router.register("deliveries", DeliveryViewSet, "delivery")

router.register("inbox", InboxViewSet, "inbox")
router.register("subscriptions", SubscriptionViewSet, "subscription")
router.register("watches", WatchViewSet, "watch")

internal = Router()
internal.register("lablet-sessions", InternalSessionViewSet, "internal-session")

# A page for browsers: anonymous users are redirected to the sign-in page.
docs = SpectacularSwaggerSplitView.as_view(url_name="api:schema", permission_classes=[])

urlpatterns = [
    path("internal/", include(internal.urls)),
    re_path("^internal/watch/?$", WatchView.as_view(), name="internal-watch"),
    path("", include(router.urls)),
    path("schema", SchemaView.as_view(), name="schema"),
    path("docs", role_required(Role.VIEWER)(docs), name="docs"),
]
