"""Tables for notebooks: everything put in is text, and none of it is endless."""

from __future__ import annotations

from xml.etree import ElementTree

from state.html_tables import CELL_LIMIT, ROW_LIMIT, Markup, bounded_repr, bounded_table, section, states_table, table

HOSTILE = '<script>alert("x")</script>&'


def texts(html):
    return [text for text in ElementTree.fromstring(html).itertext() if text]


def test_names_headers_captions_and_values_are_escaped():
    html = section(table((HOSTILE,), [(HOSTILE,), ([HOSTILE],)], caption=HOSTILE))
    assert "<script" not in html
    assert texts(html) == [HOSTILE, HOSTILE, HOSTILE, repr([HOSTILE])]


def test_states_are_escaped_and_count_their_entries():
    html = states_table({HOSTILE: {HOSTILE: 1}, "total": 7, "nothing": None})
    assert "<script" not in html
    assert texts(html)[3:] == [HOSTILE, "1", repr({HOSTILE: 1}), "total", "7", "nothing", "None"]


def test_numbers_are_grouped_and_aligned_to_the_right():
    html = table((), [("tuples", 1234567), ("is_done", True)])
    assert 'text-align:right;vertical-align:top">1,234,567</td>' in html
    assert 'text-align:left;vertical-align:top">True</td>' in html


def test_a_number_that_has_its_form_already_is_aligned_as_a_number():
    html = table(("seconds", "picture"), [(Markup("0.990"), Markup("<b>1</b>"))])
    assert 'text-align:right;vertical-align:top">0.990</td>' in html
    assert 'text-align:left;vertical-align:top"><b>1</b></td>' in html


def test_a_long_cell_and_a_long_table_say_what_they_leave_out():
    assert texts(section(table((), [("", "x" * (CELL_LIMIT + 5))])))[-1].endswith("… (5 more)")
    rows = [(number,) for number in range(ROW_LIMIT + 3)]
    assert texts(section(bounded_table(("number",), rows)))[-2:] == [str(ROW_LIMIT - 1), "and 3 more"]


def test_a_large_container_shows_its_first_entries_only():
    assert bounded_repr(dict.fromkeys(range(1000), "x" * 100)).count("...") == 9
    assert bounded_repr("a\x1b[31m") == "'a\\x1b[31m'"
