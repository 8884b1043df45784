"""More than 2 GiB of one column: several batches, of which none is lost. The limit is lowered here."""

from __future__ import annotations

import pytest

from dstream.schema import scalar_types, types
from dstream.spi.store import Splice
from dstream.storage.codec import collection
from dstream.storage.lake import merge, tables
from tests.storage.lake.writing import written

ROWS = [(("k", n), bytes([n])) for n in range(7)]


@pytest.fixture
def low_limit(monkeypatch):
    """Limit columns to two values, as if each were a gigabyte."""

    def limited(array):
        if len(array) > 2:
            raise types.ColumnTooLargeError("too large")
        return array

    monkeypatch.setattr(scalar_types, "one_chunk", limited)
    monkeypatch.setattr(collection, "one_chunk", limited)


def _job(store):
    job = store.begin(None)
    job.commit(written(job.writer, ROWS))


CHANGES = {
    "update": lambda store: store.update([key for key, _ in ROWS], lambda old: [value for _, value in ROWS]),
    "job": _job,
}


@pytest.mark.parametrize("change", CHANGES)
def test_large_columns_of_a_map_are_written_in_parts(lake, low_limit, change):
    """All entries are there, whether they were put or written by a job."""
    store = lake.map(buckets=1, value_type=bytes)
    CHANGES[change](store)

    assert lake.content(store) == dict(ROWS)
    store.update([("k", 0)], lambda old: [b"new"])
    store.compact()
    assert lake.content(store) == dict(ROWS) | {("k", 0): b"new"}


def test_large_columns_of_a_list_are_written_in_parts(lake, low_limit):
    """All items are there in their order, whether they were appended or spliced in."""
    items = lake.list(value_type=bytes)
    values = [value for _, value in ROWS]
    items.extend(values)
    items.edit(lambda view: Splice(0, 0, values))

    assert lake.items(items) == values * 2


def test_large_columns_survive_compaction(lake, monkeypatch):
    """A table that does not become one batch is written as a whole."""
    store = lake.map(buckets=1, value_type=bytes)
    for key, value in ROWS:
        store.update([key], lambda old, value=value: [value])
    monkeypatch.setattr(merge, "pa", _Apart(merge.pa))
    store.compact()

    assert len(lake.files(store)) == len(ROWS) + 1
    assert lake.content(lake.map()) == dict(ROWS)


class _Apart:
    """Arrow with tables whose chunks do not become one, as beyond 2 GiB."""

    def __init__(self, arrow):
        self._arrow, self.Table = arrow, self

    def __getattr__(self, name):
        return getattr(self._arrow, name)

    def from_batches(self, batches, schema):
        self.table = self._arrow.Table.from_batches(batches, schema)
        return self

    def combine_chunks(self):
        return self.table

    @property
    def num_rows(self):
        return self.table.num_rows

    @property
    def nbytes(self):
        return self.table.nbytes


def test_large_column_of_one_value_is_an_error(low_limit):
    """What cannot be divided any more is not tried for ever."""

    def refuse(rows):
        raise types.ColumnTooLargeError("one value of 3 GiB")

    with pytest.raises(types.ColumnTooLargeError):
        tables.in_parts(refuse, [1, 2])
