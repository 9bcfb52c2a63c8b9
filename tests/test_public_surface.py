"""What packages and sources export is decided here, and documented where users look."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from typing import Any

import pytest

from tools import api_docs
from tools.api_docs import PACKAGES

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
        AttemptRecord BackgroundRun BatchSubtopologyBuilder BoltDeclarer BoltTrial ExactlyOnce FeederSpout
        FixedBatchesSpout FormerInput FoundMistake HeldPhase ICommitterTransactionalSpout
        IOpaquePartitionedTransactionalSpout IPartitionedTransactionalSpout ITransactionalSpout InputChange
        LocalCluster MemoryTransactionalSpout Mistake
        OpaqueMemoryTransactionalSpout OpaquePartitionedEmitter
        PartitionedCoordinator PartitionedEmitter PlainRun PlainRunOptions PlainStatistics PlainTopology Proof
        RunOptions RunReport RunSoFar RunStatistics RunStatus SpoutCommitter SpoutCoordinator SpoutEmitter SpoutSpec
        Stream TextFiles Topology TopologyBuilder TopologyPlan TransactionalRun TransactionalTopologyBuilder
        exactly_once plan prove run run_bolt run_plain start stream
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


def test_a_name_is_exported_by_one_package_only() -> None:
    exports = Counter(name for exported in SURFACE.values() for name in exported.split())

    assert [name for name, homes in exports.items() if homes > 1] == ["TextFiles"]  # in `coordinator` from the start


def test_the_reference_shows_a_call_as_users_write_it() -> None:
    page = api_docs.render()

    assert "```text\nListState(\n" in page
    assert "```text\nSetState(name: str, value: FieldGiven = str)\n```" in page
    assert "**`emitted(stream_id: str = 'default') -> list[list[Any]]`**" in page
    assert "[snapshot](#snapshot-1)" in page  # the heading Snapshot has taken #snapshot


def test_the_reference_leaves_out_what_only_the_framework_calls() -> None:
    assert {name for name in api_docs.FRAMEWORK_ONLY if f"**`{name}(" in api_docs.render()} == set()
