"""Gunicorn settings of the watch: `gunicorn -c python:lcm.config.gunicorn_watch lcm.asgi:application`."""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcm.settings")
# The watch process exports its own metrics. In the shared folder, the web processes would count them again.
os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)

from django.conf import settings

from lcm.supervisor.address import watch_address

bind = str(watch_address(settings.CONFIG))
# One process reads the change feed once for all controllers.
workers = 1
worker_class = "asgi"
# The application does not support ASGI lifespan events.
asgi_lifespan = "off"
# Longer than the keep-alive of proxies and clients, so that none sends on a connection being closed.
keepalive = 75
# Less than the supervisor's grace period, so that a long poll does not get the whole server killed.
graceful_timeout = 7
# The application logs requests itself.
accesslog = None
loglevel = "warning"
# Gunicorn would create the socket in the home folder.
control_socket_disable = True


def post_worker_init(worker: Any) -> None:
    """Start the heartbeats of the watch process."""
    from lcm.monitoring.heartbeats import scrape_address, start_heartbeats

    start_heartbeats("watch", scrape_address(bind))
