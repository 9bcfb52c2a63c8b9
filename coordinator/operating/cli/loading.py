"""Makes the topology that ``MODULE:FACTORY`` names on the command line."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from coordinated_bolt.user_code import is_users
from coordinator.operating.cli.parameters import bind_parameters, parse_pairs
from coordinator.operating.cli.terminal import user_output_aside
from coordinator.operating.inspection.wording import WordsByScope, words_by_scope, words_of_spout
from coordinator.plain.plain_topology import PlainTopology
from coordinator.topology.building.topology import Topology
from state.errors import TopologyError, TransactionError
from state.printable import message_of, one_line
from state.troubles import Trouble

Factory = Callable[..., Any]


def load_topology(target: str, parameters: Sequence[str] | None) -> tuple[Topology | PlainTopology, str]:
    """Returns the topology that a command names, and the name of its factory's module."""
    factory, module_name = load_factory(target)
    return make_topology(factory, target, parse_pairs("-p", parameters or ())), module_name


def load_factory(target: str) -> tuple[Factory, str]:
    """Imports the module and finds its factory.

    A module is searched in the current directory first; a file is imported from its own folder. Our own packages are
    imported by then, so a ``state`` or ``coordinator`` in either folder cannot shadow them.

    Args:
        target: ``package.module:factory`` or ``path/to/file.py:factory``.

    Returns:
        The factory, and the name of its module.

    Raises:
        TopologyError: the module or factory does not exist, or the module raises; the message says where.
    """
    module_name, separator, factory_name = target.rpartition(":")
    if not separator or not module_name or not factory_name:
        raise _refused(
            f"{target!r} does not name a topology; give MODULE:FACTORY, such as visits.topology:topology "
            "or jobs/word_count.py:topology"
        )
    _look_first_in(Path.cwd())
    if module_name.endswith(".py"):
        module_name = _make_importable(Path(module_name))
    module = _import(module_name)
    factory = module
    for part in factory_name.split("."):
        factory = getattr(factory, part, None)
        if factory is None:
            raise _refused(f"module {module_name!r} has no {factory_name!r}; {_offered(module)}")
    if not callable(factory):
        raise _refused(f"{target!r} is {factory!r}, which is not callable; name a function that returns a topology")
    return factory, module_name


def make_topology(factory: Factory, name: str, given: Mapping[str, str]) -> Topology | PlainTopology:
    arguments = bind_parameters(factory, name, given)
    try:
        made = factory(**arguments)
    except TransactionError:
        raise
    except (Exception, SystemExit) as error:
        raise _refused(f"factory {name!r} raised {blame_of(error)}") from error
    if not isinstance(made, (Topology, PlainTopology)):
        raise _refused(
            f"factory {name!r} returned {made!r}; return the result of build(), of a TransactionalTopologyBuilder or "
            "TopologyBuilder, or of topology(id), of a stream"
        )
    return made


def read_words(
    topology_id: str,
    source_fingerprint: str,
    metadata: Mapping[str, Any],
    target: str | None,
    parameters: Sequence[str] | None,
) -> WordsByScope:
    """Returns the input of a transaction in words: by our own source, or by the spout of the factory `target`.

    Without a `target`, only our own sources have words.
    """
    if target is None:
        if parameters:
            raise TopologyError("-p is for the factory of --factory, which was not given; leave it out, or give both")
        return words_by_scope(source_fingerprint, metadata)
    with user_output_aside():
        topology, _ = load_topology(target, parameters)
        if not isinstance(topology, Topology) or topology.topology_id != topology_id:
            raise TopologyError(
                f"{target!r} makes topology {topology.topology_id!r}, not {topology_id!r}; give the factory that its "
                "runs have"
            )
        return words_of_spout(topology.spout.spec, metadata)


def _refused(why: str) -> TopologyError:
    return TopologyError(why).about(Trouble.LOADING)


def _make_importable(path: Path) -> str:
    """Puts the root folder of a file first on the path, and returns the module name of the file."""
    file = path.resolve()
    if not file.is_file():
        raise _refused(f"file {str(path)!r} does not exist")
    parts, folder = [file.stem], file.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    if not all(part.isidentifier() for part in parts):
        raise _refused(
            f"file {str(path)!r} cannot be imported as {'.'.join(parts)!r}, which is not a module name; rename it"
        )
    _look_first_in(folder)
    taken = getattr(sys.modules.get(parts[0]), "__file__", None)
    is_elsewhere = taken is None or not Path(taken).resolve().is_relative_to(folder)
    if is_elsewhere and (parts[0] in sys.modules or parts[0] in sys.stdlib_module_names):
        raise _refused(
            f"file {str(path)!r} cannot be imported as {parts[0]!r}: that name is taken by "
            f"{taken or 'the standard library'}; rename it"
        )
    return ".".join(parts)


def _look_first_in(folder: Path) -> None:
    if sys.path[:1] != [str(folder)]:
        sys.path.insert(0, str(folder))


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except TransactionError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            hint = f"; if it is a file, give {name}.py" if "/" in name else ""
            raise _refused(f"module {name!r} is neither in {str(Path.cwd())!r} nor installed{hint}") from error
        raise _refused(f"importing {name!r} raised {blame_of(error)}") from error


def _offered(module: Any) -> str:
    own = sorted(
        name
        for name, value in vars(module).items()
        if callable(value)
        and not name.startswith("_")
        and not isinstance(value, type)
        and getattr(value, "__module__", None) == module.__name__
    )
    return f"it defines: {', '.join(own)}" if own else "it defines no functions"


def blame_of(error: BaseException) -> str:
    """Returns the type, message and place of an error that user code raised."""
    message = one_line(error.msg) if isinstance(error, SyntaxError) else message_of(error)
    kind, module = type(error).__qualname__, type(error).__module__
    name = kind if module in ("builtins", "__main__") else f"{module}.{kind}"
    text = f"{name}: {message}" if message else name
    place = place_of(error)
    return f"{text} ({place})" if place else text


def place_of(error: BaseException) -> str:
    """Returns the file and line of the user's code nearest to where `error` was raised; "" if there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if is_users(frame.filename)]
    return f"{own[-1].filename}, line {own[-1].lineno}" if own else ""
