"""The names of groupings in descriptions and pictures of topologies."""

from __future__ import annotations

import re
from ast import literal_eval

from state.printable import one_line

_GROUPING_WORDS = {
    "AllGrouping": "all",
    "DirectGrouping": "direct",
    "FieldsGrouping": "fields",
    "GlobalGrouping": "global",
    "LocalOrShuffleGrouping": "local or shuffle",
    "NoneGrouping": "none",
    "PartialKeyGrouping": "partial key",
    "ShuffleGrouping": "shuffle",
}
_GROUPING = re.compile(r"(\w+)\((?:names=(\(.*\))|.*)\)", re.DOTALL)
_STORED_NAME_LIMIT = 64


def grouping_in_words(text: str, limit: int = _STORED_NAME_LIMIT) -> str:
    """Returns the displayed name of the grouping with this repr, such as "fields word"; for a user's own, the repr."""
    found = _GROUPING.fullmatch(text)
    if found is None or found[1] not in _GROUPING_WORDS:
        return one_line(text, limit)
    words = _GROUPING_WORDS[found[1]]
    try:
        return words if found[2] is None else f"{words} {', '.join(literal_eval(found[2]))}"
    except (ValueError, SyntaxError, TypeError):  # a user's own grouping of the same name
        return one_line(text, limit)
