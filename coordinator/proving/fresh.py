"""Runs a topology in a new interpreter, whose strings have other hashes: their sets are in another order there.

A copy of this process has its hashes. A new one imports what can be imported; whatever belongs to ``__main__``, or to
no module, is sent by value.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import partial

from coordinator.plain.plain_topology import PlainTopology
from coordinator.proving.evidence import sentence_of
from coordinator.proving.forked import in_a_copy
from coordinator.proving.quiet_run import QuietRun, quiet_run
from coordinator.proving.subject import provable
from coordinator.topology.building.topology import Topology
from coordinator.topology.planning.pickling import dumps, dumps_by_value
from state.errors import TransactionError
from state.printable import one_line, said_by

Given = Topology | PlainTopology | Callable[[], Topology | PlainTopology]
START = "import sys; sys.path[:] = sys.argv[1:]; from coordinator.proving.fresh import answer; answer()"


def packed(given: Given) -> bytes | str:
    """Returns a topology or its factory as a new interpreter can read it, or why there is no such form."""
    try:
        by_name = dumps(given)
        return dumps_by_value(given) if b"__main__" in by_name else by_name
    except Exception as error:  # noqa: BLE001 - pickling runs user code
        return one_line(f"it is in this process only ({type(error).__name__}: {error})")


def fresh_run(given: bytes, batches: int, returns_within_s: float, hash_seed: int) -> QuietRun | str:
    """Runs it quietly in a new interpreter; returns why it could not otherwise."""
    started = subprocess.run(
        [sys.executable, "-c", START, *sys.path],
        input=pickle.dumps((sys.argv, given, batches, returns_within_s)),
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        check=False,
    )
    if not started.stdout:
        return f"the new interpreter has ended with code {started.returncode}"
    found: QuietRun | str = pickle.loads(started.stdout)
    return found


def answer() -> None:
    """Called in the new interpreter."""
    answering = os.dup(1)
    os.dup2(2, 1)  # user code may print
    sys.argv, given, batches, returns_within_s = pickle.load(sys.stdin.buffer)
    with open(answering, "wb") as pipe:  # noqa: PTH123 - a descriptor
        pipe.write(pickle.dumps(_answer(given, batches, returns_within_s), pickle.HIGHEST_PROTOCOL))


def _answer(given: bytes, batches: int, returns_within_s: float) -> QuietRun | str:
    try:
        topology = provable(pickle.loads(given))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - loading runs user code
        return one_line(f"a new interpreter cannot make it ({type(error).__name__}: {said_by(error)})")
    try:
        return in_a_copy(partial(quiet_run, topology, batches), returns_within_s=returns_within_s)
    except TransactionError as error:
        return f"a run in a new interpreter ends: {sentence_of(error)}"
