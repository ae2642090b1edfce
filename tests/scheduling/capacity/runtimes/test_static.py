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
    """Answers like CML, or as the test configures it."""

    def do_GET(self):
        self.server.asked.append(self.path)
        status, body, pause = self.server.answer
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
def serve():
    """`serve(status, body, pause, tls)`: the address of a worker that answers like this."""
    servers = []

    def start(status=200, body=READY, pause=0, tls=None):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Worker)
        server.answer, server.asked, server.daemon_threads = (status, body, pause), [], True
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


def static(*names, **fields):
    workers = [{"name": name, "endpoint": f"https://{name}.example.org", **fields} for name in names]
    return StaticRuntime("lab", {"workers": workers})


def ask(slot_name, *taken):
    return LaunchRequest("token-1", "slot-1", slot_name, Offering("listed"), taken=frozenset(taken))


def test_all_listed_workers_run_and_none_is_tagged():
    assert [
        (each.id, each.state, each.slot_id, each.token, each.endpoint) for each in static("a", "b").describe()
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
    instance = static("a", "b", "c").launch(ask(slot_name, *taken))
    assert (instance.id, instance.slot_id, instance.token) == (worker, "slot-1", "token-1")


def test_when_all_are_taken_there_is_no_capacity():
    with pytest.raises(CapacityRefused, match="All 2 listed workers are in use"):
        static("a", "b").launch(ask("lab-03", "a", "b"))


def test_nothing_is_ended():
    runtime = static("a")
    assert not runtime.launches
    runtime.terminate("a")
    assert [each.id for each in runtime.describe()] == ["a"]


def test_a_listed_worker_is_probed(serve):
    url, server = serve()
    runtime = StaticRuntime("lab", {"workers": [{"name": "a", "endpoint": f"{url}/"}]})
    assert runtime.probe(runtime.launch(ask("lab-01"))) == Health(True, "", "2.9.1+build.7")
    assert server.asked == [PATH]


def test_a_worker_that_is_no_longer_listed_is_not_healthy():
    (gone,) = static("a").describe()
    assert static("b").probe(gone) == Health(False, "a is no longer listed in the pool's settings.")


def test_a_worker_is_trusted_by_its_certificate(serve, certificate):
    key_file, ca = certificate
    url, _ = serve(tls=key_file)
    assert probe_cml(url, ca).ready
    stranger = probe_cml(url)
    assert not stranger.ready
    assert "certificate verify failed" in stranger.reason


def test_a_certificate_file_that_is_missing_is_a_reason(serve, certificate, tmp_path):
    url, _ = serve(tls=certificate[0])
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
        (200, b'{"version": "2.9.1"}', "does not answer like CML."),
        (200, b'{"ready": true}', "does not answer like CML."),
        (200, b"[]", "does not answer like CML."),
        (200, b"<html>", "does not answer in JSON."),
        (200, b"\xff\xfe\xfd", "does not answer in JSON."),
        (200, b"[" * 60_000, "does not answer in JSON."),
        (200, b" " * 70_000, "more than 65536 bytes."),
        (302, b"", "answers with status 302."),
        (503, b"", "answers with status 503."),
    ],
)
def test_an_invalid_answer_is_explained(serve, status, body, reason):
    url, _ = serve(status, body)
    health = probe_cml(url)
    assert not health.ready
    assert reason in health.reason


def test_a_version_is_known_before_it_is_ready(serve):
    url, _ = serve(body=b'{"version": "2.9.1", "ready": false}')
    assert probe_cml(url).version == "2.9.1"


@pytest.mark.parametrize("pause", [5, 0.04])
def test_a_slow_worker_does_not_hold_up_the_others(serve, pause):
    url, _ = serve(pause=pause)
    begun = time.monotonic()
    assert not probe_cml(url, timeout=0.3).ready
    assert time.monotonic() - begun < 4.5


@pytest.mark.parametrize("endpoint", ["", "http://127.0.0.1:9", "https://x.invalid", "http://[", "nonsense"])
def test_an_unreachable_address_gives_a_reason(endpoint):
    health = probe_cml(endpoint)
    assert not health.ready
    assert health.reason
