"""Tells the kinds of spouts apart, for all of the framework."""

from __future__ import annotations

from typing import Any

from coordinator.spouts.kinds.opaque_kind import OpaqueKind
from coordinator.spouts.kinds.partitioned_kind import PartitionedKind
from coordinator.spouts.kinds.spout_kind import SpoutKind
from coordinator.spouts.kinds.transactional_kind import TransactionalKind
from coordinator.spouts.opaque import IOpaquePartitionedTransactionalSpout
from coordinator.spouts.partitioned import IPartitionedTransactionalSpout
from coordinator.spouts.transactional import ITransactionalSpout
from state.errors import TopologyError

Spout = ITransactionalSpout | IPartitionedTransactionalSpout | IOpaquePartitionedTransactionalSpout

_KINDS: tuple[tuple[type, type[SpoutKind]], ...] = (
    (ITransactionalSpout, TransactionalKind),
    (IPartitionedTransactionalSpout, PartitionedKind),
    (IOpaquePartitionedTransactionalSpout, OpaqueKind),
)


def kind_of(spec: Any) -> SpoutKind:
    """Returns the strategy that handles a spout (anywhere); the builder has already refused anything else.

    Raises:
        TopologyError: `spec` implements none of the three interfaces.
    """
    for interface, kind in _KINDS:
        if isinstance(spec, interface):
            return kind(spec)
    wanted = ", ".join(interface.__name__ for interface, _ in _KINDS)
    raise TopologyError(f"{type(spec).__name__} is not a transactional spout; implement one of {wanted}")
