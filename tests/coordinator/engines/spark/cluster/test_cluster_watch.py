"""What is said of a cluster: from settings, and from a master that listens or does not."""

from __future__ import annotations

import queue
import socket
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from coordinator.engines.spark.cluster import cluster_watch
from coordinator.engines.spark.cluster.cluster_watch import ClusterWatch, MasterAnswer

LOOK_S = 0.02
TIMEOUT_S = 20.0


def context_of(master: str, registered: int = 0, **settings: str) -> Any:
    """A context with so many executors; a setting's underscores stand for dots."""
    conf = {f"spark.{name.replace('_', '.')}": value for name, value in settings.items()}
    status = SimpleNamespace(size=lambda: registered + 1)
    application = SimpleNamespace(getExecutorMemoryStatus=lambda: status)
    return SimpleNamespace(
        master=master,
        applicationId="app-1",
        getConf=lambda: SimpleNamespace(get=conf.get),
        _jsc=SimpleNamespace(sc=lambda: application),
    )


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "as many as fit of 1 GiB"),
        ({"executor_instances": "2", "executor_memory": "8g"}, "2 of 8 GiB"),
        ({"cores_max": "8", "executor_cores": "4", "executor_memory": "512m"}, "2 of 512 MiB and 4 cores"),
        ({"dynamicAllocation_enabled": "true", "executor_memory": "2gb"}, "as many of 2 GiB as jobs need"),
    ],
)
def test_what_was_asked_for_is_read_from_the_settings(settings, told):
    watch = ClusterWatch(context_of("yarn", 3, **settings), list[Any]().append)
    assert watch.supply() == f"3 registered, asked for {told}"


class Watched:
    """A watch over a master that is a listening socket.

    Attributes:
        errors: what the watch has told.
        answers: what the master says next; the last one again and again.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.errors: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.answers = MasterAnswer(True, "workers offer 1 GiB and 2 cores at most")
        self.asked = threading.Event()
        monkeypatch.setattr(ClusterWatch, "_answer", lambda _: self.answer())
        self.context = context_of(f"spark://127.0.0.1:{self.port}")
        self.watch = ClusterWatch(self.context, self.errors.put, look_s=LOOK_S)

    def answer(self) -> MasterAnswer:
        self.asked.set()
        return self.answers

    def until(self, condition) -> None:
        """Waits for the watch's next looks."""
        waiting = threading.Event()
        for _ in range(round(TIMEOUT_S / LOOK_S)):
            if condition():
                return
            waiting.wait(LOOK_S)
        raise AssertionError(self.watch.story)

    def go(self) -> None:
        self.listener.close()
        self.until(lambda: self.watch.story)

    def come_back(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", self.port))


@pytest.fixture
def watched(monkeypatch):
    made = Watched(monkeypatch)
    yield made
    made.watch.close()
    made.listener.close()


def test_a_master_is_asked_for_its_workers_only_while_a_job_waits(watched):
    assert not watched.asked.wait(5 * LOOK_S)
    watched.watch.supply()
    watched.until(lambda: watched.watch.supply().endswith("; workers offer 1 GiB and 2 cores at most"))


def test_a_master_that_is_gone_is_named_and_one_that_remembers_is_back(watched):
    watched.go()
    assert watched.watch.story.startswith(f"Spark master 'spark://127.0.0.1:{watched.port}' is gone (127.0.0.1:")
    assert watched.watch.story in watched.watch.supply()
    watched.come_back()
    watched.until(lambda: not watched.watch.story)
    assert watched.errors.empty()


def test_a_master_that_has_forgotten_the_application_ends_the_run(watched):
    watched.answers = MasterAnswer(False, "")
    watched.go()
    watched.come_back()
    error = watched.errors.get(timeout=TIMEOUT_S)
    assert "does not know application app-1 any more" in str(error)


def test_what_workers_offer_is_that_of_the_largest():
    assert cluster_watch._offered([(600, 1), (1536, 4)]) == "workers offer 1.5 GiB and 4 cores at most"
    assert cluster_watch._offered([]) == "no worker is registered with the master"
