"""`Entry`: a key and its value."""

from __future__ import annotations

import pickle

from dstream import Entry


def test_an_entry_is_a_pair_with_names():
    """It unpacks, compares and hashes as the pair does."""
    entry = Entry("whale", 3)
    key, value = entry

    assert (key, value, entry.key, entry.value) == ("whale", 3, "whale", 3)
    assert entry == ("whale", 3)
    assert {("whale", 3): 1}[entry] == 1


def test_an_entry_travels_as_an_entry():
    """Type and text stay."""
    assert repr(pickle.loads(pickle.dumps(Entry("a", None)))) == "Entry(key='a', value=None)"
