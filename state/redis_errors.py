"""What to do about each error a server or connection can answer with: a closed table.

Retry what passes by itself, load the function library again when it is gone, and stop with a sentence
for everything else. An error that is not in the table stops: an unknown state is not repeated.
"""

from __future__ import annotations

from enum import Enum

from redis import exceptions

from state.errors import StateRefusedError, TopologyError, TransactionError
from state.printable import said_by


class Remedy(Enum):
    """What the caller does next."""

    RETRY = "retry"
    """The outcome is unknown or the server is not ready: the identical call again."""
    REFRESH = "refresh"
    """The function library is gone: load it, then the identical call again."""
    STOP = "stop"


_RETRY_CODES = frozenset({"LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "NOREPLICAS"})

_STOP_SENTENCES = {
    "NOAUTH": "asks for a password; give it in the URL, as in redis://:PASSWORD@host:6379",
    "WRONGPASS": "refused the user name or password; check both in the URL",
    "NOPERM": "does not let this user do what txbatch needs; grant what `txbatch acl TOPOLOGY` prints",
    "READONLY": "is a replica; give the address of its primary",
    "MISCONF": "refuses writes because it cannot save to its disk; free disk space and look at its log",
    "OOM": "is out of memory; raise maxmemory or remove data",
    "WRONGTYPE": "holds a key of another type than txbatch expects; remove it or choose another topology id",
    "MOVED": "is a cluster node that does not own this topology; give the address of the node that does",
    "ASK": "is a cluster node that is giving this topology away; try again when that is done",
    "CROSSSLOT": "is a cluster that spreads this topology's keys",
    "REGRESSED": "has lost the state of this topology, or holds an older one",
    "TYPE": "holds state of another type than declared",
    "NOPROTO": "does not speak a protocol version txbatch knows",
}

_USAGE_SENTENCES = {
    "db index is out of range": "has no database of that number; give one it has, as in redis://host:6379/0",
    "invalid db index": "has no database of that number; give one it has, as in redis://host:6379/0",
    "select is not allowed in cluster mode": "is a cluster, which has database 0 only; leave the number out of the URL",
}
"""Answers to an address that was mistyped, by a part of their text."""

_TLS_SENTENCES = {
    "CERTIFICATE_VERIFY_FAILED": "shows a certificate that is not trusted; check ssl_ca_certs and the host's name",
    "CERTIFICATE_REQUIRED": "asks for a client certificate; give ssl_certfile and ssl_keyfile in the URL",
    "WRONG_VERSION_NUMBER": "does not speak TLS on this port; give its TLS port, or write redis://",
    "record layer failure": "does not speak TLS on this port; give its TLS port, or write redis://",
    "[X509": "cannot be reached with the certificates named in the URL: a file does not hold what its option says",
    "[SSL] PEM lib": "cannot be reached with the certificates named in the URL: certificate and key do not fit",
}
"""Failures of the handshake that do not pass by themselves, by a part of their text."""

_CODES_BY_CLASS: tuple[tuple[type[Exception], str], ...] = (
    (exceptions.AuthenticationError, "WRONGPASS"),
    (exceptions.AuthenticationWrongNumberOfArgsError, "WRONGPASS"),
    (exceptions.AuthorizationError, "NOPERM"),
    (exceptions.BusyLoadingError, "LOADING"),
    (exceptions.ClusterCrossSlotError, "CROSSSLOT"),
    (exceptions.MasterDownError, "MASTERDOWN"),
    (exceptions.ClusterDownError, "CLUSTERDOWN"),
    (exceptions.MovedError, "MOVED"),
    (exceptions.AskError, "ASK"),
    (exceptions.NoPermissionError, "NOPERM"),
    (exceptions.OutOfMemoryError, "OOM"),
    (exceptions.ReadOnlyError, "READONLY"),
    (exceptions.TryAgainError, "TRYAGAIN"),
)
"""redis-py cuts the code off the errors it has classes for; subclasses come first."""


def error_code(error: Exception) -> str:
    """The leading word of a server's error ("OOM"), or "" when it is not from the server."""
    for error_class, code in _CODES_BY_CLASS:
        if isinstance(error, error_class):
            return "NOAUTH" if "Authentication required" in str(error) else code
    first = str(error).split(" ", 1)[0]
    return first if first.isupper() and isinstance(error, exceptions.ResponseError) else ""


def remedy_of(error: Exception) -> Remedy:
    """What to do about an error redis-py raised."""
    code, text = error_code(error), str(error)
    if code in _RETRY_CODES:
        return Remedy.RETRY
    if code in _STOP_SENTENCES:
        return Remedy.STOP
    if isinstance(error, (exceptions.ConnectionError, exceptions.TimeoutError)):
        return Remedy.STOP if any(part in text for part in _TLS_SENTENCES) else Remedy.RETRY
    if isinstance(error, exceptions.ResponseError) and "Function not found" in text:
        return Remedy.REFRESH
    return Remedy.STOP


def stop_error(error: Exception, server: str) -> TransactionError:
    """What a call ends with when repeating it would not help; called by `RedisConnection`."""
    text = str(error).lower()
    for part, sentence in _USAGE_SENTENCES.items():
        if part in text:
            return TopologyError(f"server {server} {sentence} (it said: {said_by(error)})")
    return StateRefusedError(stop_sentence(error, server))


def stop_sentence(error: Exception, server: str) -> str:
    """The sentence of a `StateRefusedError`: what the server is, what to do, what it said."""
    code, said = error_code(error), said_by(error)
    if code in _STOP_SENTENCES:
        return f"server {server} {_STOP_SENTENCES[code]} (it said: {said})"
    for part, sentence in _TLS_SENTENCES.items():
        if part in str(error):
            return f"server {server} {sentence} ({said})"
    if "unknown command" in said.lower():
        return f"server {server} lacks a command; Redis >= 7.0 or Valkey >= 7.2 is needed (it said: {said})"
    return f"server {server} answered with an error txbatch does not know: {said}"


def hint_for(error: Exception, server: str) -> str:
    """What an address might have meant when nobody answers at it, to be put after the error; often nothing."""
    text = str(error).lower()
    if server.startswith("rediss://") and any(part in text for part in ("eof", "closed", "reset")):
        return "; if it asks for a client certificate, give ssl_certfile and ssl_keyfile"
    if server.startswith("rediss://") and ("timed out" in text or "timeout" in text):
        return "; if this port does not speak TLS, write redis://"
    if server.startswith("redis://") and any(part in text for part in ("closed", "reset")):
        return "; if this port speaks TLS only, write rediss://"
    return ""
