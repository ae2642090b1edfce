"""ASGI entry point of the watch process: the controllers' long poll."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcm.settings")
django.setup(set_prefix=False)

from lcm.api.watch.server import WatchServer  # noqa: E402  (needs Django to be set up)

application = WatchServer()
