"""What a spout's own methods raise or answer wrongly is the user's mistake, named with component and remedy."""

from __future__ import annotations

import re
from itertools import product
from typing import Any, ClassVar

import pytest

from coordinator import ICommitterTransactionalSpout, LocalCluster, SpoutCommitter, TransactionalTopologyBuilder
from coordinator.spouts.memory import FixedBatchesSpout, MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from state import FailedException, SourceError, TransactionError, UserCodeError
from tests.support.case_names import shown
from tests.support.runs.whole_runs import Count0

ROWS = [["a", 1], ["b", 2]]
FIELDS = ["line", "number"]
KINDS = ["plain", "partitioned", "opaque"]


class Faulty:
    """Which method of which object answers what, or raises it; once each, then it does as it should."""

    faults: ClassVar[dict[str, list[Any]]] = {}
    asked: ClassVar[list[str]] = []

    @classmethod
    def answer(cls, method: str, otherwise: Any) -> Any:
        cls.asked.append(method)
        left = cls.faults.get(method)
        if not left:
            return otherwise()
        fault = left.pop(0)
        if isinstance(fault, BaseException):
            raise fault
        return fault


@pytest.fixture(autouse=True)
def fresh() -> None:
    Faulty.faults.clear()
    Faulty.asked.clear()


Spec: Any = object  # whatever spout it is mixed into


class Told(SpoutCommitter):
    def commit(self, attempt):
        pass


class _Faulty(Spec):
    """Overrides every edge of a spout with what the test wants."""

    def get_coordinator(self, conf, context):
        made = Faulty.answer("get_coordinator", lambda: super(_Faulty, self).get_coordinator(conf, context))
        for method in ("resume", "is_ready", "is_exhausted", "is_finite", "number_of_partitions", "progress", "close"):
            self._overridden(made, method)
        for method in ("estimated_bytes", "follow"):
            self._overridden(made, method)
        return made

    def get_emitter(self, conf, context):
        return Faulty.answer("get_emitter", lambda: super(_Faulty, self).get_emitter(conf, context))

    def get_committer(self, conf, context):
        return Faulty.answer("get_committer", Told)

    def fingerprint(self):
        return Faulty.answer("fingerprint", lambda: super(_Faulty, self).fingerprint())

    @staticmethod
    def _overridden(made, method):
        own = getattr(made, method, None)
        if own is not None:
            setattr(made, method, lambda *args: Faulty.answer(method, lambda: own(*args)))


class Plain(_Faulty, FixedBatchesSpout, ICommitterTransactionalSpout):
    """Two batches."""


class Partitioned(_Faulty, MemoryTransactionalSpout, ICommitterTransactionalSpout):
    """The same rows, of one partition."""


class Opaque(_Faulty, OpaqueMemoryTransactionalSpout, ICommitterTransactionalSpout):
    """And where a replay may read others."""


SPOUTS: dict[str, Any] = {
    "plain": Plain([ROWS[:1], ROWS[1:]], FIELDS),
    "partitioned": Partitioned([ROWS], FIELDS, 1),
    "opaque": Opaque([ROWS], FIELDS, 1),
}


def topology(kind: str) -> Any:
    builder = TransactionalTopologyBuilder("edges", "lines", SPOUTS[kind], parallelism=1)
    builder.set_bolt("count", Count0(), 1).fields_grouping("lines", ["line"])
    return builder.build()


def counted(kind: str) -> Any:
    with LocalCluster() as cluster:
        run = cluster.submit(topology(kind))
        run.run_until_idle()
        assert run.is_done
        return run.state("counts0")


def refusal(kind: str, *, error: type[TransactionError] = UserCodeError) -> str:
    with pytest.raises(error) as caught:
        counted(kind)
    return str(caught.value)


AT_START = ["get_coordinator", "get_committer", "fingerprint"]


@pytest.mark.parametrize(
    ("kind", "method"), [("plain", "resume"), *product(KINDS, [*AT_START, "get_emitter", "is_ready", "is_exhausted"])]
)
@pytest.mark.parametrize("error", [ZeroDivisionError("mine"), SystemExit("mine")], ids=["error", "exit"])
def test_what_an_edge_raises_names_component_and_method_and_shows_the_traceback(kind, method, error):
    Faulty.faults[method] = [error]
    message = refusal(kind)
    assert "component 'lines'" in message
    assert method in message or (method == "is_exhausted" and "is_ready" in message), "the one asks the other"
    assert f"{type(error).__name__}: mine" in message


COORDINATORS = {
    "plain": "SpoutCoordinator",
    "partitioned": "PartitionedCoordinator",
    "opaque": "PartitionedCoordinator",
}
EMITTERS = {"plain": "SpoutEmitter", "partitioned": "PartitionedEmitter", "opaque": "OpaquePartitionedEmitter"}
WRONG_ANSWERS = [
    *(
        (kind, method, answer, f"; return .*{wanted}")
        for kind in KINDS
        for answer in (None, 7, object)
        for method, wanted in [
            ("get_coordinator", COORDINATORS[kind]),
            ("get_emitter", EMITTERS[kind]),
            ("get_committer", "SpoutCommitter"),
            ("fingerprint", "non-empty string"),
        ]
    ),
    ("plain", "fingerprint", "", "; return"),
    ("plain", "fingerprint", "file \udc80.txt", ", which is not valid Unicode; escape"),
    *((kind, method, None, "; return True or False") for kind in KINDS for method in ("is_ready", "is_exhausted")),
    *(
        (kind, "number_of_partitions", answer, "; return a whole number from 0")
        for kind in ("partitioned", "opaque")
        for answer in (None, "2", 2.9, -1, True, 10**12)
    ),
]


@pytest.mark.parametrize(("kind", "method", "answer", "wanted"), WRONG_ANSWERS, ids=shown)
def test_what_an_edge_may_not_answer_is_named_with_what_it_should_answer(kind, method, answer, wanted):
    Faulty.faults[method] = [answer]
    message = refusal(kind)
    assert "component 'lines'" in message
    assert re.search(rf"{method} returned {re.escape(repr(answer))}{wanted}", message.replace("\n", " "))


class Whole:
    """A whole number that is not an int, as NumPy's are."""

    def __index__(self) -> int:
        return 1


@pytest.mark.parametrize("kind", ["partitioned", "opaque"])
def test_a_number_of_partitions_may_be_any_whole_number(kind):
    Faulty.faults["number_of_partitions"] = [Whole(), Whole()]
    assert counted(kind) == {"a": 1, "b": 1, "all": 2}


TRIED_AGAIN = [
    *((kind, method) for kind in KINDS for method in [*AT_START, "get_emitter", "is_exhausted"]),
    ("plain", "resume"),
    ("partitioned", "number_of_partitions"),
    ("opaque", "number_of_partitions"),
]


@pytest.mark.parametrize(("kind", "method"), TRIED_AGAIN)
def test_a_failed_exception_is_tried_again_wherever_a_spout_raises_it(kind, method):
    Faulty.faults[method] = [FailedException("the broker does not answer")] * 2
    with LocalCluster() as cluster:
        run = cluster.submit(topology(kind))
        for _ in range(5):
            run.run_until_idle()
        assert run.is_done
        assert run.state("counts0") == {"a": 1, "b": 1, "all": 2}
    assert Faulty.asked.count(method) >= 3


@pytest.mark.parametrize("method", [*AT_START, "resume"])
def test_a_start_that_fails_again_and_again_ends_with_the_last_reason(method):
    Faulty.faults[method] = [FailedException("the broker does not answer")] * 99
    message = refusal("plain", error=SourceError)
    assert f"{method} of component 'lines' failed 5 times" in message
    assert "the broker does not answer" in message
    assert Faulty.asked.count(method) == 5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", [ZeroDivisionError("mine"), FailedException("later"), None, "soon"], ids=shown)
@pytest.mark.parametrize("method", ["progress", "estimated_bytes", "close"])
def test_what_is_only_said_or_let_go_of_ends_no_run(kind, method, fault):
    Faulty.faults[method] = [fault] * 99
    assert counted(kind) == {"a": 1, "b": 1, "all": 2}


@pytest.mark.parametrize("kind", KINDS)
def test_a_coordinator_that_cannot_be_closed_is_named_in_the_log(kind, caplog):
    Faulty.faults["close"] = [ZeroDivisionError("mine")]
    counted(kind)
    assert "the coordinator of component 'lines' could not be closed" in caplog.text
    assert "ZeroDivisionError: mine" in caplog.text


@pytest.mark.parametrize("kind", KINDS)
def test_is_finite_is_asked_within_the_guard(kind):
    Faulty.faults["is_finite"] = [ZeroDivisionError("mine")] * 99
    with LocalCluster() as cluster:
        run = cluster.submit(topology(kind))
        run.drain()
        with pytest.raises(UserCodeError, match=r"(?s)is_finite of component 'lines'.*ZeroDivisionError: mine"):
            run.run_until_idle()
