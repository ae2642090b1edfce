"""Gunicorn settings of the watch: `gunicorn -c python:lcm.config.gunicorn_watch lcm.asgi:application`."""

import os

# The watch process exports its own metrics. In the shared folder, the web processes would count them again.
os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)

from django.conf import settings

from lcm.config.gunicorn import accesslog, control_socket_disable, graceful_timeout, keepalive, loglevel
from lcm.supervisor.address import watch_address

__all__ = ["accesslog", "control_socket_disable", "graceful_timeout", "keepalive", "loglevel"]

bind = str(watch_address(settings.CONFIG))
# One process reads the change feed once for all controllers.
workers = 1
worker_class = "asgi"
# The application does not support ASGI lifespan events.
asgi_lifespan = "off"


def post_worker_init(worker: object) -> None:
    """Start the heartbeats of the watch process."""
    from lcm.monitoring.heartbeats import scrape_address, start_heartbeats

    start_heartbeats("watch", scrape_address(bind))
