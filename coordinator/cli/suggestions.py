"""Completes the commands that messages suggest, so that they work as printed.

Most messages are written where nobody knows which server options the command line was given.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from state.redis_client.address import redact

_SUGGESTED = re.compile(r"`(txbatch (?:drop|quarantine list) [^`\s]+)`")


def server_options(redis_url: str | None, data_dir: Path | None) -> str:
    """Returns the server options that were given as they would be typed, without the password; "" if none was.

    Args:
        redis_url: the value of ``--redis``.
        data_dir: the value of ``--data-dir``.
    """
    options = ""
    if redis_url is not None:
        options += f" --redis {shlex.quote(redact(redis_url))}"
    if data_dir is not None:
        options += f" --data-dir {shlex.quote(str(data_dir))}"
    return options


def with_server_options(text: str, options: str) -> str:
    """Returns a message in which each suggested command in backticks has the options of `server_options`."""
    return _SUGGESTED.sub(lambda found: f"`{found[1]}{options}`", text)
