"""`manage.py up`: run all processes of LCM on this machine under one supervisor."""

import shutil
import signal
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError, connections
from django.db.backends.postgresql.base import DatabaseWrapper as PostgresWrapper

from lcm.config import data_folder
from lcm.supervisor import processes, valkey
from lcm.supervisor.address import Address, AddressError, responds, watch_address
from lcm.supervisor.demo_processes import DemoFleet
from lcm.supervisor.prometheus import DOWNLOADING, HOW_TO_ADD, NOT_DOWNLOADED, STARTING, Prometheus
from lcm.supervisor.supervisor import Supervisor


class Command(BaseCommand):
    help = "Prepare the database, then run all processes, with Valkey if REDIS_URL is not set, until Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--static-demo", action="store_true", help="with DEMO: load the demo without live activity"
        )

    def handle(self, *args: object, **options: object) -> None:
        # Until the supervisor's loop runs, SIGTERM raises KeyboardInterrupt: started processes are stopped.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        if options["static_demo"]:
            settings.CONFIG["DEMO_LIVE"] = False
        data_dir: Path = settings.DATA_DIR
        for path in data_folder.make_private(data_dir):
            self._report(f"Other users of this machine can read {path}: LCM cannot change its permissions")
        try:
            with data_folder.hold_lock(data_dir):
                address = Address.parse(settings.CONFIG["WEB_BIND"])
                address.require_free()
                watch = watch_address(settings.CONFIG)
                watch.require_free("WATCH_BIND")
                self._run(Supervisor(report=self._report), address, watch, data_dir)
        except (data_folder.AlreadyRunningError, AddressError, valkey.ValkeyError) as error:
            raise CommandError(str(error)) from error
        except OperationalError as error:
            raise CommandError(f"The database does not respond: {error}") from error

    def _run(self, supervisor: Supervisor, address: Address, watch: Address, data_dir: Path) -> None:
        try:
            if settings.REDIS_EMBEDDED:
                self._start_broker(supervisor, data_dir)
            env = processes.environment(data_dir)
            fleet = DemoFleet.planned(address, data_dir) if _is_demo_live() else None
            if fleet:
                settings.CONFIG["SIMULATOR_URL"] = fleet.simulator_url
                env = fleet.environment(env)
            prometheus = Prometheus.planned(address, data_dir) if _wants_prometheus() else None
            if prometheus:
                env |= prometheus.settings
            self._prepare(data_dir, fleet, prometheus)
            servers = [processes.web(env), processes.watch(env)]
            children = [*servers, processes.worker(env), processes.beat(env, data_dir)]
            for child in [*children, *(fleet.children(env) if fleet else ())]:
                supervisor.start(child)
            supervisor.run(
                is_ready=lambda: responds(address, "/healthz") and responds(watch, "/healthz"),
                on_ready=lambda: self._welcome(supervisor, address, prometheus),
            )
            self._report("Stopping. Press Ctrl-C again to kill the remaining processes")
        except KeyboardInterrupt:
            self._report("Stopping before startup is complete")
        finally:
            supervisor.stop()

    def _start_broker(self, supervisor: Supervisor, data_dir: Path) -> None:
        socket: Path = settings.VALKEY_SOCKET
        valkey.claim_socket(socket, data_dir)
        broker = processes.broker(socket, data_dir)
        supervisor.start(broker)
        valkey.wait_for(socket, lambda: broker.is_running)

    def _prepare(self, data_dir: Path, fleet: DemoFleet | None, prometheus: Prometheus | None) -> None:
        metrics = data_dir / "metrics"
        shutil.rmtree(metrics, ignore_errors=True)
        metrics.mkdir()
        call_command("migrate", interactive=False, verbosity=0)
        if not settings.DEBUG:
            call_command("collectstatic", interactive=False, verbosity=0)
        if settings.DEMO:
            call_command("load_demo")
        if fleet:
            fleet.prepare()
        if prometheus:
            prometheus.prepare()
        _close_database()

    def _welcome(self, supervisor: Supervisor, address: Address, prometheus: Prometheus | None) -> None:
        """Print the address and start Prometheus, once the servers respond."""
        self._announce(address)
        if prometheus is None:
            if _wants_prometheus():
                self._report(f"  {HOW_TO_ADD}")
        elif not self._start_prometheus(supervisor, prometheus):
            self._download(supervisor, prometheus)

    def _start_prometheus(self, supervisor: Supervisor, prometheus: Prometheus) -> bool:
        """Start Prometheus; return False if it is not installed."""
        program = prometheus.program
        if program is None:
            return False
        prometheus.set_status(STARTING)
        supervisor.start(prometheus.child(program))
        self._report(f"  Prometheus runs at http://{prometheus.address}/")
        return True

    def _download(self, supervisor: Supervisor, prometheus: Prometheus) -> None:
        """Download Prometheus in the background, then start it."""

        def finish(code: int) -> None:
            if code or not self._start_prometheus(supervisor, prometheus):
                prometheus.set_status(NOT_DOWNLOADED)
                self._report(f"  {HOW_TO_ADD}")

        prometheus.set_status(DOWNLOADING)
        self._report(f"  Prometheus is not installed. LCM downloads it (19 MB) into {prometheus.programs}")
        supervisor.start(prometheus.download(finish))

    def _announce(self, address: Address) -> None:
        self._report(f"\nLCM runs at {address.url} (Ctrl-C stops it)")
        if settings.DEMO:
            from lcm.demo.people import DEMO_LOGINS

            for name, password, role in DEMO_LOGINS:
                self._report(f"  sign in as {name} with password {password}: {role}")

    def _report(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _is_demo_live() -> bool:
    return bool(settings.DEMO and settings.CONFIG["DEMO_LIVE"])


def _wants_prometheus() -> bool:
    return _is_demo_live() and not settings.CONFIG["PROMETHEUS_URL"]


def _close_database() -> None:
    """Close all connections before children start: the threads of a pool do not survive a fork."""
    for connection in connections.all(initialized_only=True):
        connection.close()
        if isinstance(connection, PostgresWrapper):
            connection.close_pool()
