"""Runs a topology in a new interpreter, where strings have other hashes and sets of them another order.

A copy of this process would have the same hashes. The new interpreter imports modules; objects of ``__main__``, or of
no module, are sent by value.
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
from state.printable import message_of, one_line

Given = Topology | PlainTopology | Callable[[], Topology | PlainTopology]
START = "import sys; sys.path[:] = sys.argv[1:]; from coordinator.proving.fresh import answer; answer()"


def packed(given: Given) -> bytes | str:
    """Returns a topology or its factory, pickled for a new interpreter, or why it cannot be pickled."""
    try:
        by_name = dumps(given)
        return dumps_by_value(given) if b"__main__" in by_name else by_name
    except Exception as error:  # noqa: BLE001 - pickling runs user code
        return one_line(f"it is in this process only ({type(error).__name__}: {error})")


def fresh_run(given: bytes, batches: int, returns_within_s: float, hash_seed: int) -> QuietRun | str:
    """Returns a quiet run in a new interpreter, or why there is none."""
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
    """Reads the topology, runs it and writes the answer; called in the new interpreter."""
    answering = os.dup(1)
    os.dup2(2, 1)  # user code may print
    sys.argv, given, batches, returns_within_s = pickle.load(sys.stdin.buffer)
    with open(answering, "wb") as pipe:  # noqa: PTH123 - a descriptor
        pipe.write(pickle.dumps(_answer(given, batches, returns_within_s), pickle.HIGHEST_PROTOCOL))


def _answer(given: bytes, batches: int, returns_within_s: float) -> QuietRun | str:
    try:
        topology = provable(pickle.loads(given))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - loading runs user code
        return one_line(f"a new interpreter cannot make it ({type(error).__name__}: {message_of(error)})")
    try:
        return in_a_copy(partial(quiet_run, topology, batches), returns_within_s=returns_within_s)
    except TransactionError as error:
        return f"a run in a new interpreter ends: {sentence_of(error)}"
