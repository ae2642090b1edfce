"""The API's addresses."""

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.routers import SimpleRouter

from lcm.api.views.definitions import DefinitionViewSet
from lcm.api.views.organisation import ChangeViewSet, DomainViewSet, ProjectViewSet, TokenViewSet, UserViewSet
from lcm.api.views.sessions import InternalSessionViewSet, SessionViewSet

app_name = "api"

router = SimpleRouter()
router.register("lablet-definitions", DefinitionViewSet, "definition")
router.register("lablet-sessions", SessionViewSet, "session")
router.register("domains", DomainViewSet, "domain")
router.register("projects", ProjectViewSet, "project")
router.register("users", UserViewSet, "user")
router.register("tokens", TokenViewSet, "token")
router.register("changes", ChangeViewSet, "change")

internal = SimpleRouter()
internal.register("lablet-sessions", InternalSessionViewSet, "internal-session")

urlpatterns = [
    path("", include(router.urls)),
    path("internal/", include(internal.urls)),
    path("schema", SpectacularAPIView.as_view(), name="schema"),
    path("docs", SpectacularSwaggerSplitView.as_view(url_name="api:schema"), name="docs"),
]
