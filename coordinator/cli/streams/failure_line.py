"""With ``--json``, a run that fails prints its line too: how far it got, and why it ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from coordinator.cli.exits import exit_code_of, sentence_of
from coordinator.cli.logs import without
from coordinator.cli.streams.standard_streams import is_without_reader
from coordinator.cli.streams.terminal import say_json
from coordinator.plain.run_summary import PlainStatistics
from coordinator.transactional.run_summary import RunStatistics
from state.errors import TransactionError
from state.printable import SENTENCE_LIMIT, block


@dataclass(slots=True)
class Reached:
    """How far a run got; filled in as it gets there.

    Attributes:
        topology_id: None until the factory has returned a topology.
        statistics: of the run, kept current by it; None until it has begun.
    """

    topology_id: str | None = None
    statistics: RunStatistics | PlainStatistics | None = None

    def to_dict(self) -> dict[str, Any]:
        """Returns the figures so far; those of a run that has not begun are left out."""
        if self.topology_id is None or self.statistics is None:
            return {"topology": self.topology_id}
        return self.statistics.to_dict(self.topology_id)


@contextmanager
def failure_told(hidden: Mapping[str, str], *, is_wanted: bool) -> Iterator[Reached]:
    """Prints a line of JSON on standard output if the block raises, and lets the error pass (once a command).

    Args:
        hidden: text that must never be printed -> what is printed in its place.
        is_wanted: whether ``--json`` was given.
    """
    reached = Reached()
    try:
        yield reached
    except BaseException as error:
        if is_wanted and not is_without_reader(error):
            say_json({**reached.to_dict(), "error": _told(error, hidden)})
        raise


def _told(error: BaseException, hidden: Mapping[str, str]) -> dict[str, Any]:
    """Returns exit code, message, and the entry of the troubleshooting page if there is one."""
    message = without(hidden, block(sentence_of(error), line_limit=SENTENCE_LIMIT))
    told: dict[str, Any] = {"exit_code": int(exit_code_of(error)), "message": message}
    if isinstance(error, TransactionError):
        told["trouble"] = error.trouble.value
    return told
