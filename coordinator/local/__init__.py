"""Topologies in one process, tuple by tuple, without Spark: for tests of users and of our own."""

from coordinator.local.attempt_book import AttemptEnd, AttemptRecord, HeldPhase
from coordinator.local.bolt_trial import BoltTrial, run_bolt
from coordinator.local.cluster import LocalCluster
from coordinator.local.engine import FrameFault, LocalEngine
from coordinator.local.mailroom import Mailroom
from coordinator.local.plain_run import MessageFault, PlainRun
from coordinator.local.transactional_run import TransactionalRun

__all__ = [
    "AttemptEnd",
    "AttemptRecord",
    "BoltTrial",
    "FrameFault",
    "HeldPhase",
    "LocalCluster",
    "LocalEngine",
    "Mailroom",
    "MessageFault",
    "PlainRun",
    "TransactionalRun",
    "run_bolt",
]
