"""Files of orders for `checked_orders`, and what a plain loop makes of them."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from state.commits.dead_letters import DeadLetter

BAD_LINES = ("", "{", '{"order": 7, "customer": "ann", "cents": 1}', '{"order": "x", "cents": 1}', "\\x00")


@dataclass
class Answer:
    """What has to come of some orders.

    Attributes:
        cents: customer -> total.
        refused: (component, what identifies the order) -> how often.
    """

    cents: dict[str, int] = field(default_factory=dict)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)


def write_orders(path: Path, count: int, *, seed: int, limit: int) -> Answer:
    """Writes lines, about a third of which are refused somewhere, and returns the answer of a plain loop over them."""
    draw, answer, lines = random.Random(seed), Answer(), []
    for number in range(count):
        if draw.random() < 0.1:
            lines.append(f"bad {number} {draw.choice(BAD_LINES)}")
            answer.refused["orders", lines[-1]] += 1
            continue
        order, customer = f"o{number}", f"c{draw.randrange(20)}"
        cents = draw.choice([0, -3, *range(1, 15)])
        lines.append(json.dumps({"order": order, "customer": customer, "cents": cents}))
        owed = answer.cents.get(customer, 0)
        if cents <= 0:
            answer.refused["check", order] += 1
        elif owed + cents > limit:
            answer.refused["add", order] += 1
        else:
            answer.cents[customer] = owed + cents
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return answer


def refused_in(letters: Iterable[DeadLetter]) -> Counter[tuple[str, str]]:
    """What letters say was refused, in the words of an `Answer`."""
    found: Counter[tuple[str, str]] = Counter()
    for letter in letters:
        is_line = "record" in letter.fields
        found[letter.component_id, letter["record"].decode() if is_line else letter["order"]] += 1
    return found
