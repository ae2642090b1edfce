"""WSGI entry point of the web processes: pages, API, probes and metrics."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcm.settings")

application = get_wsgi_application()
