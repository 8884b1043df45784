"""Entries in columns are made of pairs alone, and taken apart where all items are known to have so many members."""

from __future__ import annotations

from typing import Any

import pytest

from dstream.operators.columns.entries import Entries, entries_of, with_parts
from dstream.operators.columns.values import ConstantColumn, NotColumnar, column_of
from dstream.operators.rows.blocks import given
from dstream.values import Entry

_PAIRS = column_of([(1, "a"), (2, "b")])
_TRIPLES = column_of([(1, "a", 0.5), (2, "b", 0.5)])


def _entries() -> Entries:
    found = entries_of(_PAIRS)
    assert isinstance(found, Entries)
    return found


def test_pairs_become_entries() -> None:
    """Also one that stands in all rows."""
    assert list(given(_entries())) == [Entry(1, "a"), Entry(2, "b")]
    assert list(given(entries_of(ConstantColumn((1, "a"), 2)))) == [Entry(1, "a")] * 2


@pytest.mark.parametrize("items", [_TRIPLES, ConstantColumn((1, 2, 3), 2), ConstantColumn("ab", 2), column_of([1, 2])])
def test_what_is_no_pair_becomes_no_entry(items: Any) -> None:
    """Python refuses it."""
    with pytest.raises(NotColumnar):
        entries_of(items)


@pytest.mark.parametrize(
    ("items", "size"), [(_PAIRS, 2), (_TRIPLES, 3), (_entries(), 2), (ConstantColumn(Entry(1, 2), 2), 2)]
)
def test_items_of_so_many_members_are_taken_apart(items: Any, size: int) -> None:
    """Whether they are tuples or entries; not where another number is asked for."""
    assert with_parts(items, size) is items
    with pytest.raises(NotColumnar):
        with_parts(items, 5 - size)


@pytest.mark.parametrize("items", [ConstantColumn((1, 2), 2), ConstantColumn("abc", 2), column_of(["abc", "def"])])
def test_other_items_are_not_taken_apart(items: Any) -> None:
    """A text has as many characters, and is no tuple."""
    with pytest.raises(NotColumnar):
        with_parts(items, 3)
