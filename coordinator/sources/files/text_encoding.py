"""Text in single-byte encodings, whose records end at the same bytes as in UTF-8.

UTF-16 is refused: there, the byte of a line feed is also half of other characters.
"""

from __future__ import annotations

import codecs
from typing import Any

from state.errors import TopologyError

_ASCII = bytes(range(128)) + b"+AGE- \\u0041 ~{ \x1b$B!!"  # some encodings do not decode these as ASCII
UTF_8 = "utf-8"
UTF_8_HINT = "; if it is text in another encoding, name that, such as encoding='cp1252'"


def checked_encoding(owner: str, given: Any) -> str:
    """Returns the name of the encoding to convert from; empty if it is UTF-8 (driver).

    Raises:
        TopologyError: Python does not know the encoding, or it is not a single-byte encoding that extends ASCII.
    """
    try:
        name = codecs.lookup(given).name
        if name in (UTF_8, "utf-8-sig"):
            return ""
        pairs = [bytes([byte, other]) for byte in range(128, 256) for other in (65, byte)]
        is_simple = {len(pair.decode(name, "replace")) for pair in pairs} == {2}
        if is_simple and _ASCII.decode(name) == _ASCII.decode("ascii"):
            return name
    except (LookupError, TypeError, ValueError):
        pass
    raise TopologyError(
        f"encoding={given!r} of {owner} is not a single-byte encoding of Python's, such as 'cp1252' or "
        "'iso-8859-15': convert the files first (iconv -f ENCODING -t UTF-8 FILE)"
    )


def as_utf_8(content: bytes, encoding: str) -> bytes:
    """Returns content as UTF-8; a byte that is invalid in the encoding becomes invalid UTF-8."""
    return content.decode(encoding, "surrogateescape").encode("utf-8", "surrogatepass")
