"""Gunicorn settings of the web processes: `gunicorn -c python:lcm.config.gunicorn lcm.wsgi:application`."""

import os
from typing import Any

from prometheus_client import multiprocess

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcm.settings")

from django.conf import settings

bind = settings.CONFIG["WEB_BIND"]
workers = settings.CONFIG["WEB_WORKERS"]
worker_class = "gthread"
threads = settings.CONFIG["WEB_THREADS"]
# Longer than the keep-alive of proxies and clients, so that none sends on a connection being closed.
keepalive = 75
# Less than the supervisor's grace period, so that a slow request does not get the whole server killed.
graceful_timeout = 7
# The application logs requests itself.
accesslog = None
loglevel = "warning"
# Gunicorn would create the socket in the home folder.
control_socket_disable = True


def post_worker_init(worker: object) -> None:
    """Warm up a web process and start its heartbeats."""
    from lcm.monitoring.heartbeats import scrape_address, start_heartbeats
    from lcm.web.server.warm_up import warm_up

    warm_up()
    start_heartbeats("web", scrape_address(bind))


def child_exit(server: Any, worker: Any) -> None:
    """Drop the live gauges of a web process that has ended."""
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        multiprocess.mark_process_dead(worker.pid)
