"""Refuses batch bolts whose work would never be called: `BaseBatchBolt` does nothing where a name is misspelled.

Every other kind of bolt leaves `execute` abstract, so Python itself refuses to make one without it.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import product

from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.components.callbacks import FinishedCallback, TimeoutCallback
from coordinated_bolt.components.component import takes_batches
from coordinator.topology.building.topology import Component, ComponentKind
from state.errors import TopologyError
from state.kinds.handles import declared_states

_FRAMEWORK = {*dir(BaseBatchBolt), *dir(FinishedCallback), *dir(TimeoutCallback)}
_HINTED = 0.7
"""How much alike a name must be to be asked about, where something is missing in any case."""
_SURELY_MEANT = 0.86
"""How much alike it must be to be refused for its name alone; helpers called `finish` or `init_batch` are not."""


def check_methods(component: Component) -> None:
    """Refuses a bolt that would ignore its tuples, or do nothing at the end of a batch although it is meant to.

    Raises:
        TopologyError: the message names a method that is spelled much alike, if there is one.
    """
    bolt = component.spec
    if not isinstance(bolt, BaseBatchBolt):
        return
    where, kind = f"component {component.component_id!r}", type(bolt).__name__
    if not _overrides(bolt, "execute") and not takes_batches(type(bolt)):
        raise TopologyError(
            f"{where} would ignore every tuple: {kind} overrides neither execute nor execute_batch; "
            + (_meant(bolt, "execute", "execute_batch") or "define one of them, if only an execute that does nothing")
        )
    if _overrides(bolt, "finish_batch") or isinstance(bolt, FinishedCallback):
        return
    states = sorted(handle.name for handle in declared_states(type(bolt)).values())
    if states and component.kind is ComponentKind.COMMITTER:
        raise TopologyError(
            f"{where} would write nothing: {kind} declares state {states} and does not override finish_batch; "
            + (_meant(bolt, "finish_batch") or "define it: only there is state open")
        )
    if (found := _near_miss(bolt, ("finish_batch",), _SURELY_MEANT)) and not found[0].startswith("_"):
        raise TopologyError(
            f"{where}: {kind} defines {found[0]} but not finish_batch; if that is what you meant, rename it"
        )


def _overrides(bolt: BaseBatchBolt, method: str) -> bool:
    return getattr(getattr(bolt, method), "__func__", None) is not getattr(BaseBatchBolt, method)


def _meant(bolt: BaseBatchBolt, *methods: str) -> str:
    """Returns what to ask of a bolt that overrides none of the methods; "" if nothing of it looks like one."""
    for base in type(bolt).__mro__:
        for method in methods:
            if base not in BaseBatchBolt.__mro__ and method in vars(base):
                return f"{base.__name__} defines {method}: name it before BaseBatchBolt among the bases"
    found = _near_miss(bolt, methods, _HINTED)
    return f"it defines {found[0]}: did you mean {found[1]}?" if found else ""


def _near_miss(bolt: BaseBatchBolt, methods: tuple[str, ...], least: float) -> tuple[str, str] | None:
    """Returns the name of a method that overrides nothing of txbatch's, and which of the methods it is most like."""
    names = {name for base in type(bolt).__mro__ for name, value in vars(base).items() if callable(value)}
    pairs = [(SequenceMatcher(None, *pair).ratio(), pair) for pair in product(sorted(names - _FRAMEWORK), methods)]
    likeness, found = max(pairs, default=(0.0, None))
    return found if likeness >= least else None
