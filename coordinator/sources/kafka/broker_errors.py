"""Turns a client's error into an error of the run: one that is worth another try, or one that says what to do."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from coordinator.sources.kafka.client_settings import ClientSettings
from state.errors import FailedException, SourceError, TransactionError
from state.printable import one_line

_GONE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})  # noqa: SLF001 - their public names
_FORBIDDEN = frozenset(
    {
        KafkaError._AUTHENTICATION,  # noqa: SLF001
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
_ABSENT = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
        KafkaError.UNKNOWN_TOPIC_ID,
    }
)


_UNREACHED = frozenset({KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT})  # noqa: SLF001


class AbsentTopicError(SourceError):
    """The brokers do not know the topic."""


class ClientTrouble:
    """The last connection error of a client: set by the client's callback, read when nothing arrives.

    Attributes:
        error: the last error that names a cause, or a lasting one, such as a wrong password; None without an error.
    """

    def __init__(self) -> None:
        self.error: KafkaError | None = None

    def __call__(self, error: KafkaError) -> None:
        follows = error.code() == KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001 - the consequence of an earlier error
        if self.error is None or not (follows or is_lasting(self.error)):
            self.error = error


def is_out_of_range(error: KafkaError) -> bool:
    """Returns whether an error says that the requested offset is not in the log."""
    return error.code() in _GONE


def is_lasting(error: KafkaError) -> bool:
    """Returns whether a retry cannot help: the user has to change something."""
    return error.code() in _FORBIDDEN or error.fatal()


def failure_of(
    error: KafkaError | KafkaException, doing: str, settings: ClientSettings, *, absent_is_lasting: bool = False
) -> TransactionError:
    """Returns the exception that a spout raises for a client's error.

    Args:
        error: the client's error.
        doing: what failed, as in "reading partition 3 of topic 'orders'".
        settings: settings of the client; their secrets are removed from its message.
        absent_is_lasting: whether a missing topic ends the run; brokers that have just been started may not know it
            yet.

    Returns:
        A `SourceError` if a retry cannot help, otherwise a `FailedException`.
    """
    inner = error.args[0] if isinstance(error, KafkaException) else error
    said = one_line(settings.without_secrets(f"{inner.str()} ({inner.name()})"))
    where = f"{doing} at {settings.servers} failed: {said}"
    if inner.code() in _FORBIDDEN:
        return SourceError(f"{where}; check the user, its secret and its right to read the topic")
    if absent_is_lasting and inner.code() in _ABSENT:
        return AbsentTopicError(
            f"{where}; check the topic's name and that it exists: txbatch creates none; missing='wait' waits for it"
        )
    if is_lasting(inner):
        return SourceError(f"{where}; fix that, then run again")
    down = inner.code() in _UNREACHED
    return FailedException(f"{where}; check that they run, and their port and security.protocol" if down else where)


def refused_options(error: Exception, settings: ClientSettings) -> SourceError:
    """Returns the error for options that no client accepts."""
    said = error.args[0].str() if isinstance(error, KafkaException) else str(error)
    return SourceError(
        f"a Kafka client for {settings.servers} cannot be made: {one_line(settings.without_secrets(said))}; fix the "
        "options of the spout, which are librdkafka's"
    )
