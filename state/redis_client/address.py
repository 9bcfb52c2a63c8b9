"""Checks a server's address, and hides its secrets for display.

An address names one server; or sentinels and the service whose primary they know; or some nodes of a cluster. redis-py
reads an invalid database number as 0, passes an unknown option to a connection it makes much later, and takes a
password with a slash in it for a host. This module detects all of that before anything connects, and its messages show
hosts but never credentials.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from state.errors import TopologyError
from state.troubles import Trouble

SENTINEL, CLUSTER = "+sentinel", "+cluster"
SCHEMES = (
    "redis",
    "rediss",
    "unix",
    *(f"{each}{kind}" for kind in (SENTINEL, CLUSTER) for each in ("redis", "rediss")),
)
FORMS = (
    "give redis://host:6379, rediss://host:6379, unix:///path/to/socket, "
    "redis+sentinel://host:26379,host:26379/service or redis+cluster://host:6379,host:6379"
)
SENTINEL_PORT, SERVER_PORT = 26379, 6379
MAX_PORT = 65_535
HIDDEN = "?"
SECRET_LENGTH_MIN = 4
"""Shorter passwords are not hidden in other text: they would match parts of ordinary words."""

_NAMES = ("username", "password", "client_name")
_SECONDS = ("socket_timeout", "socket_connect_timeout")
_SWITCHES = ("socket_keepalive", "ssl_check_hostname")
_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_TLS = (*_FILES, "ssl_ca_path", "ssl_cert_reqs", "ssl_check_hostname", "ssl_ciphers", "ssl_password")
OPTIONS = tuple(sorted({"db", *_NAMES, *_SECONDS, *_SWITCHES, *_TLS}))
SENTINEL_OPTIONS = ("sentinel_password", "sentinel_username")
_SECRETS = ("password", "ssl_password", "sentinel_password")
_CERTIFICATE_REQUIREMENTS = ("required", "optional", "none")
_BOOLEANS = ("true", "false", "yes", "no", "1", "0")

_HOST = r"\[[0-9A-Fa-f:.%\w]*\]?|[A-Za-z0-9._-]*"
_ADDRESS = re.compile(rf"(?P<host>{_HOST})(?P<port>:[^/]*)?(?P<db>/.*)?")
_SERVICE = re.compile(r"[A-Za-z0-9._-]+")

Place = tuple[str, int]
"""Host and port."""


def check_address(url: str) -> None:
    """Refuses a malformed address; called before every connection (driver, executor). Messages show no credentials."""
    scheme, separator, rest = url.partition("://")
    if not url:
        raise TopologyError(f"redis url is empty; {FORMS}").about(Trouble.SERVER_ADDRESS)
    _expect(bool(separator), url, "has no scheme", FORMS)
    _expect(scheme in SCHEMES, url, f"begins with {_shown_scheme(scheme)}", FORMS)
    _expect(url.isprintable() and " " not in url, url, "contains a space or a control character", "write it as %20")
    credentials, _, address = rest.rpartition("@")
    for character in "/?#":
        code = f"%{ord(character):02X}"
        _expect(
            character not in credentials,
            url,
            f"has a {character!r} before its last '@'",
            f"if it is part of the user name or password, write it as {code}, and an '@' as %40",
        )
    for character in "[]":
        remedy = f"if it is part of the user name or password, write it as %{ord(character):02X}"
        _expect(character not in credentials, url, f"has a {character!r} before its last '@'", remedy)
    _expect(url.isascii(), url, "contains a non-ASCII character", "percent-encode its UTF-8 bytes")
    _expect("#" not in address, url, "contains a '#'", "leave out what follows it, or write it as %23")
    place, _, query = address.partition("?")
    if scheme == "unix":
        _check_path(url, place)
        number = ""
    else:
        hosts, number = _parts(scheme, place)
        _check_service(url, scheme, place)
        for each in hosts:
            _check_place(url, each + number)
    _check_options(url, scheme, query, has_number=bool(number.strip("/")))


def is_encrypted(url: str) -> bool:
    return url.startswith("rediss")


def kind_of(url: str) -> str:
    """Returns the kind of a checked address: `SENTINEL`, `CLUSTER`, or "" for one server."""
    _, plus, kind = url.partition("://")[0].partition("+")
    return plus + kind


def places_of(url: str) -> list[Place]:
    """Returns the places that a checked address names; the host is "" if it is left out."""
    scheme, _, rest = url.partition("://")
    if scheme == "unix":
        return []
    default = SENTINEL_PORT if kind_of(url) == SENTINEL else SERVER_PORT
    found = [_ADDRESS.fullmatch(each) for each in _parts(scheme, rest.rpartition("@")[2].partition("?")[0])[0]]
    return [(each["host"].strip("[]"), int((each["port"] or "")[1:] or default)) for each in found if each is not None]


def service_of(url: str) -> str:
    """Returns the service in an address of sentinels."""
    return url.partition("://")[2].rpartition("@")[2].partition("?")[0].split("/")[1]


def sentinel_login(url: str) -> dict[str, str]:
    """Returns user name and password for the sentinels, if the address has them."""
    given = parse_qsl(url.partition("?")[2])
    return {name.removeprefix("sentinel_"): value for name, value in given if name in SENTINEL_OPTIONS}


def address_at(url: str, place: Place) -> str:
    """Returns the address of the server at one place, with all else from an address of several."""
    scheme, _, rest = url.partition("://")
    credentials, at, address = rest.rpartition("@")
    names, _, query = address.partition("?")
    host = f"[{place[0]}]" if ":" in place[0] else place[0]
    options = "&".join(each for each in query.split("&") if each and not each.startswith("sentinel_"))
    plain = f"{scheme.partition('+')[0]}://{credentials}{at}{host}:{place[1]}{_parts(scheme, names)[1]}"
    return f"{plain}?{options}" if options else plain


def redact(url: str) -> str:
    """Returns the URL without user name, password and options, fit for messages and logs (driver, executor).

    Also handles malformed URLs: a part that might be a misplaced secret becomes "?".
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        scheme, rest = "", url
    credentials, _, address = rest.rpartition("@")
    place = re.split(r"[?#]", address, maxsplit=1)[0]
    shown = place if scheme == "unix" and separator else _shown_places(scheme, place, needs_port=not separator)
    if re.search(r"[?#]", credentials) or not shown.isprintable():
        shown = HIDDEN  # the text after the last '@' may be the rest of an option
    return f"{_shown_scheme(scheme)}{shown}" if separator else shown


def secrets_in(url: str) -> dict[str, str]:
    """Returns secret part of a URL -> the text to show instead, longest first."""
    credentials = url.partition("://")[2].rpartition("@")[0]
    found = {credentials.partition(":")[2]}
    found |= {value for name, value in parse_qsl(url.partition("?")[2]) if name in _SECRETS}
    found |= {unquote(secret) for secret in found}
    hidden = {secret: "…" for secret in found if len(secret) >= SECRET_LENGTH_MIN}
    if url and redact(url) != url:
        hidden[url] = redact(url)
    return dict(sorted(hidden.items(), key=lambda item: -len(item[0])))


def _expect(is_sound: bool, url: str, what: str, remedy: str) -> None:
    if not is_sound:
        raise TopologyError(f"redis url {redact(url)!r} {what}; {remedy}").about(Trouble.SERVER_ADDRESS)


def _check_path(url: str, place: str) -> None:
    _expect(place.startswith("/") and len(place) > 1, url, "has no absolute path", "give unix:///path/to/socket")


def _parts(scheme: str, place: str) -> tuple[list[str], str]:
    """Returns the hosts with their ports, and the database after hosts and service, with its "/", or ""."""
    if "+" not in scheme:
        hosts, slash, number = place.partition("/")
        return [hosts], slash + number
    names, slash, rest = place.partition("/")
    if scheme.endswith(SENTINEL):
        _, slash, rest = rest.partition("/")
    return names.split(","), slash + rest


def _check_service(url: str, scheme: str, place: str) -> None:
    service = place.partition("/")[2].partition("/")[0]
    if scheme.endswith(SENTINEL):
        remedy = "give the name by which sentinels know the primary, as in redis+sentinel://host:26379/mymaster"
        _expect(_SERVICE.fullmatch(service) is not None, url, "has no service", remedy)
    elif scheme.endswith(CLUSTER):
        _expect(not service, url, "has a database", "leave it out: a cluster has only database 0")
    if "+" in scheme:
        named = all(place.partition("/")[0].split(","))
        _expect(named, url, "names no host", "give host:port, and further ones after commas")


def _check_place(url: str, place: str) -> None:
    found = _ADDRESS.fullmatch(place)
    is_readable = found is not None and ("[" in place) == ("]" in place)
    _expect(is_readable, url, "has an invalid host", "give a name, an IPv4 address or [an IPv6 address]")
    assert found is not None
    port, number = found["port"], (found["db"] or "").removeprefix("/")
    _expect(
        port is None or (port[1:].isdecimal() and 0 < int(port[1:]) <= MAX_PORT),
        url,
        f"has a port that is not a number from 1 to {MAX_PORT}",
        "give a port, or, if this is a password, put it before an '@', as in redis://:PASSWORD@host:6379",
    )
    _expect(
        not number or number.isdecimal(),
        url,
        "has a database that is not a number",
        "give one as in redis://host:6379/0, and write a '/' in a password as %2F",
    )


def _check_options(url: str, scheme: str, query: str, *, has_number: bool) -> None:
    seen: set[str] = set()
    for name, value in parse_qsl(query, keep_blank_values=True):
        options = _options_of(scheme)
        known = f"use one of {', '.join(options)}"
        _expect(name in options, url, f"has the unknown option {_shown_option(name)}", known)
        _expect(bool(value), url, f"gives option {name} no value", f"write {name}=VALUE, or leave it out")
        _expect(name not in seen, url, f"gives option {name} twice", "keep one")
        _expect(name not in _TLS or is_encrypted(url), url, f"has option {name} without TLS", "use rediss://")
        seen.add(name)
        _check_value(url, name, value)
    _expect(not (has_number and "db" in seen), url, "gives the database twice", "keep /NUMBER or db=NUMBER")


def _options_of(scheme: str) -> tuple[str, ...]:
    if scheme.endswith(SENTINEL):
        return tuple(sorted((*OPTIONS, *SENTINEL_OPTIONS)))
    return tuple(name for name in OPTIONS if name != "db" or not scheme.endswith(CLUSTER))


def _check_value(url: str, name: str, value: str) -> None:
    what = f"has an option {name} that is not"
    if name == "db":
        _expect(value.isdecimal(), url, f"{what} a database number", "give db=0 or another whole number")
    elif name in _SECONDS:
        is_number = re.fullmatch(r"\d+(\.\d+)?", value) is not None and float(value) > 0
        _expect(is_number, url, f"{what} a number of seconds", f"give {name}=5")
    elif name in _SWITCHES:
        _expect(value.lower() in _BOOLEANS, url, f"{what} true or false", f"give {name}=true or {name}=false")
    elif name == "ssl_cert_reqs":
        allowed = ", ".join(_CERTIFICATE_REQUIREMENTS)
        _expect(value in _CERTIFICATE_REQUIREMENTS, url, f"{what} one of {allowed}", "give one of them")
    elif name in _FILES:
        remedy = "check the path; if committers read state, every executor needs the file too"
        _expect(Path(value).is_file(), url, f"names a file in {name} that is not on this host ({value!r})", remedy)


def _shown_scheme(scheme: str) -> str:
    is_shown = scheme in SCHEMES or re.fullmatch(r"[a-z][a-z0-9+-]{0,9}", scheme) is not None
    return f"{scheme}://" if is_shown else "?://"


def _shown_option(name: str) -> str:
    return repr(name) if re.fullmatch(r"[a-z_]{1,40}", name) else "?"  # it may be part of a password


def _shown_places(scheme: str, place: str, *, needs_port: bool) -> str:
    if scheme not in SCHEMES or "+" not in scheme:
        return _shown_place(place, needs_port=needs_port)
    hosts, number = _parts(scheme, place)
    shown = ",".join(_shown_place(each, needs_port=False) for each in hosts)
    if scheme.endswith(SENTINEL) and "/" in place:
        service = place.partition("/")[2].partition("/")[0]
        shown += f"/{service if _SERVICE.fullmatch(service) else HIDDEN}"
    return shown + (number if not number or number[1:].isdecimal() else f"/{HIDDEN}")


def _shown_place(place: str, *, needs_port: bool) -> str:
    """Returns host, port and database; a port or database that is not a number is hidden: it may be a password."""
    found = _ADDRESS.fullmatch(place)
    if found is None:
        return HIDDEN
    port, number = found["port"] or "", (found["db"] or "").rstrip("/")
    if needs_port and not port[1:].isdecimal():
        return HIDDEN  # without a scheme, only a port distinguishes a host from a password
    shown_port = port if port in ("", ":") or port[1:].isdecimal() else f":{HIDDEN}"
    shown_number = number if not number or number[1:].isdecimal() else f"/{HIDDEN}"
    return f"{found['host']}{shown_port}{shown_number}"


PLAINTEXT_VARIABLE = "TXBATCH_ALLOW_PLAINTEXT"

Resolve = Callable[[str], Iterable[str]]


def from_environment(variable: str, environment: Mapping[str, str] = os.environ) -> str:
    """Returns a variable of the environment without surrounding whitespace; empty if it is not set.

    Values read from a file or a secret often end in blanks or a newline.
    """
    return environment.get(variable, "").strip()


def require_encryption(
    url: str,
    *,
    allow_plaintext: bool = False,
    environment: Mapping[str, str] = os.environ,
    resolve: Resolve | None = None,
) -> None:
    """Refuses to talk to another machine in plain text, unless the user allows it.

    Called wherever an address enters: by `run`, by commands that read state, and on executors that take it from their
    environment. Exempt are a Unix socket, a loopback address and a name that resolves to loopback only.

    Args:
        url: the server's address.
        allow_plaintext: whether the user allows plain text.
        environment: ``TXBATCH_ALLOW_PLAINTEXT=1`` in it allows plain text too.
        resolve: host -> its addresses; None asks the system.
    """
    check_address(url)
    is_allowed = allow_plaintext or from_environment(PLAINTEXT_VARIABLE, environment) == "1"
    if url.startswith("unix") or is_encrypted(url) or is_allowed:
        return
    if all(not host or _is_loopback(host, resolve or _resolved) for host, _ in places_of(url)):
        return
    raise TopologyError(
        f"server {redact(url)} is on another machine and the connection would be in plain text: others could read "
        f"password and state on the way; use rediss://, or, on a network you trust, --allow-plaintext "
        f"(allow_plaintext=True in Python, {PLAINTEXT_VARIABLE}=1 in the environment)"
    ).about(Trouble.PLAINTEXT)


def require_encryption_at(url: str, place: Place, environment: Mapping[str, str] = os.environ) -> None:
    """Refuses plain text to a server on another machine that was found through servers on this one.

    Called before each connection to a discovered place. An address that names another machine has passed
    `require_encryption` with the user's permission, which also covers the places discovered there.
    """
    named = all(not host or _is_loopback(host, _resolved) for host, _ in places_of(url))
    if is_encrypted(url) or not named or from_environment(PLAINTEXT_VARIABLE, environment) == "1":
        return
    if not _is_loopback(place[0], _resolved):
        raise TopologyError(
            f"server {redact(url)} leads to {place[0]}:{place[1]}, which is on another machine, and the connection "
            f"would be in plain text; use {url.partition('://')[0].replace('redis', 'rediss', 1)}://, or, on a network "
            f"you trust, set {PLAINTEXT_VARIABLE}=1 in the environment"
        ).about(Trouble.PLAINTEXT)


def _is_loopback(host: str, resolve: Resolve) -> bool:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        addresses = list(resolve(host))
    return bool(addresses) and all(ipaddress.ip_address(each.partition("%")[0]).is_loopback for each in addresses)


def _resolved(host: str) -> list[str]:
    try:
        return sorted({str(entry[4][0]) for entry in socket.getaddrinfo(host, None)})
    except (OSError, UnicodeError):  # an unknown name is not this machine
        return []
