"""Decides which attempts of a wave are processed, from the reports of the processing tasks.

An attempt is processed when every processing task has reported, none has failed, and the tree has closed (see
`transport.edges` and `completeness.acker`). The edges that lead to commit tasks have not been received yet: their xor
is the attempt's *residue*, which the commit phase must cancel with the edges it actually reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import and_

from coordinated_bolt.batches.attempt_reports import TaskReports
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.completeness.acker import ACKER_COMPONENT, Acker, AckOutcome
from coordinated_bolt.completeness.failure import Failure, FailureKind, most_telling
from coordinated_bolt.transport.wave_attempts import places_in
from state.attempt import TransactionAttempt
from state.codec import CodecError


class BatchAcker:
    """Gathers the reports that one acker task receives; made for each wave, on executors or in process.

    Args:
        task_id: the acker task.
        init: attempt -> xor of its batch edges, for every attempt that this acker decides.
        component_of: task id -> (component, task index), for every processing task.
    """

    def __init__(
        self, task_id: int, init: Mapping[TransactionAttempt, int], component_of: Mapping[int, tuple[str, int]]
    ) -> None:
        self._task_id = task_id
        self._acker: Acker[TransactionAttempt] = Acker()
        self._component_of = component_of
        self._outcomes = {attempt: AttemptResult(attempt) for attempt in init}
        self._init = init
        self._attempts = tuple(init)
        self._places = {attempt: place for place, attempt in enumerate(self._attempts)}
        self._reported: dict[int, int] = dict.fromkeys(component_of, 0)
        """Task id -> a bit for each reported attempt, at the attempt's place (its position in `init`)."""
        self._acked: set[TransactionAttempt] = set()

    def receive(self, sender: int, attempts: Sequence[TransactionAttempt], payload: bytes) -> None:
        """Handles the reports of a task; ignores attempts that another acker decides.

        Args:
            sender: the task.
            attempts: the attempts to which the reports' places refer.
            payload: the reports, as `TaskReports` packs them.
        """
        try:
            reports = TaskReports.from_payload(sender, self._task_id, payload)
            self._note(sender, self._own_places(reports.skipped, attempts))
            for result in reports.results:
                place = self._places.get(result.attempt)
                if place is not None and self._note(sender, 1 << place):
                    result.edges ^= reports.edge_of_cuts(result)
                    self._receive_result(result)
        except (AttributeError, CodecError, LookupError, TypeError, ValueError) as error:
            for attempt in self._outcomes.keys() & set(attempts):
                self._fail(attempt, self._incomplete(sender, f"report cannot be read: {error!r}"))

    def outcomes(self) -> Iterable[AttemptResult]:
        """Returns the result of each attempt's processing phase, once no more frames can arrive."""
        reported_by_all = reduce(and_, map(self._reported.__getitem__, self._component_of), -1)
        for place, (attempt, outcome) in enumerate(self._outcomes.items()):
            self._close(attempt)
            is_missing = not reported_by_all >> place & 1
            if outcome.failure is None and is_missing:
                missing = min(task for task in self._component_of if not self._reported[task] >> place & 1)
                outcome.failure = self._incomplete(missing, "sent no report")
            if outcome.failure is None and attempt not in self._acked:
                where = (ACKER_COMPONENT, 0)
                outcome.failure = Failure(FailureKind.INCOMPLETE, *where, "tasks did not receive what others sent")
        return self._outcomes.values()

    def _own_places(self, places: int, attempts: Sequence[TransactionAttempt]) -> int:
        """Converts places to this acker's own, without attempts that other ackers decide."""
        if attempts == self._attempts:  # always so with one acker
            return places & (1 << len(attempts)) - 1
        found = (self._places.get(attempts[place]) for place in places_in(places))
        return sum(1 << place for place in found if place is not None)

    def _note(self, sender: int, places: int) -> bool:
        """Records that a task has reported on attempts; returns whether these are its first reports on them."""
        known = self._reported.get(sender, 0)
        self._reported[sender] = known | places
        repeated = known & places
        for place in places_in(repeated):
            self._fail(self._attempts[place], self._incomplete(sender, "reported more than once"))
        return not repeated

    def _receive_result(self, result: AttemptResult) -> None:
        attempt = result.attempt
        self._outcomes[attempt].add(result)
        if result.failure is not None:
            self._fail(attempt, result.failure)
        self._acker.ack(attempt, result.edges)

    def _fail(self, attempt: TransactionAttempt, failure: Failure) -> None:
        outcome = self._outcomes[attempt]
        outcome.failure = most_telling((outcome.failure, failure))
        self._acker.fail(attempt)

    def _close(self, attempt: TransactionAttempt) -> None:
        """Puts the batch tuple's edges into the tree: last, since an incomplete tree may pass through zero."""
        if attempt not in self._acked and self._acker.init(attempt, self._init[attempt]) is AckOutcome.ACKED:
            self._acked.add(attempt)

    def _incomplete(self, task_id: int, text: str) -> Failure:
        component_id, task_index = self._component_of.get(task_id, (ACKER_COMPONENT, 0))
        return Failure(FailureKind.INCOMPLETE, component_id, task_index, text)
