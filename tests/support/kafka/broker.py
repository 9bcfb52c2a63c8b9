"""Real Kafka brokers on loopback, each in a temporary folder, that can be killed and started again."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.kafka.jars import NoBrokerError, broker_jars

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0
USER, PASSWORD = "reader", "hunter22-and-more"
LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
CLUSTER_ID = "dHhiYXRjaC10ZXN0LWNsdQ"
JAVA_OPTIONS = ("-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
PROPERTIES = """
process.roles={roles}
node.id={node}
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{sasl_port}{controller_listener}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{sasl_port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
listener.name.sasl.sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config={login_module} required user_{user}="{password}";
log.dirs={folder}/log
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.check.interval.ms=1000
log.initial.task.delay.ms=500
log.cleaner.backoff.ms=200
log.cleaner.dedupe.buffer.size=4194304
num.network.threads=2
num.io.threads=2
num.partitions=1
"""


class Broker:
    """One broker; `start` it, `stop` it at the end. Ends exactly the process it started.

    Args:
        joins: the broker whose cluster this one is the second of, to be started before it; None makes a cluster.

    Raises:
        NoBrokerError: the broker's jars or Java are not to be had.

    Attributes:
        address: for ``bootstrap.servers``; stays the same after a kill and a new start.
        sasl_address: the same, for `USER` with `PASSWORD` by SASL PLAIN.
    """

    def __init__(self, joins: Broker | None = None) -> None:
        java = shutil.which("java")
        if java is None:
            raise NoBrokerError("Java is missing, which runs the Kafka broker")
        self._command = [java, *JAVA_OPTIONS, "-cp", f"{broker_jars()}/*"]
        self._folder = Path(tempfile.mkdtemp(prefix="txbatch-kafka-"))
        port, sasl_port, self._controller_port = _free_ports(3)
        if joins is not None:
            self._controller_port = joins._controller_port
        self.address, self.sasl_address = f"127.0.0.1:{port}", f"127.0.0.1:{sasl_port}"
        self._properties = self._folder / "server.properties"
        self._properties.write_text(
            PROPERTIES.format(
                roles="broker,controller" if joins is None else "broker",
                node=1 if joins is None else 2,
                controller_listener="" if joins is not None else f",CONTROLLER://127.0.0.1:{self._controller_port}",
                port=port,
                sasl_port=sasl_port,
                controller_port=self._controller_port,
                folder=self._folder,
                login_module=LOGIN_MODULE,
                user=USER,
                password=PASSWORD,
            ),
            encoding="utf-8",
        )
        self._log = self._folder / "broker.out"
        self._process: subprocess.Popen[bytes] | None = None
        self._run("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self._properties))

    def start(self) -> None:
        """Starts it and returns once it answers; there is no event to wait for, so it is asked every 50 ms."""
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [*self._command, "kafka.Kafka", str(self._properties)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline and self._process.poll() is None:
            if _answers(self.address):
                return
            time.sleep(0.05)
        self.kill()
        raise AssertionError(f"the broker did not start:\n{self._log.read_text(errors='replace')[-4000:]}")

    def kill(self) -> None:
        """kill -9; what was written stays."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Stops it in the middle of whatever it does, until `resume`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets it continue."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Ends it and removes its folder."""
        self._end(signal.SIGKILL)  # nothing of it is kept, so an orderly end would only take longer
        shutil.rmtree(self._folder, ignore_errors=True)

    def create_topic(self, name: str, partitions: int = 1, *, on: list[int] | None = None, **configuration: str) -> str:
        """Makes a topic; in a setting's name an underscore stands for a dot.

        Args:
            name: of the topic.
            partitions: how many, if `on` does not say it.
            on: the broker, 1 or 2, that has each partition.
            configuration: of the topic.
        """
        config = {key.replace("_", "."): value for key, value in configuration.items()}
        if on is None:
            made = NewTopic(name, partitions, 1, config=config)
        else:
            made = NewTopic(name, len(on), replica_assignment=[[each] for each in on], config=config)
        self.admin_do(lambda admin: admin.create_topics([made])[name])
        return name

    def wait_for_leaders(self, topic: str, leaders: list[int]) -> None:
        """Waits until the cluster knows which broker leads each partition, -1 if none does; asks every 50 ms."""
        deadline = time.monotonic() + START_TIMEOUT_S
        admin, found = self.admin(), None
        while time.monotonic() < deadline:
            partitions = admin.list_topics(topic, timeout=10).topics[topic].partitions
            found = [partitions[each].leader for each in sorted(partitions)]
            if found == leaders:
                return
            time.sleep(0.05)
        raise AssertionError(f"topic {topic!r} is led by {found}, expected {leaders}")

    def admin(self) -> AdminClient:
        """A client for administration."""
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def admin_do(self, ask: Callable[[AdminClient], Future[Any]]) -> Any:
        """Asks for something and returns how it ended."""
        admin = self.admin()  # has to outlive what it promises
        return ask(admin).result(timeout=30)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(STOP_TIMEOUT_S)

    def _run(self, *arguments: str) -> None:
        ended = subprocess.run([*self._command, *arguments], capture_output=True, text=True, check=False, timeout=60)
        if ended.returncode:
            raise AssertionError(f"{arguments} failed:\n{ended.stdout}{ended.stderr}")


def _answers(address: str) -> bool:
    host, _, port = address.partition(":")
    with socket.socket() as probe:
        probe.settimeout(1.0)
        if probe.connect_ex((host, int(port))):
            return False
    try:
        found = AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=5)
    except Exception:  # noqa: BLE001 - not yet
        return False
    return bool(found.brokers)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
