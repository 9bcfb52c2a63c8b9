"""What a committer meets that reads state while the state below its group may not be committed yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from state.errors import FailedException
from state.write_set import Field, StateKind


class RefusingReader:
    """A `StateReader` that refuses.

    It need not rely on what user code makes of the exception: the session has written the read down before, so
    the report says that there was one and is not used.
    """

    def read(self, name: str, kind: StateKind, fields: Sequence[Field], as_of_txid: int) -> Any:
        """Refuses.

        Raises:
            FailedException: always.
        """
        raise FailedException(f"state {name!r} cannot be read before the commit phase")
