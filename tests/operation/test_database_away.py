"""A web process whose PostgreSQL is stopped, frozen or gone: it answers 503 in time and recovers by itself."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
import pytest

from lcm.supervisor.children import die_with_parent
from tests.bench.control_plane import ROOT, free_address, wait_until
from tests.bench.environment import clean_environment
from tests.bench.postgres import FORGETFUL, SETTINGS, PrivateServer
