"""What packages and sources export is decided here, and documented where users look."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from typing import Any

import pytest

from tools import api_docs
from tools.api_docs import PACKAGES, SHORT_FORM

SURFACE = {
    "state": """
        BadInputError DeadLetter EmbeddedServer EngineError FailedException FencedError HashState HyperLogLogState
        ListState NotDurableError NotRepublishableError QuarantineFullError ReplayLimitError SetState Snapshot
        SortedSetState SourceError StateFamily StateRefusedError StateUnreachableError StreamState TopologyError
        TransactionAttempt TransactionError TransactionTooLargeError UserCodeError ValueState WaveCrashError snapshot
    """,
    "coordinated_bolt": """
        AckInfo BaseBasicBolt BaseBatchBolt BaseRichBolt BaseSpout BasicOutputCollector BatchOutputCollector
        CustomGrouping EmitInfo ExecuteInfo FailInfo FinishedCallback IAckValueSpout IBasicBolt IBatchBolt IComponent
        IFailValueSpout IRichBolt ISpout ITaskHook OutputCollector OutputFieldsDeclarer RotatingMap
        SpoutOutputCollector TICK_TUPLE_FREQ_SECS TimeCacheMap TimeoutCallback TopologyContext Tuple TupleBatch
        bolt is_tick
    """,
    "committers": "ICommitter",
    "coordinator": """
        AttemptRecord BackgroundRun BatchSubtopologyBuilder BoltDeclarer BoltTrial CsvFiles DataFrameBatches
        ExactlyOnce FeederSpout FixedBatchesSpout Follow FormerInput FoundMistake HashState HeldPhase HyperLogLogState
        ICommitterTransactionalSpout IOpaquePartitionedTransactionalSpout IPartitionedTransactionalSpout
        ITransactionalSpout InputChange Inputs JsonLines KafkaTopic KafkaTransactionalSpout ListState LocalCluster
        MemoryTransactionalSpout Mistake OpaqueMemoryTransactionalSpout OpaquePartitionedEmitter ParquetFiles
        PartitionedCoordinator PartitionedEmitter PlainRun PlainRunOptions PlainStatistics PlainTopology Proof
        RedisStreams RunOptions RunReport RunSoFar RunStatistics RunStatus SetState SortedSetState SpoutCommitter
        SpoutCoordinator SpoutEmitter SpoutSpec Stream StreamState TextFiles Topology TopologyBuilder TopologyPlan
        TransactionError TransactionalRun TransactionalTopologyBuilder ValueState exactly_once first plan prove run
        run_bolt run_plain snapshot start stream
    """,
    "coordinator.sources": """
        BadRecordError Batches ColumnRanges CsvFields CsvFiles DEAD_LETTER_STREAM DataFrameBatches Follow
        FunctionFormat InputFiles Inputs JsonFields JsonLines MicroBatches PackedValues ParquetFiles RecordFormat
        RedisStreams TextFiles TextLine Versions first
    """,
    "coordinator.sources.kafka": """
        FromEnvironment FromFile KafkaOpaqueSpout KafkaSpout KafkaTopic KafkaTransactionalSpout RetryRules
    """,
}
"""A name here is a promise: users may write it, so removing or renaming it breaks them."""


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_exports_exactly_what_was_decided(package: str) -> None:
    assert import_module(package).__all__ == SURFACE[package].split()


def has_docstring(name: str, thing: Any) -> bool:
    """Whether somebody wrote one: a dataclass without gets its own call instead."""
    return isinstance(thing, str) or not (thing.__doc__ or name).startswith(name)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_has_a_docstring_of_its_own(package: str) -> None:
    module = import_module(package)

    assert [name for name in module.__all__ if not has_docstring(name, getattr(module, name))] == []


def test_a_name_has_one_home_and_what_the_short_form_needs_is_in_the_root_too() -> None:
    exports = Counter(name for exported in SURFACE.values() for name in exported.split())
    twice = {name for name, homes in exports.items() if homes > 1}

    assert len(SHORT_FORM) == len({*SHORT_FORM}) == 27
    assert twice <= {*SHORT_FORM} <= {*SURFACE["coordinator"].split()}


def test_the_reference_shows_a_call_as_users_write_it() -> None:
    page = api_docs.render()

    assert "```text\nListState(\n" in page
    assert "```text\nSetState(name: str, value: FieldGiven = str)\n```" in page
    assert "**`emitted(stream_id: str = 'default') -> list[list[Any]]`**" in page
    assert "[snapshot](#snapshot-1)" in page  # the heading Snapshot has taken #snapshot


def test_the_reference_leaves_out_what_only_the_framework_calls() -> None:
    assert {name for name in api_docs.FRAMEWORK_ONLY if f"**`{name}(" in api_docs.render()} == set()
