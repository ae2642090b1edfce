"""TLS to a worker: by the authority's file, by the fingerprint, and never without."""

import datetime as dt
import hashlib
import ipaddress
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from lcm.cml.call_errors import CmlUnreachable
from lcm.cml.client import CmlClient
from lcm.cml.simulator import SimulatorProcess
from lcm.cml.worker import Worker
from tests.cml_stage import HASTY, run

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A key with its self-signed certificate for 127.0.0.1, and the certificate alone."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "worker")])
    now = dt.datetime.now(dt.UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(alternative, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    folder = tmp_path_factory.mktemp("tls")
    (folder / "server.pem").write_bytes(secret + made.public_bytes(pem))
    (folder / "ca.pem").write_bytes(made.public_bytes(pem))
    return folder


@pytest.fixture(scope="module")
def address(certificate):
    tls, ca = str(certificate / "server.pem"), str(certificate / "ca.pem")
    with SimulatorProcess(tls=tls, ca_file=ca) as process:
        yield process.admin.add("w1")


@pytest.fixture(scope="module")
def fingerprint(certificate):
    der = ssl.PEM_cert_to_DER_cert((certificate / "ca.pem").read_text())
    return hashlib.sha256(der).hexdigest()


def asked(address, **trust):
    async def go():
        worker = Worker("w1", address, "admin", "simulated", **trust)
        async with CmlClient(worker, patience=HASTY) as cml:
            return await cml.labs()

    return run(go())


def test_a_worker_is_trusted_by_its_authority(address, certificate):
    assert asked(address, ca_file=str(certificate / "ca.pem")) == ()


def test_a_worker_is_trusted_by_its_fingerprint(address, fingerprint):
    assert asked(address, fingerprint=fingerprint) == ()
    pairs = ":".join(fingerprint[at : at + 2] for at in range(0, 64, 2)).upper()
    assert asked(address, fingerprint=f"SHA256:{pairs}") == ()


def test_the_name_does_not_count_where_the_fingerprint_does(address, fingerprint):
    assert asked(address.replace("127.0.0.1", "localhost"), fingerprint=fingerprint) == ()


def test_another_certificate_than_the_pinned_one_gets_no_password(address):
    with pytest.raises(CmlUnreachable, match=r"w1: authenticate: .*fingerprint"):
        asked(address, fingerprint="0" * 64)


def test_a_certificate_of_nobody_we_trust_gets_no_password(address):
    with pytest.raises(CmlUnreachable, match=r"w1: authenticate: .*certificate verify failed"):
        asked(address)


def test_a_certificate_file_that_is_missing_is_a_failure_of_the_call(address, tmp_path):
    with pytest.raises(CmlUnreachable, match="No such file"):
        asked(address, ca_file=str(tmp_path / "nowhere.pem"))


@pytest.mark.parametrize("fingerprint", ["abc", "z" * 64, "0" * 63, "sha1:" + "0" * 40])
def test_what_is_no_fingerprint_is_refused_where_it_is_given(fingerprint):
    with pytest.raises(ValueError, match="SHA-256"):
        Worker("w1", "https://x", "a", "b", fingerprint=fingerprint)
