"""URLs of the watch process."""

from django.urls import include, path, re_path

from lcm.api.watch.long_poll_view import long_poll
from lcm.web.server import health

api = [re_path("^internal/watch/?$", long_poll, name="internal-watch")]
urlpatterns = [
    path("api/", include((api, "api"))),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.process_metrics, name="metrics"),
]
