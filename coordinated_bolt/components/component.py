"""The declarations of every component: its streams and its configuration."""

from __future__ import annotations

from abc import ABC
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from coordinated_bolt.streams.declared import OutputFieldsDeclarer, StreamSpec


class IComponent(ABC):  # noqa: B024 - what is abstract differs from spouts to bolts
    """A spout or a bolt.

    `__init__` runs once, on the driver, and its attributes must pickle: a copy is shipped and runs in the task.

    Source: backtype.storm.topology.IComponent.
    """

    output_fields: ClassVar[Sequence[str] | type[Any]] = ()
    """Fields of the default stream, or a NamedTuple or dataclass with these fields; empty if the component does not
    emit on that stream.
    """

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the streams (driver, once); override it for named or direct streams."""
        if self.output_fields:
            declarer.declare(self.output_fields)

    def get_component_configuration(self) -> Mapping[str, Any]:
        """Returns configuration for this component that overrides the topology's (driver, once).

        Its declarer's `add_configuration` overrides both. Values are plain data.
        """
        return {}


class MadeOfFunctions:
    """Marks a built-in component that calls user functions.

    Attributes:
        made_at: the user's file and line that made it.
        user_modules: the modules that executors import for the functions.
    """

    made_at: str
    user_modules: Collection[str] = ()


def declared_by(component: IComponent, component_id: str) -> OutputFieldsDeclarer:
    """Returns all streams that a component declares (driver)."""
    declarer = OutputFieldsDeclarer(component_id)
    component.declare_output_fields(declarer)
    return declarer


def streams_of(component: IComponent, component_id: str) -> dict[str, StreamSpec]:
    """Returns stream id -> stream, for all streams that a component declares (driver)."""
    return declared_by(component, component_id).streams


def takes_batches(bolt_class: type[IComponent]) -> bool:
    """Returns whether a bolt takes batches (called where it runs, once per instance).

    A class that defines `execute_batch` takes batches, even if it defines `execute` too. A subclass that overrides
    only `execute` takes tuples again.
    """
    for base in bolt_class.__mro__:
        if "execute_batch" in vars(base):
            return True
        if "execute" in vars(base):
            return False
    return False
