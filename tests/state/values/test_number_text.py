"""A text is a number everywhere or nowhere."""

from __future__ import annotations

from decimal import Decimal

import pytest

from coordinator.operating.transfer.state_lines import from_json
from coordinator.sources.records.csv_fields import CsvFields
from coordinator.sources.records.record_format import BadRecordError
from coordinator.sources.redis_streams.redis_streams import EntryFields
from state.codec import pack
from state.values.number_text import decimal_of, float_of, integer_of
from state.values.state_kind import ValueType

ODD = ["", " 1", "1 ", "1\n", "1_0", "nan", "NaN", "inf", "-Infinity", "٣", "１２", "0x10", "1e", "--1", "1,5", "½"]  # noqa: RUF001
READERS = {int: integer_of, float: float_of, Decimal: decimal_of}


def of_stream(kind, text):
    return EntryFields({"x": kind}).row(pack([b"x", text.encode()]))[0]


def of_csv(kind, text):
    return CsvFields(["x", "end"], {"x": kind}).row(f'"{text}",'.encode())[0]


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("text", ODD)
def test_what_only_python_takes_for_a_number_is_none_anywhere(kind, text):
    with pytest.raises(ValueError, match=r"^"):
        READERS[kind](text)
    for read in (of_stream, of_csv):
        with pytest.raises(BadRecordError, match=r"field 'x' is .*, which is not"):
            read(kind, text)


@pytest.mark.parametrize("text", ["1_0", "NaN", " 1", "１２"])  # noqa: RUF001
def test_a_line_of_an_export_holds_no_other_numbers(text):
    with pytest.raises(ValueError, match="is not a value of type Decimal|" + text):
        from_json(text, ValueType.DECIMAL, 2)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("7", (7, 7.0, Decimal(7))),
        ("+7", (7, 7.0, Decimal(7))),
        ("-007", (-7, -7.0, Decimal(-7))),
        ("1.", (None, 1.0, Decimal(1))),
        (".5", (None, 0.5, Decimal("0.5"))),
        ("1E-3", (None, 0.001, Decimal("0.001"))),
        ("1e999", (None, None, Decimal("1e999"))),
        ("9" * 5000, (None, None, Decimal("9" * 5000))),
    ],
)
def test_a_number_is_the_same_in_every_format(text, numbers):
    for kind, number in zip(READERS, numbers, strict=True):
        if number is not None:
            assert READERS[kind](text) == of_stream(kind, text) == of_csv(kind, text) == number
        else:
            with pytest.raises(ValueError, match=r"^"):
                READERS[kind](text)
