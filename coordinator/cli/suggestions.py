"""Completes the commands that messages and findings suggest, so that they work as printed.

Most messages are written where nobody knows which server options the command line was given.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from coordinator.inspection.finding import Finding, Weight
from state.printable import SENTENCE_LIMIT, one_line
from state.redis_client.address import redact

_SUGGESTED = re.compile(r"`(txbatch (?:drop|quarantine list) [^`\s]+)`")

_INDENT = " " * 6


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


def lines_of(findings: Iterable[Finding], options: str = "") -> Iterator[str]:
    """Yields the lines that show the findings.

    Args:
        findings: in the order to show them.
        options: the server options of the command, which commands that a remedy suggests repeat.
    """
    for finding in findings:
        yield one_line(f"{finding.weight.upper():<5} {finding.subject}: {finding.found}", SENTENCE_LIMIT)
        if finding.weight is not Weight.OK:
            yield f"{_INDENT}why: {finding.why}"
            yield one_line(f"{_INDENT}do:  {with_server_options(finding.remedy, options)}", SENTENCE_LIMIT)
