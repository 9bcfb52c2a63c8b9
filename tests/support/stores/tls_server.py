"""A redis-server with a plain and a TLS port, under a certificate that nobody else trusts."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

START_TIMEOUT_S = 10.0


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
    with tempfile.TemporaryDirectory(prefix="txbatch-") as name:
        folder = Path(name)
        server = TlsServer(_free_port(), _free_port(), folder / "certificate.pem", folder / "key.pem")
        made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        files = ["-keyout", str(server.key), "-out", str(server.certificate)]
        names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
        subprocess.run([openssl, *made, *names, *files], check=True, capture_output=True)
        command = [program, *_options(server, folder, asks_for_certificates=asks_for_certificates)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _await(process, server)
            yield server
        finally:
            process.terminate()
            process.wait(START_TIMEOUT_S)


def _options(server: TlsServer, folder: Path, *, asks_for_certificates: bool) -> list[str]:
    options = {
        "port": str(server.plain_port),
        "tls-port": str(server.tls_port),
        "bind": "127.0.0.1",
        "tls-cert-file": str(server.certificate),
        "tls-key-file": str(server.key),
        "tls-ca-cert-file": str(server.certificate),
        "tls-auth-clients": "yes" if asks_for_certificates else "no",
        "save": "",
        "dir": str(folder),
    }
    return [part for name, value in options.items() for part in (f"--{name}", value)]


def _await(process: subprocess.Popen[bytes], server: TlsServer) -> None:
    """Returns once the server answers; there is no event to wait for, so it is asked again every 10 ms."""
    deadline = time.monotonic() + START_TIMEOUT_S
    with redis.Redis(port=server.plain_port) as client:
        while process.poll() is None and time.monotonic() < deadline:
            try:
                client.ping()
            except redis.ConnectionError:
                time.sleep(0.01)
            else:
                return
    pytest.skip("redis-server on PATH does not start with TLS")


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
