"""The troubles behind errors: one for each entry of docs/troubleshooting.md, by its anchor. Pure.

Error classes are few and split by remedy; the entries for users are finer. Every class has a usual trouble, and code
that knows a closer one sets it with `TransactionError.about`.
"""

from __future__ import annotations

from enum import StrEnum

PAGE = "docs/troubleshooting.md"


class Trouble(StrEnum):
    """The anchors of docs/troubleshooting.md; they are stable: programs and people may keep them."""

    # your code
    USER_CODE = "user-code"
    FAILED = "failed"
    REPLAY_LIMIT = "replay-limit"
    WAVE_CRASH = "wave-crash"
    QUARANTINE_FULL = "quarantine-full"
    TRANSACTION_TOO_LARGE = "transaction-too-large"
    STATE_VALUE = "state-value"
    STALE_READ = "stale-read"
    # command and topology
    TOPOLOGY = "topology"
    LOADING = "loading"
    PARAMETER = "parameter"
    UNKNOWN_TOPOLOGY = "unknown-topology"
    IMPORT_REFUSED = "import-refused"
    NOT_PICKLABLE = "not-picklable"
    STATE_CHANGED = "state-changed"
    # input
    INPUT = "input"
    INPUT_CHANGED = "input-changed"
    INPUT_GONE = "input-gone"
    OTHER_SOURCE = "other-source"
    BAD_RECORD = "bad-record"
    DEAD_LETTER_LIMIT = "dead-letter-limit"
    NOT_REPUBLISHABLE = "not-republishable"
    # who owns the topology
    FENCED = "fenced"
    DROPPED = "dropped"
    DROPPING = "dropping"
    # the server
    SERVER_ADDRESS = "server-address"
    PLAINTEXT = "plaintext"
    SERVER_UNREACHABLE = "server-unreachable"
    SERVER_LOGIN = "server-login"
    SERVER_RIGHTS = "server-rights"
    SERVER_UNFIT = "server-unfit"
    SERVER_FULL = "server-full"
    EMBEDDED_SERVER = "embedded-server"
    LIBRARY_REPLACED = "library-replaced"
    # what the server holds
    STATE_REFUSED = "state-refused"
    REGRESSED = "regressed"
    TORN = "torn"
    DAMAGED = "damaged"
    EVICTED = "evicted"
    OTHER_VERSION = "other-version"
    # how durable it is
    DURABILITY = "durability"
    NOT_DURABLE = "not-durable"
    # Spark
    SPARK = "spark"
    SPARK_MASTER = "spark-master"
    DISK_FULL = "disk-full"
    # txbatch
    BUG = "bug"
    UNEXPECTED = "unexpected"

    @property
    def command(self) -> str:
        """The command that explains the trouble, for a reader without the docs at hand."""
        return f"txbatch explain {self.value}"
