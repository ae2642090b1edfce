"""How gunicorn serves LCM: `gunicorn -c python:lcm.config.gunicorn lcm.asgi:application`."""

import os
from typing import Any

from prometheus_client import multiprocess

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcm.settings")

from django.conf import settings

bind = settings.CONFIG["WEB_BIND"]
workers = settings.CONFIG["WEB_WORKERS"]
worker_class = "asgi"
# Django has no start-up and shut-down events.
asgi_lifespan = "off"
# Less than the supervisor's grace period, so that a long poll does not get the whole server killed.
# Longer than proxies and clients keep theirs, so that nobody sends into a connection being closed.
keepalive = 75
graceful_timeout = 7
# The application logs its requests itself.
accesslog = None
loglevel = "warning"
# It would be made in the home folder.
control_socket_disable = True


def post_worker_init(worker: Any) -> None:
    """A web process gets ready, and says where it can be scraped."""
    from lcm.monitoring.heartbeats import scrape_address, start_heartbeats
    from lcm.web.server.warm_up import warm_up

    warm_up()
    start_heartbeats("web", scrape_address(bind))


def child_exit(server: Any, worker: Any) -> None:
    """Drop the live gauges of a web process that has ended."""
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]
