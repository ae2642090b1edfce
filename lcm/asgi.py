"""The web application."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcm.settings")

_django = get_asgi_application()

from lcm.api.watch.asgi import WatchFirst  # noqa: E402  (needs Django to be set up)

application = WatchFirst(_django)
