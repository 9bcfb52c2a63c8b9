"""What to do about each error a server or connection can answer with: a closed table.

Retry what passes by itself, load the function library again when it is gone, and stop with a sentence
for everything else. An error that is not in the table stops: an unknown state is not repeated.
"""

from __future__ import annotations

from enum import Enum

from redis import exceptions


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
        return Remedy.STOP if "CERTIFICATE_VERIFY_FAILED" in text else Remedy.RETRY
    if isinstance(error, exceptions.ResponseError) and "Function not found" in text:
        return Remedy.REFRESH
    return Remedy.STOP


def stop_sentence(error: Exception, server: str) -> str:
    """The sentence of a `StateRefusedError`: what the server is, what to do, what it said."""
    code, text = error_code(error), str(error)
    if code in _STOP_SENTENCES:
        return f"server {server} {_STOP_SENTENCES[code]} (it said: {text})"
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return f"server {server} shows a certificate that is not trusted; check ssl_ca_certs ({text})"
    if "unknown command" in text.lower():
        return f"server {server} lacks a command; Redis >= 7.0 or Valkey >= 7.2 is needed (it said: {text})"
    return f"server {server} answered with an error txbatch does not know: {text}"


def redact(url: str) -> str:
    """The URL without user name, password and options, fit for messages and logs.

    Works on URLs nobody can parse too: what might hold a secret is left out.
    """
    scheme, separator, rest = url.partition("://")
    credentials, _, address = rest.rpartition("@")
    if not separator or scheme not in ("redis", "rediss", "unix"):
        return "?"
    if "?" in credentials or "#" in credentials:
        return f"{scheme}://?"
    return f"{scheme}://{address.partition('#')[0].partition('?')[0]}"
