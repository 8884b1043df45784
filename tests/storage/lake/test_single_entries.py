"""Files of one entry that are made of the bytes of others are those that pyarrow writes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dstream.spi.store import Options
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.pickles import Pickles
from dstream.storage.lake import single_keys, tables
from dstream.storage.lake.merge import MAX_FILES
from dstream.storage.lake.single_keys import SingleEntries
from dstream.storage.lake.tables import Layout, small_file

VALUES = {
    str: st.text(max_size=9),
    bytes: st.binary(max_size=9),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(),
    bool: st.booleans(),
}


def _layout(key: Any = str, value: Any = int, journal=False):
    codec = Codec.of("map", "m", Options(key_type=key, value_type=value), Pickles("trusted"))
    return Layout(codec, has_keys=True, journal=journal)


def _third(layout, key, value):
    """Return the file of an entry whose lengths were seen twice before."""
    singles = SingleEntries()
    singles.file(layout, key, value), singles.file(layout, key, value)
    return singles.file(layout, key, value)


@pytest.mark.parametrize(("key", "value"), [*((str, value) for value in VALUES), (bytes, int), (int, str)])
@settings(max_examples=25)
@given(data=st.data())
def test_file_is_that_of_pyarrow(key, value, data):
    """Whatever other entry of these lengths the bytes come from."""
    layout, singles = _layout(key, value), SingleEntries()
    for _ in range(4):
        entry = data.draw(VALUES[key]), data.draw(VALUES[value])
        made = singles.file(layout, *entry)
        assert made in (None, small_file(layout.entries([entry[0]], [entry[1]])))
    assert _third(layout, *entry) == small_file(layout.entries([entry[0]], [entry[1]]))


@pytest.mark.parametrize(
    ("key", "value"),
    [("\ud800", 1), (1, 1), ("a", 2**63), ("a", True), ("a", 1.0), ("a", None), (type("S", (str,), {})("a"), 1)],
)
def test_what_does_not_fit_its_column_is_left_to_pyarrow(key, value):
    """Another type than the map's, also a subclass; a text or an int that has no plain form; an entry that goes."""
    assert _third(_layout(), key, value) is None
    assert _third(_layout(), "a", 1) is not None


@pytest.mark.parametrize("layout", [_layout(journal=True), _layout(value=list[int]), _layout(key=float)])
def test_layouts_with_more_than_plain_columns_are_left_to_pyarrow(layout):
    """Old values, lists, and keys of which equal ones differ."""
    assert _third(layout, 1.0, [1]) is _third(layout, "a", 1) is None


def test_pyarrow_that_writes_more_about_values_is_noticed(monkeypatch):
    """With the least and the greatest value in the file, bytes of one entry do not serve another."""

    def described(batch):
        sink = pa.BufferOutputStream()
        tables.parquet.write_table(pa.Table.from_batches([batch]), sink, use_dictionary=False, compression="none")
        return sink.getvalue().to_pybytes()

    monkeypatch.setattr(single_keys, "small_file", described)

    assert _third(_layout(), "a", 1) is None


def test_forms_are_few(monkeypatch):
    """Texts of any length do not fill the memory."""
    monkeypatch.setattr(single_keys, "_MOST_FORMS", 3)
    layout, singles = _layout(), SingleEntries()
    for length in range(20):
        singles.file(layout, "k" * length, 1)

    assert len(singles._forms) <= 3


@pytest.mark.parametrize(("many", "others"), [(999, 999), (23, 999), (999, 22), (23, 22)])
def test_single_entries_are_folded_newest_first(lake, many, others):
    """Also with changes of several keys, removed entries, and what others have put, in between."""
    store, other, expected = lake.map(buckets=1), lake.map(buckets=1), {}
    for n in range(1, MAX_FILES + 2):
        key = f"early {n % 40}" if n < 50 else f"late {n % 4}"
        change = {key: None if n in (45, 59) else n, **({f"other {n}": n} if n % many == 0 else {})}
        lake.put(other if n % others == 0 else store, **change)
        expected.update(change)
    left = {key: value for key, value in expected.items() if value is not None}

    assert len(store.log.files()) == 1
    assert lake.content(lake.map()) == lake.content(store) == left
