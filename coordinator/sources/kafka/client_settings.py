"""How brokers are reached: the user's options for librdkafka, with secrets by reference only. Uses no client.

A spout is pickled and travels in Spark's closures, so a password in it would be copied to unprotected places. So the
user gives the place of a secret, and the secret is read where a client is made: on the driver and on the executors.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from state.errors import SourceError, TopologyError

if find_spec("confluent_kafka") is None:  # every module of the room imports this one first
    raise ImportError(
        "Kafka sources need the library confluent-kafka, which is not installed in this Python; install "
        "txbatch[kafka] here, and on the executors"
    )

SECRET_NAME = re.compile(r"password|jaas|passphrase|secret|key\.pem|sasl\.oauthbearer\.config|assertion\.jwt|\.pem$")
PUBLIC_NAMES = frozenset({"ssl.certificate.pem", "ssl.ca.pem"})
OURS = {
    "bootstrap.servers": "servers",
    "metadata.broker.list": "servers",
    "auto.offset.reset": "start and on_gone",
    "enable.auto.commit": "nothing: positions live in Redis",
    "enable.auto.offset.store": "nothing: positions live in Redis",
    "enable.partition.eof": "nothing: the spout needs it on",
    "group.id": "mirror_group",
    "isolation.level": "isolation_level",
}
"""Options that the spout sets itself -> what to use instead."""
SECRET_LENGTH_MIN = 4
SCHEME = re.compile(r"(\w+)://")
LISTENERS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
READER_DEFAULTS: Mapping[str, str | int] = {
    "fetch.wait.max.ms": 50,  # how long a reader at the log's end delays its next request
    "fetch.queue.backoff.ms": 20,  # how long a reader with a full queue, as between waves, delays the next wave
    "queued.max.messages.kbytes": 8_192,  # read ahead, per partition
    "reconnect.backoff.max.ms": 1_000,  # notice soon that a broker is back
    "log_level": 2,  # important errors are raised, with the client's reason
}
"""Default options of a reader; the user's options override them."""


@dataclass(frozen=True, slots=True)
class FromEnvironment:
    """A secret that is the value of an environment variable, on the driver and on every executor.

    Trailing line breaks are left out.

    Attributes:
        name: name of the variable.
    """

    name: str

    def read(self) -> str:
        """Returns the secret, where a client is made.

        Raises:
            SourceError: the variable is not set here.
        """
        try:
            return os.environ[self.name].rstrip("\r\n")
        except KeyError:
            raise SourceError(
                f"environment variable {self.name!r}, which holds a Kafka secret, is not set in this process; set it "
                "for the driver and the executors (spark.executorEnv is shown in Spark's UI: a file is safer)"
            ) from None


@dataclass(frozen=True, slots=True)
class FromFile:
    """A secret that is the content of a file, on the driver and on every executor; trailing line breaks are left out.

    Attributes:
        path: path of the file.
    """

    path: str

    def read(self) -> str:
        """Returns the secret, where a client is made.

        Raises:
            SourceError: the file cannot be read here.
        """
        try:
            return Path(self.path).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise SourceError(
                f"file {self.path!r}, which holds a Kafka secret, cannot be read: {type(error).__name__}; put it on "
                "the driver's host and on the executors', readable for the user that runs them"
            ) from None


Option: TypeAlias = str | int | float | bool | FromEnvironment | FromFile


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The options of every client of a spout; they pickle without a secret.

    Attributes:
        servers: ``bootstrap.servers``, host:port, separated by commas.
        options: further options, named as librdkafka names them.

    Raises:
        TopologyError: a secret is given in plain text, or the spout sets an option itself.
    """

    servers: str
    options: Mapping[str, Option]

    def __post_init__(self) -> None:
        if not isinstance(self.servers, str) or not self.servers.strip() or "@" in self.servers:
            raise TopologyError(
                "servers of the Kafka source are not text, empty or hold an '@'; give host:port,host:port"
            )
        if strange := [each for each in SCHEME.findall(self.servers) if each.lower() not in LISTENERS]:
            raise TopologyError(
                f"servers of the Kafka source are {self.servers!r}, and no client knows {strange[0]}://; give "
                "host:port,host:port, and security.protocol as an option"
            )
        for name, value in self.options.items():
            _check_option(name, value)

    def resolved(self) -> dict[str, str | int | float | bool]:
        """Returns the options with their secrets; called where a client is made.

        Raises:
            SourceError: a secret cannot be read.
        """
        plain = {
            name: value.read() if isinstance(value, (FromEnvironment, FromFile)) else value
            for name, value in self.options.items()
        }
        return {"bootstrap.servers": self.servers, **plain}

    def without_secrets(self, text: str) -> str:
        """Returns a client's message with every secret replaced; a secret that cannot be read cannot be in it."""
        for value in self.options.values():
            if isinstance(value, (FromEnvironment, FromFile)):
                try:
                    secret = value.read()
                except SourceError:
                    continue
                if len(secret) >= SECRET_LENGTH_MIN:
                    text = text.replace(secret, "…")
        return text


def _check_option(name: object, value: object) -> None:
    if not isinstance(name, str):
        raise TopologyError(f"the name of a Kafka option is {name!r}; give text, as librdkafka names it")
    if name in OURS:
        raise TopologyError(f"Kafka option {name!r} is set by the spout; use {OURS[name]}")
    if isinstance(value, (FromEnvironment, FromFile)):
        return
    if SECRET_NAME.search(name) and name not in PUBLIC_NAMES:
        raise TopologyError(
            f"Kafka option {name!r} is a secret, and a spout travels to the executors in the open; give "
            "FromEnvironment('NAME') or FromFile('/path') instead of its value"
        )
    if not isinstance(value, (str, int, float, bool)):
        raise TopologyError(f"Kafka option {name!r} is a {type(value).__name__}; give text, a number or True or False")
