"""Prints what an inspection found: one line each, and what to do below those that need it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coordinator.cli.suggestions import with_server_options
from coordinator.inspection.finding import Finding, Weight
from state.printable import SENTENCE_LIMIT, one_line

_INDENT = " " * 6


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
