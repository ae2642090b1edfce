"""TLS to a worker: by CA file, by fingerprint, and never unverified."""

import hashlib
import ssl
from pathlib import Path

import pytest

from lcm.cml.client.client import CmlClient
from lcm.cml.client.endpoint import CmlEndpoint
from lcm.cml.client.errors import CmlUnreachable
from tests.support.certificates import make_certificate
from tests.support.cml_environment import QUICK_RETRIES, run
from tests.support.simulator import SimulatorProcess

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def address(certificate):
    tls, ca = certificate
    with SimulatorProcess(tls=tls, ca_file=ca) as process:
        yield process.admin.add("w1")


@pytest.fixture(scope="module")
def fingerprint(certificate):
    der = ssl.PEM_cert_to_DER_cert(Path(certificate[1]).read_text())
    return hashlib.sha256(der).hexdigest()


def labs_of(address, **trust):
    async def scenario():
        worker = CmlEndpoint("w1", address, "admin", "simulated", **trust)
        async with CmlClient(worker, retry_policy=QUICK_RETRIES) as cml:
            return await cml.labs()

    return run(scenario())


def test_a_worker_is_trusted_by_its_authority(address, certificate):
    assert labs_of(address, ca_file=certificate[1]) == ()


def test_a_worker_is_trusted_by_its_fingerprint(address, fingerprint):
    assert labs_of(address, fingerprint=fingerprint) == ()
    pairs = ":".join(fingerprint[at : at + 2] for at in range(0, 64, 2)).upper()
    assert labs_of(address, fingerprint=f"SHA256:{pairs}") == ()


def test_with_a_fingerprint_the_host_name_is_not_checked(address, fingerprint):
    assert labs_of(address.replace("127.0.0.1", "localhost"), fingerprint=fingerprint) == ()


def test_no_password_is_sent_to_a_certificate_that_is_not_pinned(address):
    with pytest.raises(CmlUnreachable, match=r"w1: authenticate: .*fingerprint"):
        labs_of(address, fingerprint="0" * 64)


def test_no_password_is_sent_to_an_untrusted_certificate(address):
    with pytest.raises(CmlUnreachable, match=r"w1: authenticate: .*certificate verify failed"):
        labs_of(address)


def test_a_missing_ca_file_fails_the_call(address, tmp_path):
    with pytest.raises(CmlUnreachable, match="No such file"):
        labs_of(address, ca_file=str(tmp_path / "nowhere.pem"))


@pytest.mark.parametrize("fingerprint", ["abc", "z" * 64, "0" * 63, "sha1:" + "0" * 40])
def test_an_invalid_fingerprint_is_rejected_by_the_endpoint(fingerprint):
    with pytest.raises(ValueError, match="SHA-256"):
        CmlEndpoint("w1", "https://x", "a", "b", fingerprint=fingerprint)
