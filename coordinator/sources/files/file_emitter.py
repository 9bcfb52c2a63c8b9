"""Reads ranges of files on executors and emits what is in them."""

from __future__ import annotations

from typing import Any

from coordinated_bolt.components.batch_bolts import BatchOutputCollector
from coordinated_bolt.components.context import TopologyContext
from coordinator.sources.files.file_kind import FileKind
from coordinator.sources.files.record_ranges import parse_share
from coordinator.sources.files.stores.compressed_file import open_content
from coordinator.sources.files.stores.file_store import FileStore
from coordinator.sources.files.stores.input_file import InputFile
from coordinator.spouts.transactional import SpoutEmitter
from state.attempt import TransactionAttempt


class FileEmitter(SpoutEmitter):
    """Emits this task's ranges of every batch (executor).

    Args:
        kind: how a range is read.
        store: where the files are.
        context: the task.
    """

    def __init__(self, kind: FileKind, store: FileStore, context: TopologyContext) -> None:
        self._kind, self._store, self._context = kind, store, context
        self._file: InputFile | None = None

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        context = self._context
        for part in parse_share(metadata, context.task_index, context.task_count, number=attempt.txid):
            self._kind.emit(part, self._open(part.path), collector, context)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self, path: str) -> InputFile:
        # ranges come file by file, so the one last used is the one to keep
        if self._file is None or self._file.path != path:
            self.close()
            self._file = open_content(self._store, path, self._context.topology_id)
        return self._file
