"""What real clients did and saw, with times, as a checker of linearizability reads it; see `../histories`.

Each client writes a file of its own, a line an operation. A commit has two lines, since its process may not live to
hear the answer. All times are of the machine's monotonic clock, which its processes share.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Any

from state.commits.commit import Commit, CommitReply
from state.commits.packed_writes import unpacked
from state.commits.write_set import WriteSet
from state.redis_owner.store import RedisStore
from tests.support.chaos.jobs import REPOSITORY

CHECKER = REPOSITORY / ".programs" / "histories"
"""The checker, built by ``tools/bootstrap.sh go``."""
CHECK_S = 60


class Verdict(StrEnum):
    """What the checker says of a history."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNDECIDED = "undecided"


class Operations:
    """The file of one client; a line is in it when the call returns, whatever becomes of the process."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, kind: str, **what: Any) -> None:
        """Adds a line."""
        with self._path.open("ab", buffering=0) as file:
            file.write(f"{json.dumps({'kind': kind, **what})}\n".encode())


class Reads:
    """What one client reads, one read after the other; of equal ones in a row, the first and the last are written."""

    def __init__(self, path: Path) -> None:
        self._operations = Operations(path)
        self._shown: dict[str, Any] | None = None
        self._repeated: dict[str, Any] | None = None

    def add(self, call_ns: int, committed: int, shows: Mapping[str, int] | None = None) -> None:
        """Adds a read that has just returned.

        Args:
            call_ns: when it was called.
            committed: the last committed txid.
            shows: all that it saw; None if it asked for no more than the txid.
        """
        shown = {"committed": committed, "shows": shows}
        read = {"call": call_ns, "return": time.monotonic_ns(), **shown}
        if shown == self._shown:
            self._repeated = read
            return
        self.close()
        self._shown = shown
        self._operations.add("read", **read)

    def close(self) -> None:
        """Writes what is held back."""
        if self._repeated is not None:
            self._operations.add("read", **self._repeated)
        self._repeated = None


class History:
    """The history of one topology.

    Args:
        folder: for the files of its clients; made here.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.onlooker, self.position = Reads(folder / "onlooker.jsonl"), Reads(folder / "position.jsonl")
        self._losses = Operations(folder / "losses.jsonl")

    @contextmanager
    def losing(self) -> Iterator[None]:
        """A block in which the server may lose its last writes."""
        call_ns = time.monotonic_ns()
        try:
            yield
        finally:
            self._losses.add("loss", **{"call": call_ns, "return": time.monotonic_ns()})

    def verdict(self) -> Verdict | None:
        """Has the history checked; None if this machine has no checker."""
        self.onlooker.close()
        self.position.close()
        return verdict(self.folder)

    def shown(self) -> str:
        """Copies the history to where it stays, and returns how to look at it."""
        kept = Path(tempfile.mkdtemp(prefix="txbatch-history-"))
        shutil.copytree(self.folder, kept / "history")
        return f"to see it, run {CHECKER} -picture {kept / 'page.html'} {kept / 'history'}"


def verdict(folder: Path, checker: Path = CHECKER) -> Verdict | None:
    """Has a folder's history checked; None without a checker."""
    if not checker.exists():
        return None
    asked = subprocess.run(
        [str(checker), "-seconds", str(CHECK_S), str(folder)], capture_output=True, text=True, check=False
    )
    if not asked.stdout:
        raise RuntimeError(f"the history in {folder} cannot be checked: {asked.stderr.strip()}")
    return Verdict(json.loads(asked.stdout)["verdict"])


def record_commits(path: Path) -> None:
    """Has this process write down the commits that it sends from now on, and the answers it hears."""
    send, numbers, operations = RedisStore.commit, count(1), Operations(path)

    def commit(store: RedisStore, sent: Commit) -> CommitReply:
        number, attempts = next(numbers), sent.attempts
        operations.add(
            "commit",
            number=number,
            id=" ".join(map(str, attempts)),
            first=attempts[0].txid,
            last=attempts[-1].txid,
            call=time.monotonic_ns(),
            **_changes(sent.write_set),
        )
        reply = send(store, sent)
        operations.add("answer", number=number, answer=reply.status.value, **{"return": time.monotonic_ns()})
        return reply

    setattr(RedisStore, "commit", commit)  # noqa: B010 - mypy lets nobody assign to a method


def _changes(write_set: WriteSet) -> dict[str, dict[str, int]]:
    """What a write set puts and adds, by state and field; the ledger deletes nothing."""
    puts: dict[str, int] = {}
    increments: dict[str, int] = {}
    for name, writes in write_set.states.items():
        changes = unpacked(writes)
        puts |= {_named(name, field): value for field, value in changes.puts.items()}
        increments |= {_named(name, field): amount for field, amount in changes.increments.items()}
    return {"set": puts, "add": increments}


def _named(state: str, field: Any) -> str:
    return f"{state}/{field}" if field else state
