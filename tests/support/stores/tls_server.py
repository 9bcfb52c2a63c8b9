"""A redis-server with a plain and a TLS port, under a certificate that nobody else trusts."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import running_server
from tests.support.chaos.nemesis.servers import free_port


@dataclass(frozen=True)
class TlsServer:
    """Where it listens, and the certificate it shows."""

    plain_port: int
    tls_port: int
    certificate: Path
    key: Path


@contextmanager
def running_tls_server(*, asks_for_certificates: bool = False) -> Iterator[TlsServer]:
    """Runs one in a temporary folder and ends exactly that process; skips where redis-server or openssl is missing."""
    program, openssl = shutil.which("redis-server"), shutil.which("openssl")
    if program is None or openssl is None:
        pytest.skip("redis-server or openssl on PATH is missing")
    with tempfile.TemporaryDirectory(prefix="txbatch-") as name, ExitStack() as stack:
        certificate, key = Path(name, "certificate.pem"), Path(name, "key.pem")
        server = TlsServer(free_port(), free_port(), certificate, key)
        made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        files = ["-keyout", str(key), "-out", str(certificate)]
        names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
        subprocess.run([openssl, *made, *names, *files], check=True, capture_output=True)
        options = {
            "port": server.plain_port,
            "bind": "127.0.0.1",
            "tls-port": server.tls_port,
            "tls-cert-file": certificate,
            "tls-key-file": key,
            "tls-ca-cert-file": certificate,
            "tls-auth-clients": "yes" if asks_for_certificates else "no",
        }
        given = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        try:
            stack.enter_context(running_server(program, *given))
        except pytest.fail.Exception:
            pytest.skip("redis-server on PATH does not start with TLS")
        yield server
