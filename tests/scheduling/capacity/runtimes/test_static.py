"""Listed workers: assigned in list order and probed over HTTP and TLS."""

import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from scheduling.capacity.runtimes.base import CapacityRefused, Health, InstanceState, LaunchRequest, Offering
from scheduling.capacity.runtimes.health import PATH, probe_cml
from scheduling.capacity.runtimes.static import StaticRuntime
from tests.support.certificates import make_certificate

READY = b'{"version": "2.9.1+build.7", "ready": true, "allow_ssh_pubkey_auth": false}'


class Worker(BaseHTTPRequestHandler):
    """Responds like CML, or as the test configures it."""

    def do_GET(self):
        self.server.requested_paths.append(self.path)
        status, body, pause = self.server.response
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        try:
            for part in [body[i : i + 1] for i in range(len(body))] if pause else [body]:
                time.sleep(pause)
                self.wfile.write(part)
        except OSError:
            pass

    def log_message(self, *_):
        pass


@pytest.fixture
def start_worker():
    """`start_worker(status, body, pause, tls)`: the address and server of a worker with this response."""
    servers = []

    def start(status=200, body=READY, pause=0, tls=None):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Worker)
        server.response, server.requested_paths, server.daemon_threads = (status, body, pause), [], True
        server.block_on_close = False
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}", server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A file with a key and its self-signed certificate for 127.0.0.1, and one with the certificate."""
    return make_certificate(tmp_path_factory.mktemp("tls"))


def static_runtime(*names, **fields):
    workers = [{"name": name, "endpoint": f"https://{name}.example.org", **fields} for name in names]
    return StaticRuntime("lab", {"workers": workers})


def launch_request(slot_name, *taken):
    return LaunchRequest("token-1", "slot-1", slot_name, Offering("listed"), workers_in_use=frozenset(taken))


def test_all_listed_workers_are_running_and_untagged():
    assert [
        (each.id, each.state, each.slot_id, each.token, each.endpoint)
        for each in static_runtime("a", "b").describe()
    ] == [
        ("a", InstanceState.RUNNING, "", "", "https://a.example.org"),
        ("b", InstanceState.RUNNING, "", "", "https://b.example.org"),
    ]


@pytest.mark.parametrize(
    ("slot_name", "taken", "worker"),
    [
        ("lab-01", (), "a"),
        ("lab-02", (), "b"),
        ("lab-03", (), "c"),
        ("lab-02", ("a",), "b"),
        ("lab-01", ("a",), "b"),
        ("lab-03", ("a", "c"), "b"),
        ("lab-04", ("b", "c"), "a"),
        ("lab-104", ("a",), "b"),
        ("odd", (), "a"),
    ],
)
def test_a_slot_gets_the_worker_of_its_number_or_the_next_free_one(slot_name, taken, worker):
    instance = static_runtime("a", "b", "c").launch(launch_request(slot_name, *taken))
    assert (instance.id, instance.slot_id, instance.token) == (worker, "slot-1", "token-1")


def test_a_launch_is_refused_when_all_workers_are_in_use():
    with pytest.raises(CapacityRefused, match="All 2 listed workers are in use"):
        static_runtime("a", "b").launch(launch_request("lab-03", "a", "b"))


def test_terminate_does_not_remove_a_listed_worker():
    runtime = static_runtime("a")
    assert not runtime.launches
    runtime.terminate("a")
    assert [each.id for each in runtime.describe()] == ["a"]


def test_a_listed_worker_is_probed(start_worker):
    url, server = start_worker()
    runtime = StaticRuntime("lab", {"workers": [{"name": "a", "endpoint": f"{url}/"}]})
    assert runtime.probe(runtime.launch(launch_request("lab-01"))) == Health(True, "", "2.9.1+build.7")
    assert server.requested_paths == [PATH]


def test_an_unlisted_worker_is_not_healthy():
    (worker,) = static_runtime("a").describe()
    assert static_runtime("b").probe(worker) == Health(False, "a is no longer listed in the pool's settings.")


def test_a_worker_is_verified_with_its_certificate(start_worker, certificate):
    key_file, ca = certificate
    url, _ = start_worker(tls=key_file)
    assert probe_cml(url, ca).ready
    unverified = probe_cml(url)
    assert not unverified.ready
    assert "certificate verify failed" in unverified.reason


def test_a_missing_certificate_file_is_reported(start_worker, certificate, tmp_path):
    url, _ = start_worker(tls=certificate[0])
    (tmp_path / "empty.pem").touch()
    for ca in ("nowhere.pem", "empty.pem"):
        health = probe_cml(url, str(tmp_path / ca))
        assert not health.ready
        assert health.reason.startswith(f"{url} cannot be probed")


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (200, b'{"version": "2.9.1", "ready": false}', "CML reports that it is not ready."),
        (200, b'{"version": "2.9.1", "ready": "yes"}', "CML reports that it is not ready."),
        (200, b'{"version": "2.9.1"}', "does not respond as CML does."),
        (200, b'{"ready": true}', "does not respond as CML does."),
        (200, b"[]", "does not respond as CML does."),
        (200, b"<html>", "does not return JSON."),
        (200, b"\xff\xfe\xfd", "does not return JSON."),
        (200, b"[" * 60_000, "does not return JSON."),
        (200, b" " * 70_000, "more than 65536 bytes."),
        (302, b"", "responds with status 302."),
        (503, b"", "responds with status 503."),
    ],
)
def test_an_invalid_response_is_explained(start_worker, status, body, reason):
    url, _ = start_worker(status, body)
    health = probe_cml(url)
    assert not health.ready
    assert reason in health.reason


def test_a_worker_that_is_not_ready_reports_its_version(start_worker):
    url, _ = start_worker(body=b'{"version": "2.9.1", "ready": false}')
    assert probe_cml(url).version == "2.9.1"


@pytest.mark.parametrize("pause", [5, 0.04])
def test_probing_a_slow_worker_times_out(start_worker, pause):
    url, _ = start_worker(pause=pause)
    started = time.monotonic()
    assert not probe_cml(url, timeout=0.3).ready
    assert time.monotonic() - started < 4.5


@pytest.mark.parametrize("endpoint", ["", "http://127.0.0.1:9", "https://x.invalid", "http://[", "nonsense"])
def test_an_unreachable_address_is_reported_with_a_reason(endpoint):
    health = probe_cml(endpoint)
    assert not health.ready
    assert health.reason
