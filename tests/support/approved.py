"""Long texts are compared with files that a person has read: tests/approved/NAME.txt.

After a change that is meant, `TXBATCH_APPROVE=1 pytest FILE` rewrites them; then read `git diff`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "approved"


def approved(text: str, name: str, **varying: object) -> None:
    """Fails unless a text is the approved one; `varying` names what differs from run to run: NAME stands for it."""
    for word, found in varying.items():
        text = text.replace(str(found), word)
    text = "".join(f"{line.rstrip(' ')}\n" for line in text.removesuffix("\n").split("\n"))
    file = FOLDER / f"{name}.txt"
    if os.environ.get("TXBATCH_APPROVE") and os.environ.get("CI", "").lower() != "true":
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), f"what {file} says has changed; TXBATCH_APPROVE=1 takes it over"


def refusals(cases: Mapping[str, Callable[[], Any]], *errors: type[Exception]) -> str:
    """What each case is refused with, without tracebacks, lines and ids, which other changes would change."""
    said = []
    for name, case in cases.items():
        with pytest.raises(errors) as refused:
            case()
        text = re.sub(r"Traceback \(most recent call last\):\n(?:  .*\n)*", "", str(refused.value))
        text = re.sub(r"(?<=attempt 1):[0-9a-f]{16}| at 0x[0-9a-f]+", "", text)
        said.append(f"== {name}\n" + re.sub(r"[^\s'(]*/(\w+\.py):\d+", r"\1", text))
    return "\n".join(said)


def wrongly(call: Any, *given: Any, **more: Any) -> Callable[[], Any]:
    """A case for `refusals` that a type checker would refuse, too."""
    return partial(call, *given, **more)
