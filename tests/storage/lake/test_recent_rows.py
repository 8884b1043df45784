"""Rows that were written lately are folded without being read; all others, and large ones, are read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dstream.storage.lake import caches
from dstream.storage.lake.caches import RecentRows
from dstream.storage.lake.merge import MAX_FILES


def _opened(seen):
    """Return a hook that collects the data files that are opened."""

    def hook(operation, path):
        if operation == "open" and path.endswith(".parquet"):
            seen.append(path)

    return hook


@pytest.mark.parametrize("journal", [False, True])
def test_recent_rows_are_folded_without_being_read(lake, journal):
    """Whoever wrote them opens only what a fold has made, and the entries are those that were put."""
    seen = []
    store = lake.map(_opened(seen), buckets=1, journal=journal)
    for n in range(3 * MAX_FILES):
        lake.put(store, **{f"k{n % 50}": None if n % 7 == 0 else n})

    assert len(seen) < 10
    expected = {f"k{n % 50}": n for n in range(3 * MAX_FILES) if n + 50 >= 3 * MAX_FILES and n % 7}
    assert lake.content(lake.map()) == lake.content(store) == expected


def test_recent_rows_of_another_handle_are_read(lake):
    """A handle folds what others have written as well."""
    for n in range(20):
        lake.put(lake.map(buckets=1), **{f"k{n}": n})
    seen = []
    lake.map(_opened(seen)).compact()

    assert len(seen) >= 20
    assert lake.content(lake.map()) == {f"k{n}": n for n in range(20)}


def test_recent_rows_of_types_that_were_decided_later(lake):
    """Rows without a column for the values are folded with rows that have one."""
    store = lake.map(buckets=1)
    lake.put(store, a=None)
    lake.put(store, b=1)
    lake.put(store, b=2, c=3)
    store.compact()

    assert lake.content(lake.map()) == {"b": 2, "c": 3}


def test_recent_rows_are_few_and_small(lake, monkeypatch):
    """The oldest go first; large rows are not kept at all."""
    monkeypatch.setattr(caches, "_MOST", 3)
    monkeypatch.setattr(caches, "_LARGEST", 100)
    rows = RecentRows()
    small, large = (pa.RecordBatch.from_pydict({"n": [1] * count}) for count in (1, 100))
    for n in range(5):
        rows.keep({f"{n}": small, f"large-{n}": large})

    assert list(rows._rows) == ["2", "3", "4"]
