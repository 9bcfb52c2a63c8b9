"""What every component of a topology has to say about itself: its streams and its configuration."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from coordinated_bolt.streams.declared import OutputFieldsDeclarer


class IComponent(ABC):  # noqa: B024 - what is abstract differs from spouts to bolts
    """A spout or a bolt.

    `__init__` runs on the driver, once, and what it sets must pickle: the object is shipped, and a copy
    works where the task runs.

    Source: backtype.storm.topology.IComponent.
    """

    output_fields: ClassVar[Sequence[str]] = ()
    """Fields of the default stream; leave empty when nothing is emitted on it."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the streams (driver, once); override for named or direct streams."""
        if self.output_fields:
            declarer.declare(self.output_fields)

    def get_component_configuration(self) -> Mapping[str, Any]:
        """Configuration of this component, which wins over the topology's (driver, once).

        What its declarer's `add_configuration` sets wins over both. Values are plain data.
        """
        return {}
