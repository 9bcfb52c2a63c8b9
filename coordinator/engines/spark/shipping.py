"""Ships code to executors: the pickled bolts, our packages, and the modules of the user's topology."""

from __future__ import annotations

import io
import marshal
import sys
import zipfile
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle

from coordinated_bolt.components.component import MadeOfFunctions
from coordinated_bolt.neighbours import PACKAGES
from coordinator.topology.building.topology import ComponentGraph
from coordinator.topology.planning.task_wirings import spec_pickler
from state.codec import digest64

if TYPE_CHECKING:
    from pyspark import SparkContext

UNCHECKED_HASH = 1
"""Header flag of byte code that is not compared with its source."""
FAST = 1
"""The level of compression: the archive is a sixth larger than by the default one, and takes half the time to make."""


def dumps(spec: Any) -> bytes:
    """Pickles a spec, by value if it is not in an importable module (driver, once a component)."""
    packed: bytes = cloudpickle.dumps(spec)  # type: ignore[no-untyped-call] # pyspark ships it untyped
    return packed


pickle_spec = spec_pickler(dumps)


def ship_code(context: SparkContext, user_modules: list[str]) -> str:
    """Sends our packages and the user's modules to every executor in one archive, and returns its name.

    Only tasks that are given this name import from it (`FrameJobs`). Nothing changes for other jobs of the context,
    which may be the user's own, nor for imports of this process.

    Args:
        context: the Spark context.
        user_modules: the names of the modules that define the topology's classes.
    """
    # in Spark's own folder, which goes with the context
    folder = Path(str(context._temp_dir), "txbatch-code")  # noqa: SLF001 - its only name
    folder.mkdir(mode=0o700, exist_ok=True)
    packed = packed_code(user_modules)
    archive = folder / f"txbatch_code_{digest64(packed):016x}.zip"
    # a context accepts a file name only once, and many runs may share it
    if archive.name not in {name.rpartition("/")[2] for name in context.listFiles}:
        archive.write_bytes(packed)
        context.addFile(str(archive))
    return archive.name


def packed_code(user_modules: list[str]) -> bytes:
    """Returns an archive of our packages and the user's modules."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:
        for package in PACKAGES:
            _add(made, Path(str(import_module(package).__file__)).parent, package)  # it need not be loaded yet
        for name in sorted({module.partition(".")[0] for module in user_modules} - set(PACKAGES)):
            _add_user_module(made, name, sorted(m for m in user_modules if m.partition(".")[0] == name))
    return packed.getvalue()


def ship_topology(context: SparkContext, topology: ComponentGraph, named: str | None = None) -> str:
    """Ships what a topology's tasks import, and returns the name of the archive; see `ship_code`.

    Args:
        context: the Spark context.
        topology: any topology.
        named: a module to ship in addition to those that define the classes of components, hooks and groupings.
    """
    return ship_code(context, topology_modules(topology, named))


def topology_modules(topology: ComponentGraph, named: str | None = None) -> list[str]:
    """Returns the modules that a topology's tasks import and that have to be shipped."""
    specs: list[Any] = [component.spec for component in topology.components]
    specs += topology.task_hooks
    specs += [s.grouping for component in topology.components for s in component.subscriptions]
    return user_modules(specs, named)


def user_modules(topology_specs: list[Any], named: str | None = None) -> list[str]:
    """Returns the modules to ship: those that define the components' classes and functions, and the factory's."""
    names = {type(spec).__module__ for spec in topology_specs} | ({named} if named else set())
    names = names.union(*(spec.user_modules for spec in topology_specs if isinstance(spec, MadeOfFunctions)))
    return sorted(name for name in names if name != "__main__" and not _is_installed_for_all(name))


def _is_installed_for_all(name: str) -> bool:
    top = name.partition(".")[0]
    return top in PACKAGES or top in sys.stdlib_module_names or top == "pyspark"


def _add_user_module(archive: zipfile.ZipFile, top: str, modules: list[str]) -> None:
    package: ModuleType | None = sys.modules.get(top)
    origin = getattr(package, "__file__", None)
    if origin and Path(origin).name == "__init__.py":
        _add(archive, Path(origin).parent, top)
        return
    for name in modules:  # single modules, or modules of a namespace package
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and file.endswith(".py"):
            _add_folders(archive, name)
            _add_file(archive, Path(file), name.replace(".", "/") + ".py")


def _add_folders(archive: zipfile.ZipFile, module: str) -> None:
    """Adds an entry for every folder above a module, without which a zip has no namespace packages."""
    for parent in reversed(PurePosixPath(module.replace(".", "/")).parents[:-1]):
        if f"{parent}/" not in archive.namelist():
            archive.mkdir(str(parent))


def _add(archive: zipfile.ZipFile, folder: Path, name: str) -> None:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            _add_file(archive, file, f"{name}/{file.relative_to(folder)}")


def _add_file(archive: zipfile.ZipFile, file: Path, name: str) -> None:
    """Adds a file and, for a module, its byte code, which names the original file.

    Executors then need not compile it, and a traceback shows the user's own path, not one in an archive in a temporary
    folder. An executor with another version of Python ignores the byte code.
    """
    content = file.read_bytes()
    _put(archive, name, content)
    if not name.endswith(".py"):
        return
    try:
        code = SourceFileLoader(name, str(file)).get_code(name)
    except (SyntaxError, ValueError):  # a template, or an example of what is wrong: nobody imports it
        return
    header = MAGIC_NUMBER + UNCHECKED_HASH.to_bytes(4, "little") + source_hash(content)
    _put(archive, f"{name}c", header + marshal.dumps(code))


def _put(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Adds an entry without a date, so that the same content makes the same archive."""
    archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, FAST)
