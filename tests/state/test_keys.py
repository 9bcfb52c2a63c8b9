"""Key spelling is injective and stays inside the topology."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.errors import TopologyError
from state.keys import Keys, check_name, metadata_field, parse_metadata_field

names = st.from_regex(r"[A-Za-z0-9_.-]{1,64}", fullmatch=True).filter(lambda name: name.strip("."))


@given(names, names, names, names)
def test_two_states_never_share_a_key(topology_a, name_a, topology_b, name_b):
    same = (topology_a, name_a) == (topology_b, name_b)
    assert (Keys(topology_a).state(name_a) == Keys(topology_b).state(name_b)) is same


@given(names, names)
def test_no_state_lands_on_a_key_of_ours(topology_id, name):
    keys = Keys(topology_id)
    assert keys.state(name) not in {keys.control, keys.metadata, keys.receipts}


@given(names, names, names)
def test_pattern_matches_exactly_the_topology(topology_id, other, name):
    pattern = Keys(topology_id).pattern
    assert fnmatch.fnmatchcase(Keys(topology_id).state(name), pattern)
    assert fnmatch.fnmatchcase(Keys(other).state(name), pattern) is (other == topology_id)


@pytest.mark.parametrize("name", ["", "a b", "a:b", "{a}", "ä", "a" * 65, "a\n", ".", "..", "...", None, 3])
def test_names_outside_the_rule_are_refused(name):
    with pytest.raises(TopologyError, match="not a valid name"):
        check_name("topology id", name)


@given(names, st.integers(1, 2**53 - 1))
def test_metadata_field_is_read_back(scope, txid):
    assert parse_metadata_field(metadata_field(scope, txid)) == (scope, txid)
