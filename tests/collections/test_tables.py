"""Collections as Arrow tables and as tables of the engine."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pytest

from dstream.errors import UnsupportedError


def test_a_map_becomes_a_table(make):
    """A column of keys and one of values, typed."""
    table = make.map({"Ada": 36, "Alan": 41}).to_arrow()

    assert table.schema.names == ["key", "value"]
    assert (table.schema.field("key").type, table.schema.field("value").type) == (pa.string(), pa.int64())
    assert sorted(table.to_pylist(), key=str) == [{"key": "Ada", "value": 36}, {"key": "Alan", "value": 41}]


def test_a_collection_becomes_a_data_frame(make):
    """With the columns of its table."""
    ages, names = make.map({"Ada": 36}).to_pandas(), make.list(["Ada", "Alan"]).to_pandas()

    assert ages.to_dict("list") == {"key": ["Ada"], "value": [36]}
    assert names.to_dict("list") == {"value": ["Ada", "Alan"]}


class Place(NamedTuple):
    """A key that equals a plain tuple."""

    row: int
    seat: str


def test_a_named_tuple_as_a_key_is_told_what_has_a_column(make):
    """It is kept as the tuple that equals it."""
    seats = make.map({Place(1, "a"): "Ada"})

    with pytest.raises(TypeError, match=r"the key Place\(row=1, seat='a'\) .* kept as the plain tuple that equals it"):
        seats.to_arrow()
    assert seats.stream().to_arrow().to_pylist() == [{"key": {"row": 1, "seat": "a"}, "value": "Ada"}]


def test_a_list_becomes_a_column(make):
    """In order, with its nulls."""
    assert make.list([3, None, 1]).to_arrow().to_pydict() == {"value": [3, None, 1]}


def test_a_cache_becomes_a_table_of_what_users_put_there(make):
    """Without times, and without what expired."""
    sessions = make.cache({"Ada": 36}, ttl=60)
    table = sessions.to_arrow()

    assert table.to_pydict() == {"key": ["Ada"], "value": [36]}
    assert table.schema == sessions.store.schema()
    sessions.store._clock.now += 60
    assert sessions.to_arrow().num_rows == 0


def test_an_empty_collection_of_known_types_becomes_an_empty_table(make):
    """And one whose types are not known says so."""
    assert make.map(key_type=str, value_type=int).to_arrow().to_pydict() == {"key": [], "value": []}
    with pytest.raises(UnsupportedError, match="'undecided'"):
        make.map(name="undecided").to_arrow()


def test_to_df_gives_the_engine_the_splits_and_the_schema(make):
    """The engine reads them where it likes."""
    ages = make.map({"Ada": 36})
    ages._runtime = engine = Tables()

    assert ages.to_df() == [("Ada", 36)]
    assert engine.schema.names == ["key", "value"]


class Tables:
    """A context and an engine that has tables."""

    def check_open(self):
        pass

    def running_engine(self):
        return self

    def data_frame(self, splits, schema):
        self.schema = schema
        return [entry for split in splits for entry in split.read()]
