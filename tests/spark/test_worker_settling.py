"""What a worker is told before its first tasks, seen from a bolt; a test's own process is left alone."""

from __future__ import annotations

import gc
import signal
import socket
import sys
from zipimport import zipimporter

import pytest

from coordinator.engines.spark.worker_settling import _connections, settle_worker
from tests.support.spark.bolts import Pass, exact_counts, note, notes, numbers_topology


class Looking(Pass):
    """Notes what the collector and Ctrl-C are set to, and leaves garbage in a cycle behind."""

    def __init__(self, path):
        self.path = str(path)

    def finish_batch(self):
        garbage: list[object] = []
        garbage.append(garbage)
        ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        archives = [finder for finder in sys.path_importer_cache.values() if isinstance(finder, zipimporter)]
        keeps = any("invalidate_caches" in vars(finder) for finder in archives)
        note(self.path, gc.get_freeze_count(), gc.isenabled(), gc.get_threshold()[0], ignored, keeps)


@pytest.mark.every_spark
@pytest.mark.spark
@pytest.mark.redis
@pytest.mark.nightly
def test_a_worker_does_not_walk_what_it_has_loaded_for_good(cluster):
    cluster.run(numbers_topology(12, work=Looking(cluster.notes / "seen")), max_spout_pending=2)

    seen = notes(cluster.notes / "seen")
    frozen = [count for count, *_ in seen]
    assert min(frozen) > 10_000  # modules, classes, code
    assert {tuple(rest) for _, *rest in seen} == {(True, 50_000, True, True)}
    assert cluster.hash("{numbers}:counts") == exact_counts(12)


def test_a_process_that_is_no_worker_is_left_as_it_is():
    before = gc.get_freeze_count(), gc.get_threshold(), signal.getsignal(signal.SIGINT)
    settle_worker()

    assert (gc.get_freeze_count(), gc.get_threshold(), signal.getsignal(signal.SIGINT)) == before


def test_connections_over_tcp_are_found_among_all_open_files():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as connection:
        found = _connections.__wrapped__()
        addresses = [each.getsockname() for each in found]
        for each in found:
            each.close()
        assert connection.getsockname() in addresses
