"""A section on an example, taken apart: its code, its picture, its commands and what they answer."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs" / "examples.md"
_SECTION = re.compile(r"^## .*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_EXAMPLE = re.compile(r"`examples/(\w+)\.py`")
_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
_ARROW = re.compile(r"^ +(\w+) -->\|([^|]+)\| (\w+)$")
_REPLY = re.compile(r'^(?: *\d+\) )?"(.*)"$|^\(integer\) (\d+)$')


@dataclass(frozen=True, slots=True)
class Shown:
    """A command of a console block, and the lines below it."""

    command: list[str]
    lines: list[str]

    def values(self) -> list[str]:
        """What redis-cli shows, without quotes and numbers."""
        found = [_REPLY.fullmatch(line) for line in self.lines]
        return [match[1] if match[1] is not None else match[2] for match in found if match is not None]


def sections() -> dict[str, str]:
    """Every section of docs/examples.md, by the example whose file it names first."""
    texts = _SECTION.findall(DOCUMENT.read_text(encoding="utf-8"))
    return {match[1]: text for text in texts if (match := _EXAMPLE.search(text))}


class Section:
    """The section of docs/examples.md on one example."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.text = sections()[name]
        self.source = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")

    def blocks(self, language: str) -> list[str]:
        """The blocks in one language."""
        return [text for found, text in _BLOCK.findall(self.text) if found == language]

    def arrows(self) -> set[tuple[str, str, str]]:
        """The picture: (component, its grouping as a person would say it, subscriber)."""
        found = [_ARROW.match(line) for text in self.blocks("mermaid") for line in text.splitlines()[1:]]
        return {(match[1], match[2], match[3]) for match in found if match is not None}

    def commands(self, program: str) -> list[list[str]]:
        """What the section has a reader type, of one program."""
        lines = [line for text in self.blocks("sh") for line in text.splitlines()]
        return [shlex.split(line) for line in lines if line.startswith(f"{program} ")]

    def shown(self) -> list[Shown]:
        """The commands of console blocks with what follows each."""
        found: list[Shown] = []
        for line in (line for text in self.blocks("console") for line in text.splitlines()):
            if line.startswith("$ "):
                found.append(Shown(shlex.split(line[2:]), []))
            else:
                found[-1].lines.append(line)
        return found


def replied(client: Any, shown: Shown) -> list[str]:
    """What a server answers to a command of redis-cli, in the form of `Shown.values`; a hash in the order shown."""
    name, *arguments = shown.command[1:]
    reply = client.execute_command(name, *arguments)
    match reply:
        case dict():
            order = shown.values()[::2]
            assert set(order) == set(reply)
            return [text for field in order for text in (field, reply[field])]
        case list():
            return [_text(part) for pair in reply for part in (pair if isinstance(pair, (list, tuple)) else [pair])]
    return [_text(reply)]


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) else str(value)
