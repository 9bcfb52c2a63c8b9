"""The cluster in one process, on which tests run topologies without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from random import Random
from types import TracebackType
from typing import Any, Self, overload

from coordinator.plain.plain_plan import make_plain_plan
from coordinator.plain.plain_topology import PlainTopology
from coordinator.testing.cluster.local_engine import FrameFault
from coordinator.testing.cluster.mailroom import DEFAULT_RECEIVE_CAPACITY
from coordinator.testing.cluster.plain_run import MessageFault, PlainRun
from coordinator.testing.cluster.transactional_run import TransactionalRun
from coordinator.topology.building.letter_streams import with_letter_streams
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import described
from coordinator.topology.planning.pickling import pickle_spec
from coordinator.topology.planning.plan import make_plan
from coordinator.transactional.options import RunOptions
from coordinator.transactional.start.republish_choice import LetterChoice, LettersGiven
from state.errors import TopologyError
from state.redis_client.address import redact, require_encryption
from state.redis_client.connection import connect
from state.redis_server.in_memory import in_memory_client
from state.values.whole import is_whole

IN_MEMORY = "memory://"
LOCAL_WINDOW = 1
"""Transactions in flight unless the options set another number; the same as in Storm."""


class LocalCluster:
    """Runs topologies tuple by tuple in the calling thread; one seed is one schedule.

    The coordinator, the tasks, the acker and the commit are the same as in a run on Spark, and bolts are pickled in the
    same way. Messages between two tasks keep their order; everything else happens in an order drawn from the seed. So a
    test that passes under many seeds passes under many interleavings. Time stands still until the test advances it.
    Spark is imported only for components that Python's own pickler cannot handle, such as classes that a test defines
    in a function.

        with LocalCluster(seed=7) as cluster:
            run = cluster.submit(topology())
            run.run_until_idle()
            assert run.state("counts") == {"the": 2}

    Args:
        seed: draws the schedule and the attempt ids.
        redis_url: a server for the state; None keeps it in memory, until the cluster is closed.
        allow_plaintext: connect to a server on another machine without TLS.
        receive_capacity: most messages in a task's receive queue; a sender waits while the queue is full.
        keeps_order: False lets messages between two tasks overtake each other, too, which no real run does: a result
            that changes then depends on order.
        worker_count: number of workers that share the executors; local-or-shuffle groupings depend on it.

    Raises:
        TypeError: the seed is not an integer.
        ValueError: a count is below 1.
        TopologyError: the address is invalid, or names another machine without TLS.

    Attributes:
        client: a client of the server that holds the state.

    Source: backtype.storm.LocalCluster, and the in-process mode of backtype.storm.testing.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        redis_url: str | None = None,
        allow_plaintext: bool = False,
        receive_capacity: int = DEFAULT_RECEIVE_CAPACITY,
        keeps_order: bool = True,
        worker_count: int = 1,
    ) -> None:
        if not is_whole(seed):
            raise TypeError(f"seed is {seed!r}; give an integer: one seed is one schedule")
        if not is_whole(worker_count, 1):
            raise ValueError(f"worker count is {worker_count!r}; give an integer of at least 1")
        self._worker_count = worker_count
        self._random = Random(seed)
        self._receive_capacity, self._keeps_order = receive_capacity, keeps_order
        if redis_url is not None:
            require_encryption(redis_url, allow_plaintext=allow_plaintext)
        self._server = IN_MEMORY if redis_url is None else redact(redis_url)
        self.client: Any = in_memory_client() if redis_url is None else connect(redis_url)
        self._open = ExitStack()
        self._open.callback(self.client.close)

    @overload
    def submit(
        self,
        topology: Topology,
        *,
        options: RunOptions | None = None,
        frame_fault: FrameFault | None = None,
        republish_letters: LettersGiven | None = None,
    ) -> TransactionalRun: ...

    @overload
    def submit(
        self, topology: PlainTopology, *, by_hand: Sequence[str] = (), message_fault: MessageFault | None = None
    ) -> PlainRun: ...

    def submit(
        self,
        topology: Topology | PlainTopology,
        *,
        options: RunOptions | None = None,
        frame_fault: FrameFault | None = None,
        by_hand: Sequence[str] = (),
        message_fault: MessageFault | None = None,
        republish_letters: LettersGiven | None = None,
    ) -> TransactionalRun | PlainRun:
        """Starts a run; a transactional one continues where the last one on this cluster's server ended.

        Args:
            topology: the result of `TransactionalTopologyBuilder.build` or `TopologyBuilder.build`.
            options: limits of a transactional run. Unless they set `max_spout_pending`, one transaction is in flight,
                as in Storm.
            frame_fault: for tests: loses, doubles, alters or replaces frames of a transactional run.
            by_hand: ids of bolts of a plain topology for which the test itself acks, fails and emits.
            message_fault: for tests: loses, doubles, alters or replaces messages of a plain run.
            republish_letters: ids of components, letters as (txid, number), or "all": the run publishes these dead
                letters and reads no input; see `coordinator.run`.

        Raises:
            TransactionError: the topology cannot run, its state is refused, or a `prepare` raised.
        """
        if isinstance(topology, PlainTopology):
            _refuse_given(
                "a plain topology", options=options, frame_fault=frame_fault, republish_letters=republish_letters
            )
            return self._submit_plain(topology, by_hand, message_fault)
        if not isinstance(topology, Topology):
            raise TopologyError(f"submit got {described(topology)}; give the result of a builder's build()")
        if by_hand:
            raise TopologyError(
                "submit got by_hand, which is for plain topologies, but this one is transactional; to hold phases of "
                'transactions, call hold("processing") or hold("commit") of the run that submit returns'
            )
        _refuse_given("a transactional topology", message_fault=message_fault)
        choice = None if republish_letters is None else LetterChoice.of(republish_letters)
        if choice is not None:
            topology = with_letter_streams(topology)
        run = TransactionalRun(
            topology,
            make_plan(topology, pickle_spec, worker_count=self._worker_count, is_chained=False),
            self.client,
            server=self._server,
            random=self._random,
            options=(options or RunOptions()).or_window(LOCAL_WINDOW),
            receive_capacity=self._receive_capacity,
            keeps_order=self._keeps_order,
            frame_fault=frame_fault,
            republish=choice,
        )
        self._open.callback(run.close)
        return run

    def close(self) -> None:
        """Ends all runs, the newest first, and discards state in memory.

        Raises:
            UserCodeError: a bolt or spout raised while it was closed; the others are closed nevertheless.
        """
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _submit_plain(
        self, topology: PlainTopology, by_hand: Sequence[str], message_fault: MessageFault | None
    ) -> PlainRun:
        plan = make_plain_plan(topology, pickle_spec, worker_count=self._worker_count, is_chained=False)
        run = PlainRun(
            plan,
            seed=self._random.getrandbits(64),
            receive_capacity=self._receive_capacity,
            keeps_order=self._keeps_order,
            by_hand=by_hand,
            message_fault=message_fault,
        )
        self._open.callback(run.close)
        run.activate()
        return run


def _refuse_given(kind: str, **arguments: object) -> None:
    """Refuses arguments that have no effect on a topology of this kind."""
    for name, value in arguments.items():
        if value:
            raise TopologyError(f"submit got {name}, which has no effect on {kind}; leave it out")
