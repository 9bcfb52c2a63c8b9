"""Makes the API reference from the docstrings of what the four packages export; the site shows it as its page api.md.

This prints it::

    .venv/bin/python -m tools.api_docs
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

PACKAGES = (
    "state",
    "coordinated_bolt",
    "committers",
    "coordinator",
    "coordinator.sources",
    "coordinator.sources.kafka",
)
SHORT_FORM = (
    "stream", "Stream", "TextFiles", "CsvFiles", "JsonLines", "ParquetFiles", "Follow", "KafkaTopic",
    "KafkaTransactionalSpout", "RedisStreams", "DataFrameBatches", "Inputs", "first", "HashState", "ValueState",
    "SetState", "SortedSetState", "ListState", "StreamState", "HyperLogLogState", "run", "start", "plan", "snapshot",
    "LocalCluster", "FixedBatchesSpout", "TransactionError",
)  # fmt: skip
"""What a user of the short form needs; all of it is in `coordinator`."""
HEAD = """# API reference

Everything the four packages and the rooms of sources export: the names you write in a job, and those you meet when you
read its results. The rest is internal; import it by module, and expect it to change. What the words mean is in the
[glossary](glossary.md).
"""
SECTIONS = frozenset({"Args", "Attributes", "Raises", "Returns", "Source", "Differs from Storm"})
ONE_LINE = re.compile(r"^(Source|Differs from Storm): ")
BLANK_LINES = re.compile(r"\n{3,}")
STARS = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}
MAX_CALL = 100
FRAMEWORK_ONLY = frozenset(
    {
        *("about", "attach", "bind", "detach"),  # of errors, of state handles
        *("attach", "bind", "copied", "detach", "member"),  # of state handles
        *("chooser", "coordinator", "counted", "inform", "add_to_subtopology", "or_window"),
        *("started", "worked", "committed_group", "committed_one", "failed_outcomes"),  # of statistics
    }
)
"""Public methods that only txbatch calls."""


def render() -> str:
    """Returns the whole page."""
    packages = [import_module(name) for name in PACKAGES]
    page = _Page(packages)
    parts = [HEAD, page.short_form(), "\n".join(page.contents(package) for package in packages) + "\n"]
    shown: set[str] = set()
    for package in packages:
        parts.append(f"## {package.__name__}\n\n{inspect.cleandoc(package.__doc__ or '')}\n")
        new = [name for name in package.__all__ if name not in shown]  # one name may have two homes, and one entry
        parts += ["\n".join(page.entry(name, getattr(package, name))) for name in new]
        shown.update(new)
    return BLANK_LINES.sub("\n\n", "\n".join(parts)).rstrip() + "\n"


class _Page:
    """Knows what is exported, and where on the page it stands.

    Args:
        packages: in the order of the page.
    """

    def __init__(self, packages: Sequence[ModuleType]) -> None:
        self._anchors: dict[str, str] = {}
        self._exported = {id(getattr(package, name)) for package in packages for name in package.__all__}
        seen: Counter[str] = Counter()
        for package in packages:
            for title in (package.__name__, *(name for name in package.__all__ if name not in self._anchors)):
                anchor = title.lower().replace(
                    ".", ""
                )  # a second heading that differs only in case gets a number, as on GitHub
                self._anchors[title] = f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor
                seen[anchor] += 1

    def short_form(self) -> str:
        """The names that most jobs need, each a link."""
        names = " · ".join(map(self._link, SHORT_FORM))
        return f"**Begin with these**, all of them in `coordinator`, as in `from coordinator import stream`: {names}\n"

    def contents(self, package: ModuleType) -> str:
        """A package and its names, each a link."""
        return f"- **{self._link(package.__name__)}**: {' · '.join(self._link(name) for name in package.__all__)}"

    def entry(self, name: str, thing: Any) -> Iterator[str]:
        """A name, its call and its documentation."""
        yield f"### {name}\n"
        if inspect.isclass(thing):
            yield from self._class_entry(name, thing)
        elif inspect.isfunction(thing):
            yield _code(name, thing)
            yield from _documentation(thing)
        else:
            yield f"The constant `{thing!r}`.\n"

    def _link(self, title: str) -> str:
        return f"[{title}](#{self._anchors[title]})"

    def _class_entry(self, name: str, kind: type) -> Iterator[str]:
        if _is_built_by_users(kind):
            yield _code(name, kind)
        bases = [base.__name__ for base in kind.__bases__ if id(base) in self._exported]
        if bases:
            yield f"Extends {', '.join(map(self._link, bases))}.\n"
        yield from _documentation(kind)
        for method, function in sorted(self._methods(kind).items()):
            yield from _method_entry(method, function)

    def _methods(self, kind: type) -> dict[str, Any]:
        """The public methods and properties with a docstring that are not shown at an exported base."""
        found: dict[str, Any] = {}
        for owner in kind.__mro__:
            if (owner is kind or id(owner) not in self._exported) and owner.__module__.split(".")[0] in PACKAGES:
                for name, member in vars(owner).items():
                    if not name.startswith("_") and name not in FRAMEWORK_ONLY and _is_documented(member):
                        found.setdefault(name, member)
        return found


def _is_built_by_users(kind: type) -> bool:
    """Whether a constructor is worth showing: not of an interface, a protocol, an error or an enumeration."""
    if issubclass(kind, BaseException | enum.Enum) or inspect.isabstract(kind) or getattr(kind, "_is_protocol", False):
        return False
    return dataclasses.is_dataclass(kind) or "__init__" in vars(kind)


def _is_documented(member: Any) -> bool:
    return bool(member.__doc__) and (inspect.isfunction(member) or isinstance(member, property))


def _method_entry(name: str, member: Any) -> Iterator[str]:
    if isinstance(member, property):
        yield f"**`{name}`** (property)\n"
    else:
        yield f"**`{name}{_signature(member)}`**\n"
    yield from _documentation(member)


def _signature(thing: Any) -> str:
    """The call as users write it: without self, and with types as the source spells them."""
    signature = inspect.signature(thing)
    result = signature.return_annotation
    returns = "" if inspect.isclass(thing) or result is inspect.Signature.empty else f" -> {_type(result)}"
    return f"({', '.join(_parameters(signature))}){returns}"


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    keyword_only = False
    for name, parameter in signature.parameters.items():
        if name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            yield "*"
        stars = STARS.get(parameter.kind.name, "")
        keyword_only = keyword_only or stars == "*"
        typed = "" if parameter.annotation is parameter.empty else f": {_type(parameter.annotation)}"
        default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
        yield f"{stars}{name}{typed}{default}"


def _type(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _default(value: Any) -> str:
    if inspect.isclass(value) or inspect.isroutine(value):
        return value.__name__
    return "..." if repr(value) == "<factory>" else repr(value)


def _code(name: str, thing: Any) -> str:
    """A fenced call, one parameter a line where it would be too long."""
    call = f"{name}{_signature(thing)}"
    if len(call) > MAX_CALL:
        result = call.rpartition(")")[2]
        call = f"{name}(\n" + "".join(f"    {part},\n" for part in _parameters(inspect.signature(thing))) + f"){result}"
    return f"```text\n{call}\n```\n"


def _documentation(thing: Any) -> Iterator[str]:
    """A docstring as Markdown: paragraphs as they are, Google sections as lists."""
    lines = inspect.cleandoc(thing.__doc__ or "").replace("``", "`").splitlines()
    section, previous_blank = "", True
    for line in lines:
        title = line.removesuffix(":")
        if line.endswith(":") and title in SECTIONS:
            section = title
            yield f"*{title}*\n"
        elif section and line.startswith("    "):
            yield from _item(section, line.removeprefix("    "))
        elif not section and line.startswith("    "):
            yield from ([] if not previous_blank else [""])
            yield line
        else:
            if section and line:
                section = ""
                yield ""
            yield ONE_LINE.sub(r"*\1*: ", line)
        previous_blank = not line
    yield ""


def _item(section: str, line: str) -> Iterator[str]:
    """A line of a section: `name: what it is` opens an item, deeper lines continue it."""
    if section == "Returns":
        yield line
        return
    name, colon, text = line.partition(": ")
    if line.startswith(" ") or not colon:
        yield f"  {line.strip()}"
    else:
        yield f"- `{name}`: {text}"


if __name__ == "__main__":
    sys.stdout.write(render())
