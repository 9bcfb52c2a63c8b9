"""Refuses a committer's reads while the transactions below its group may not be committed yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from state.errors import FailedException
from state.values.state_kind import Field, StateKind


class RefusingReader:
    """A `StateReader` that refuses every read.

    It does not matter how user code handles the exception: the session has already recorded the read, so the driver
    sees it in the report and discards the report.
    """

    def read(self, name: str, kind: StateKind, fields: Sequence[Field], as_of_txid: int) -> Any:
        """Refuses.

        Raises:
            FailedException: always.
        """
        raise FailedException(f"state {name!r} cannot be read before the commit phase")
