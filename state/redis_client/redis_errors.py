"""The remedy for each error that a server or connection can raise, as a closed table.

Transient errors are retried, a missing function library is loaded again, and everything else stops with a
sentence. An error that is not in the table stops too: txbatch does not retry what it does not understand.
"""

from __future__ import annotations

from enum import Enum

from redis import exceptions

from state.errors import StateRefusedError, TopologyError, TransactionError
from state.printable import message_of, one_line
from state.troubles import Trouble


class Remedy(Enum):
    """What the caller has to do next."""

    RETRY = "retry"
    """The outcome is unknown or the server is not ready: repeat the identical call."""
    REFRESH = "refresh"
    """The function library is gone: load it, then repeat the identical call."""
    STOP = "stop"


_RETRY_CODES = frozenset({"LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "NOREPLICAS"})

MOVING_CODES = frozenset({"ASK", "TRYAGAIN", "MOVED"})
"""Errors of a cluster's nodes for a key whose slot is being moved, or belongs to another node."""

_STOP_SENTENCES = {
    "NOAUTH": "asks for a password; give it in the URL, as in redis://:PASSWORD@host:6379",
    "WRONGPASS": "refused the user name or password; check both in the URL",
    "NOPERM": "does not let this user do what txbatch needs; grant what `txbatch acl TOPOLOGY` prints",
    "READONLY": "is a replica; give the address of its primary",
    "MISCONF": "refuses writes because it cannot save to disk; free disk space and look at its log",
    "OOM": "is out of memory; raise maxmemory or remove data",
    "WRONGTYPE": "holds a key of another type than txbatch expects; remove it, or choose another topology id",
    "MOVED": "is a cluster node that does not own this topology; write redis+cluster://, or give the owner's address",
    "ASK": "is a cluster node that is handing this topology to another; write redis+cluster://, or try again then",
    "CROSSSLOT": "is a cluster that spreads this topology's keys over several slots",
    "REGRESSED": "has lost this topology's state, or holds an older one",
    "TORN": "has applied part of a write, as after a power failure; restore a copy taken at one moment",
    "TYPE": "holds state of another type than declared",
    "NOPROTO": "speaks no protocol version that txbatch knows",
}

_TROUBLES = {
    **dict.fromkeys(("NOAUTH", "WRONGPASS"), Trouble.SERVER_LOGIN),
    "NOPERM": Trouble.SERVER_RIGHTS,
    **dict.fromkeys(("READONLY", "MOVED", "ASK", "CROSSSLOT", "NOPROTO"), Trouble.SERVER_UNFIT),
    **dict.fromkeys(("MISCONF", "OOM"), Trouble.SERVER_FULL),
    **dict.fromkeys(("WRONGTYPE", "TYPE"), Trouble.STATE_VALUE),
    "REGRESSED": Trouble.REGRESSED,
    "TORN": Trouble.TORN,
}
"""Error code -> trouble, for codes in `_STOP_SENTENCES`."""

_USAGE_SENTENCES = {
    "db index is out of range": "has no database of that number; give one it has, as in redis://host:6379/0",
    "invalid db index": "has no database of that number; give one it has, as in redis://host:6379/0",
    "select is not allowed in cluster mode": "is a cluster, which has only database 0; leave the number out of the URL",
}
"""Errors that a mistyped address causes, by a part of their text."""

_TLS_SENTENCES = {
    "CERTIFICATE_VERIFY_FAILED": "presents an untrusted certificate; check ssl_ca_certs and the host's name",
    "CERTIFICATE_REQUIRED": "asks for a client certificate; give ssl_certfile and ssl_keyfile in the URL",
    "WRONG_VERSION_NUMBER": "does not speak TLS on this port; give its TLS port, or write redis://",
    "record layer failure": "does not speak TLS on this port; give its TLS port, or write redis://",
    "[X509": "cannot be reached with the certificates named in the URL: a file does not hold what its option says",
    "[SSL] PEM lib": "cannot be reached with the certificates named in the URL: certificate and key do not match",
}
"""Handshake failures that retrying cannot fix, by a part of their text."""

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
"""redis-py strips the code from errors it has classes for; subclasses are listed first."""


_KILLED = "Script killed by user"
"""The error of a call that was killed by FUNCTION KILL, which works only before its first write."""
_DENIED_IN_A_FUNCTION = ("can't run this command", "can't access at least one of the keys")
"""Redis 7's error, without a code, for a function's command that its caller may not run."""
_NOT_HERE = "non local key"
"""The error of a function that needs a missing key while its slot moves; never raised after its first write."""
_BLOCKED = ("unknown command", "unknown subcommand", "not allowed", "not supported", "unsupported", "disabled")
"""Words in services' errors for a blocked command, unless they report a missing right."""


def error_code(error: Exception) -> str:
    """Returns the leading word of a server's error ("OOM"), or "" if it is not from the server."""
    for error_class, code in _CODES_BY_CLASS:
        if isinstance(error, error_class):
            return "NOAUTH" if "Authentication required" in str(error) else code
    if any(part in str(error) for part in _DENIED_IN_A_FUNCTION):
        return "NOPERM"
    if _NOT_HERE in str(error):
        return "TRYAGAIN"
    first = str(error).split(" ", 1)[0]
    return first if first.isupper() and isinstance(error, exceptions.ResponseError) else ""


_WAIT = "WAIT cannot be used with replica"
_PLACE_CODES = frozenset({"MOVED", "READONLY", "UNBLOCKED", "CLUSTERDOWN", "MASTERDOWN", "LOADING"})


def has_moved(error: Exception) -> bool:
    """Returns whether a server that may move has to be found again: it is gone, or has another role now."""
    if error_code(error) in _PLACE_CODES or _WAIT in str(error):
        return True
    is_broken = isinstance(error, (exceptions.ConnectionError, exceptions.TimeoutError))
    return is_broken and remedy_of(error) is Remedy.RETRY


def remedy_of(error: Exception, *, may_move: bool = False) -> Remedy:
    """Returns the remedy for an error of redis-py, for a server that may move or one that may not."""
    if may_move and (has_moved(error) or error_code(error) == "ASK"):
        return Remedy.RETRY
    code, text = error_code(error), str(error)
    if code in _RETRY_CODES:
        return Remedy.RETRY
    if code in _STOP_SENTENCES:
        return Remedy.STOP
    if isinstance(error, (exceptions.ConnectionError, exceptions.TimeoutError)):
        return Remedy.STOP if any(part in text for part in _TLS_SENTENCES) else Remedy.RETRY
    if isinstance(error, exceptions.ResponseError) and "Function not found" in text:
        return Remedy.REFRESH
    if isinstance(error, exceptions.ResponseError) and _KILLED in text:
        return Remedy.RETRY
    return Remedy.STOP


def stop_error(error: Exception, server: str, key: str = "") -> TransactionError:
    """Returns the error for a call that is not worth repeating; `key` is the key of its command."""
    text = str(error).lower()
    for part, sentence in _USAGE_SENTENCES.items():
        if part in text:
            refused = TopologyError(f"server {server} {sentence} (it said: {message_of(error)})")
            return refused.about(Trouble.SERVER_ADDRESS)
    return StateRefusedError(stop_sentence(error, server, key)).about(_trouble_of(error))


def library_replaced_error(server: str, loads: int) -> StateRefusedError:
    """Returns the error for a call whose function was missing again after each of `loads` successful loads."""
    return StateRefusedError(
        f"server {server} does not keep txbatch's function library; find what removes it, then run again; it was "
        f"loaded {loads} times during one call and was gone again each time; another program replaces or removes it "
        "(FUNCTION FLUSH, FUNCTION RESTORE, a library of the same name), or this address leads to several servers"
    ).about(Trouble.LIBRARY_REPLACED)


def stop_sentence(error: Exception, server: str, key: str = "") -> str:
    """Returns the message of a `StateRefusedError`: what is wrong with the server, the remedy, and its own words."""
    code, said = error_code(error), message_of(error)
    if code in _STOP_SENTENCES:
        of_key, more = (f"; the key is {one_line(key)!r}", "") if key and code == "WRONGTYPE" else ("", "")
        if of_key and "}:txbatch:" in key:  # a topology can be dropped whatever its records hold
            more = f"; or start over with `txbatch drop {key[1 : key.index('}')]}`"
        return f"server {server} {_STOP_SENTENCES[code]} (it said: {said}{of_key}){more}"
    for part, sentence in _TLS_SENTENCES.items():
        if part in str(error):
            return f"server {server} {sentence} ({said})"
    if "Function not found" in said:
        return (
            f"server {server} does not have txbatch's function library, and this user may not load it; run the "
            "topology once as a user that may, and again after each upgrade (`txbatch acl TOPOLOGY` prints such a "
            "user); if no user may, this service does not allow FUNCTION LOAD"
        )
    if _blocks_functions(said.lower()):
        return (
            f"server {server} does not allow FUNCTION LOAD and FCALL, by which txbatch commits; choose one that does; "
            "Redis has functions from 7.0 on and Valkey from 7.2; some services block them, as OCI Cache does for "
            "sharded clusters (docs/managed-redis.md has what is known): choose a service or plan that allows them (it "
            f"said: {said})"
        )
    if "unknown command" in said.lower():
        return f"server {server} lacks a command; use Redis >= 7.0 or Valkey >= 7.2 (it said: {said})"
    return f"server {server} answered with an error txbatch does not know: {said}"


def _blocks_functions(said: str) -> bool:
    return any(each in said for each in _BLOCKED) and ("function" in said or "fcall" in said)


def _trouble_of(error: Exception) -> Trouble:
    text = str(error)
    if any(part in text for part in _TLS_SENTENCES):
        return Trouble.SERVER_LOGIN
    if "Function not found" in text:
        return Trouble.SERVER_RIGHTS
    if "unknown command" in text.lower() or _blocks_functions(text.lower()):
        return Trouble.SERVER_UNFIT
    return _TROUBLES.get(error_code(error), Trouble.STATE_REFUSED)


def hint_for(error: Exception, server: str) -> str:
    """Returns a hint at what may be wrong with an address, to follow the error's text; "" if there is none."""
    text = str(error).lower()
    if server.startswith("rediss://") and any(part in text for part in ("eof", "closed", "reset")):
        return "; if it asks for a client certificate, give ssl_certfile and ssl_keyfile"
    if server.startswith("rediss://") and ("timed out" in text or "timeout" in text):
        return "; if this port does not speak TLS, write redis://"
    if server.startswith("redis://") and any(part in text for part in ("closed", "reset")):
        return "; if this port speaks TLS only, write rediss://"
    return ""
