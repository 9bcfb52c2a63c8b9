"""Whether a standalone master can be reached, before Spark spends a minute to find out."""

from __future__ import annotations

import re
import socket

from state.errors import EngineError
from state.troubles import Trouble

STANDALONE = re.compile(r"spark://(?P<addresses>.+)")
CONNECT_TIMEOUT_S = 5.0


def check_reachable(master: str, timeout_s: float = CONNECT_TIMEOUT_S) -> None:
    """Returns if a master of its kind listens, or if the kind is none that could be asked (driver, once a run).

    Raises:
        EngineError: none of the addresses of a ``spark://`` master accepts a connection.
    """
    named = STANDALONE.fullmatch(master)
    if named is None:
        return
    refusals = [_refusal(address, timeout_s) for address in named["addresses"].split(",")]
    if all(refusals):
        raise EngineError(
            f"Spark master {master!r} cannot be reached: {'; '.join(map(str, refusals))}; start it, or check --master"
        ).about(Trouble.SPARK_MASTER)


def _refusal(address: str, timeout_s: float) -> str | None:
    """Why an address cannot be reached; None if it can, or if it is for Spark to refuse."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        return None
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout_s).close()
    except TimeoutError:
        return f"{address} gave no answer within {timeout_s:g} s"
    except (OSError, OverflowError) as error:
        return f"{address}: {getattr(error, 'strerror', None) or error}"
    return None
