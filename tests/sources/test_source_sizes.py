"""`input_size` of sources: what they know without reading, for `count()` and for the choice of the engine."""

from __future__ import annotations

import dataclasses
import math
import os
from itertools import count

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dstream as ds
import sources
from dstream.base.threads import result_within
from dstream.connectors.dataframes import rows_of_table
from dstream.connectors.memory import Generate, Items, Iterate, Range
from dstream.plan import rewrite
from dstream.spi import InputSize
from dstream.spi.source import asking_sizes_once, input_size

HELD = InputSize(is_held=True, is_near=True)


def held(items, *, is_exact=False):
    """Return the size of items of this process."""
    return dataclasses.replace(HELD, items=items, is_exact=is_exact)


class Sized(list):
    """A list that may be read in another way than it counts."""


class Failing(list):
    """A list that cannot say how long it is."""

    def __len__(self):
        raise OSError("no answer")


@pytest.mark.parametrize(
    ("source", "size"),
    [
        (Items([1, 2, 3]), held(3, is_exact=True)),
        (Items(range(10**30)), held(10**30, is_exact=True)),
        (Items({"a": 1}), held(1, is_exact=True)),
        (Items(Sized("ab")), held(2)),
        (Items(Failing("ab")), held(None)),
        (Items(iter("ab")), held(None)),
        (Items(count()), held(None)),
        (Range(0, 10, 3), held(4, is_exact=True)),
        (Iterate(1, abs), held(math.inf)),
        (Iterate(1, abs, bool), held(None)),
        (Generate(str), held(math.inf)),
        (rows_of_table(pa.table({"x": [1, 2]})), held(2, is_exact=True)),
    ],
)
def test_input_size_counts_items_of_this_process(source, size):
    """Exactly where nothing else can come of reading them; what must be read to be counted is unknown."""
    assert source.input_size() == size


def test_input_size_of_an_iterator_reads_nothing():
    """What is pulled from it would be kept in memory, and may be waited for."""
    items = iter("abc")

    input_size(Items(items))
    assert next(items) == "a"


@pytest.mark.parametrize("maker", ["csv_rows", "json_lines", "avro_records", "files"])
def test_input_size_of_files_is_their_bytes(tmp_path, maker):
    """All that is read of a folder, whatever the format; the items are not known, and nothing is opened."""
    for name, size in {"a": 5, "b": 7, "_hidden": 100}.items():
        (tmp_path / name).write_bytes(bytes(size))

    assert input_size(getattr(sources, maker)(str(tmp_path))) == InputSize(stored_bytes=12, is_near=True)
    assert input_size(getattr(sources, maker)(f"file://{tmp_path}/a")).stored_bytes == 5


def test_input_size_of_lines_is_about_what_their_first_ones_say(tmp_path):
    """By the first 16 KB of each file; without a newline there, or compressed, a line has 64 bytes."""
    (tmp_path / "a").write_text("1234567\n" * 3_000 + "1" * 8_000 + "\n")
    (tmp_path / "b").write_bytes(bytes(6_400))
    (tmp_path / "c.gz").write_bytes(b"\n" * 640)
    (tmp_path / "empty").touch()

    assert input_size(sources.text_files(str(tmp_path))) == InputSize(
        4_000 + 100 + 10, stored_bytes=39_041, is_near=True
    )


def _parquet(path, rows):
    pq.write_table(pa.table({"x": range(rows)}), path)
    return path.stat().st_size


def test_input_size_of_parquet_has_the_rows_of_the_footers(tmp_path):
    """Not exactly: `count()` reads the rows, which may be damaged."""
    stored = _parquet(tmp_path / "a", 10) + _parquet(tmp_path / "b", 20)

    found = input_size(sources.parquet_rows(str(tmp_path)))
    assert found == InputSize(30, is_exact=False, stored_bytes=stored, is_near=True)


def test_input_size_of_many_parquet_files_opens_eight(tmp_path, monkeypatch):
    """The rows of the others follow from their bytes."""
    stored = sum(_parquet(tmp_path / f"{number:03}", 100) for number in range(50))
    opened = []
    format = type(sources.parquet_rows(str(tmp_path)).format)
    original = format.row_count
    monkeypatch.setattr(format, "row_count", lambda self, file: opened.append(file) or original(self, file))

    found = input_size(sources.parquet_rows(str(tmp_path)))
    assert (round(found.items), found.stored_bytes, len(opened) <= 8) == (5000, stored, True)


def test_input_size_of_what_cannot_be_sized_is_unknown(tmp_path):
    """Errors are those of the run; a pipe is not opened, and no other machine is asked."""
    (tmp_path / "no.parquet").write_text("no Parquet")
    os.mkfifo(tmp_path / "pipe")
    fsspec.filesystem("memory").pipe(f"{tmp_path}/there", b"somewhere else")

    for source in (
        sources.text_files(str(tmp_path / "missing")),
        sources.parquet_rows(str(tmp_path / "no.parquet")),
        sources.text_files(str(tmp_path / "pipe")),
        sources.text_files(f"memory://{tmp_path}/there"),
        sources.sql_rows("sqlite:///missing.db", "SELECT 1"),
        sources.socket_lines("localhost", 1),
    ):
        assert input_size(source) == InputSize(), source


def test_input_size_asks_the_storage_of_a_collection(tmp_path):
    """The log of a lake has rows and bytes, memory the entries themselves; a predicate may leave out the first ones."""
    with ds.connect(engine="local", storage="memory:") as memory, ds.connect(engine="local", storage=tmp_path) as lake:
        for ctx in (memory, lake):
            ctx.get_map("ages").update({"Ada": 36, "Grace": 85})
            ctx.get_list("names").extend(["Ada", "Grace", "Joan"])
        assert _size(memory.get_map("ages").stream()) == held(2)
        assert _size(memory.get_list("names").stream()) == held(3)
        entries, items = _size(lake.get_map("ages").stream()), _size(lake.get_list("names").stream())
        assert (entries.items, items.items, entries.is_held, entries.is_near) == (2, 3, False, True)
        assert entries.stored_bytes > 0
        assert not _size(lake.get_map("ages").stream(lambda entry: entry.value > 40)).is_near


def test_input_size_of_a_lake_is_that_of_its_newest_state(tmp_path):
    """Another process may have written meanwhile."""
    with ds.connect(engine="local", storage=tmp_path) as ctx, ds.connect(engine="local", storage=tmp_path) as other:
        ctx.get_list("names").extend("abc")
        stream = ctx.get_list("names").stream()
        assert _size(stream).items == 3
        other.get_list("names").extend("de")
        assert _size(stream).items == 5


def test_input_size_of_a_list_in_sqlite_is_known_and_that_of_a_map_is_not(tmp_path):
    """A database would count the entries of a map by reading them."""
    with ds.connect(engine="local", storage=f"sqlite:{tmp_path}/a.db") as ctx:
        ctx.get_list("names").extend("abc")
        ctx.get_map("ages").update({"Ada": 36})
        assert _size(ctx.get_list("names").stream()) == InputSize(3, is_near=True)
        assert _size(ctx.get_map("ages").stream()) == InputSize(is_near=True)


def test_input_size_of_an_expired_entry_counts_it(tmp_path):
    """To know what is gone would take reading."""
    with ds.connect(engine="local", storage="memory:") as ctx:
        ctx.get_cache("sessions", ttl=60).put("Ada", 1)
        assert _size(ctx.get_cache("sessions").stream()) == held(1)


def _size(stream):
    return input_size(rewrite(stream._node).source)


class Own:
    """A source of a user."""

    ordered = bounded = True
    in_caller = False

    def __init__(self, answer):
        self.answer = answer

    def input_size(self):
        return self.answer()

    def splits(self, parallelism):
        return Range(0, 3).splits(parallelism)


def test_input_size_of_a_source_of_the_users_is_asked_for():
    """An exact number of items is the count; all others are read."""
    with ds.connect(engine="local") as ctx:
        assert ctx.read(Own(lambda: InputSize(1000, is_exact=True))).count() == 1000
        assert ctx.read(Own(lambda: InputSize(1000))).count() == 3


@pytest.mark.parametrize("answer", [lambda: None, lambda: 3, lambda: 1 // 0, lambda: InputSize(is_exact=True)])
def test_input_size_that_fails_is_unknown_and_fails_no_run(answer):
    """Whatever a source answers, the run goes on as without an answer."""
    assert input_size(Own(answer)).items is None
    with ds.connect(engine="local") as ctx:
        assert ctx.read(Own(answer)).count() == 3


def test_count_asks_for_sizes_only_where_no_function_stands(tmp_path):
    """The sizes of many files take time, which a count that reads them anyway does not need."""
    asked = []
    source = Own(lambda: asked.append(1))

    with ds.connect(engine="local") as ctx:
        assert (ctx.read(source).map(abs).filter(bool).count(), asked) == (2, [])
        assert (ctx.read(source).limit(2).count(), bool(asked)) == (2, True)


def test_sizes_are_asked_for_once_where_several_parts_of_a_choice_need_them():
    """Only inside of the block, also one within another: the next plan asks again."""
    asked = []
    source = Own(lambda: asked.append(1) or InputSize(len(asked)))

    with asking_sizes_once():
        with asking_sizes_once():
            assert (input_size(source).items, input_size(source).items) == (1, 1)
        assert (input_size(source).items, len(asked)) == (1, 1)
    assert (input_size(source).items, len(asked)) == (2, 2)


def test_a_choice_of_the_engine_asks_each_source_once(tmp_path):
    """Many files take time to look at."""
    asked = []
    source = Own(lambda: asked.append(1) or InputSize(stored_bytes=10**6, is_near=True))

    with ds.connect(engine="auto", storage="memory:") as ctx:
        assert ctx.read(source).map(abs).filter(bool).to_list() == [1, 2]
    assert len(asked) == 1


def test_result_within_drops_answers_that_fail_or_come_late():
    """A machine that does not answer costs a bounded time."""
    import threading

    release = threading.Event()
    assert result_within(30, lambda: 3) == 3
    assert result_within(30, lambda: 1 // 0) is None
    assert result_within(0.01, release.wait) is None
    release.set()
