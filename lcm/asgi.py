"""ASGI entry point: dispatches watch requests, then Django."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcm.settings")
django.setup(set_prefix=False)

from lcm.api.watch.asgi import WatchDispatcher  # noqa: E402  (needs Django to be set up)
from lcm.web.server.asgi_handler import ThreadedAsgiHandler  # noqa: E402

application = WatchDispatcher(ThreadedAsgiHandler())
