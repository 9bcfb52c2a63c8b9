"""The input of a transaction in words, made from its stored metadata. Pure.

Each source has its wording next to the code that makes its metadata. The source is recognised by the beginning of the
input's fingerprint. Users' spouts describe their metadata by `describe`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from coordinator.sources import batches, data_frame_batches, micro_batches
from coordinator.sources.files import record_ranges
from coordinator.sources.redis_streams import stream_range
from coordinator.sources.several.inputs_coordinator import fingerprints_in, newest
from coordinator.spouts import memory, memory_input
from coordinator.spouts.partition_cut import is_partition_scope, partition_of
from coordinator.transactional.machine.metadata_log import COORDINATOR_SCOPE
from state.errors import TransactionError
from state.printable import one_line

LINES_SHOWN = 20
Words = Callable[[Any], list[str]]
WordsByScope = Mapping[str, list[str]]
"""Scope -> lines that describe its input."""


def _words_of_offsets(value: Any) -> list[str]:
    """Returns no words where Kafka's client is not installed; the metadata is then shown as it is stored."""
    try:
        from coordinator.sources.kafka import offset_ranges  # here, since the room needs an extra
    except ImportError:
        return []
    return offset_ranges.words_of(value)


SOURCES: Mapping[str, Words] = {
    "text files ": record_ranges.words_of,
    "JSON lines ": record_ranges.words_of,
    "CSV files ": record_ranges.words_of,
    "Parquet files ": record_ranges.words_of,
    "kafka topic ": _words_of_offsets,
    "redis streams ": stream_range.words_of,
    "batches of ": batches.words_of,
    "DataFrame of ": data_frame_batches.words_of,
    "structured streaming query ": micro_batches.words_of,
    "coordinator.spouts.memory.FixedBatchesSpout": memory.words_of_batch,
    "coordinator.spouts.memory.": memory_input.words_of,
}
"""Beginning of the fingerprint of one of our sources -> function that describes its metadata in words."""


def words_by_scope(source_fingerprint: str, metadata: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns scope -> lines that describe its input; scopes without words are left out.

    Called by ``txbatch inspect`` and ``quarantine show`` with the metadata of one transaction, by scope.
    """
    return _said(metadata, lambda _, value: _words_of(source_fingerprint, value))


def _words_of(fingerprint: str, value: Any) -> list[str]:
    """Returns lines that describe metadata, by the fingerprint of its source, or of several, each with its name."""
    for begin, words in SOURCES.items():
        if fingerprint.startswith(begin):
            return words(value)
    found, inputs = [], fingerprints_in(fingerprint) or {}
    with suppress(AttributeError, TypeError, ValueError):  # it is the metadata of something else
        for name, part in newest(value) if inputs else ():
            said = _words_of(inputs.get(name, ""), part)
            found += [f"{name}: {line}" for line in said or [repr(part)]]
    return found


def words_of_spout(spec: Any, metadata: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns the same as `words_by_scope` by a spout's own `describe`; called by ``txbatch dry-run --txid``.

    If `describe` raises, the error is shown in place of its words, so that the rest is shown, too.
    """
    partitioned = any(map(is_partition_scope, metadata))

    def words(scope: str, value: Any) -> list[str]:
        try:
            if not partitioned:
                return list(map(str, spec.describe(value)))
            return list(map(str, spec.describe(partition_of(scope), value))) if is_partition_scope(scope) else []
        except TransactionError:
            raise
        except Exception as error:  # noqa: BLE001 - user code
            return [f"{value!r} (describe raised {type(error).__name__}: {error})"]

    return _said(metadata, words)


def words_or_values(metadata: Mapping[str, Any], words: WordsByScope) -> list[str]:
    """Returns lines for all metadata: its words, or the metadata itself if there are none."""
    found = []
    for scope, value in sorted(metadata.items()):
        said = words.get(scope)
        if said is None:
            found.append(f"{scope}: {one_line(repr(value), 1_000)}")
            continue
        begin = f"partition {partition_of(scope)}: " if is_partition_scope(scope) else ""
        found += [f"{begin}{one_line(line)}" for line in said[:LINES_SHOWN]]
        if len(said) > LINES_SHOWN:
            found.append(f"{begin}… {len(said) - LINES_SHOWN:,} more, which --json has")
    return found


def _said(metadata: Mapping[str, Any], words: Callable[[str, Any], list[str]]) -> dict[str, list[str]]:
    partitions = sum(map(is_partition_scope, metadata))
    found = {}
    for scope, value in metadata.items():
        if scope == COORDINATOR_SCOPE and partitions and type(value) is int:
            found[scope] = [f"{value:,} partitions" if value != 1 else "1 partition"]
            continue
        try:
            said = words(scope, value)
        except TransactionError:  # it is the metadata of something else
            continue
        if said:
            found[scope] = said
    return found
