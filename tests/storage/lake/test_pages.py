"""Large buckets: rows sorted by key, read page by page, below a dict of what is newer."""

from __future__ import annotations

import gc
import itertools
import os
import random
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from dstream.errors import IllegalStateError
from dstream.spi.store import Update
from dstream.storage.base import encoded_entries
from dstream.storage.lake import caches, maps, merge, pages, single_keys, tables
from dstream.storage.lake.caches import BucketCache
from tests.storage.lake.writing import written

ODD = [
    1,
    2.5,
    7.0,
    True,
    "",
    "k\0",
    "k\udc80",
    "ä",
    b"",
    b"k",
    2**70,
    -(2**63),
    2**63 - 1,
    float("nan"),
    -0.0,
    (1, "a"),
]
"""Keys beside the type of most maps, some of them equal to keys of another type."""
MAKERS = {
    "ints": lambda n: n - 50,
    "texts": lambda n: f"{'long prefix ' * (n % 3)}{n * 37 % 211}",
    "bytes": lambda n: bytes([n % 7]) * (n % 19),
    "floats": lambda n: n / 4,
    "tuples": lambda n: (n % 9, str(n)),
}


@pytest.fixture
def paged(monkeypatch):
    """Read buckets of more than 20 rows in pages of 16 rows."""
    monkeypatch.setattr(maps, "BucketCache", lambda folder, buckets: BucketCache(folder, buckets, rows_kept=40))
    monkeypatch.setattr(tables, "_SMALL_FILE", 8)
    monkeypatch.setattr(encoded_entries, "_FIRST_ROWS", 16)
    for module in (tables, merge):
        monkeypatch.setattr(module, "ROWS_IN_GROUP", 16)


def _filled(lake, entries, **options):
    """Return a map with the entries of a job."""
    store = lake.map(**options)
    job = store.begin(None)
    job.commit(written(job.writer, entries))
    return store


@pytest.fixture
def read_pages(monkeypatch):
    """Return the rows of each page that is made."""
    made, original = [], pages._Page.__init__

    def counting(page, layout, rows, kind):
        made.append(rows.num_rows)
        original(page, layout, rows, kind)

    monkeypatch.setattr(pages._Page, "__init__", counting)
    return made


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("seed", range(2))
def test_a_large_bucket_answers_as_a_dict(lake, paged, kind, seed):
    """Jobs, puts, removals, compactions and clears of two handles; keys that are there and keys that are not."""
    chance, pool = random.Random(f"{kind}{seed}"), list(dict.fromkeys([*map(MAKERS[kind], range(300)), *ODD]))
    model = {pool[0]: 0}
    store = _filled(lake, model.items(), buckets=2)
    handles, layers = [store, lake.map()], set()
    for turn in range(11):
        handle = chance.choice(handles)
        some = {
            key: chance.choice([turn, "text", [turn], None]) for key in chance.sample(pool, chance.choice([1, 2, 9]))
        }
        many = dict.fromkeys(chance.sample(pool, min(150, len(pool))), turn) if turn % 6 == 0 else {}
        job = handle.begin(None)
        job.commit(written(job.writer, many.items()))
        handle.update(list(some), lambda old, some=some: list(some.values()))
        model = {key: value for key, value in (model | many | some).items() if value is not None}
        if chance.random() < 0.2:
            handle.compact()
        for each in handles:
            assert each.get_many(pool) == [model.get(key) for key in pool]
            assert [each.get_many([key])[0] for key in pool[-20:]] == [model.get(key) for key in pool[-20:]]
            layers |= {bool(bucket.older) for bucket in each._cache._buckets.values()}
    assert layers == {True}
    assert store.size() == len(lake.content(store)) == len(model)


@pytest.mark.parametrize("kind", MAKERS)
def test_single_keys_are_found_at_their_place(lake, paged, kind):
    """Each key is asked for alone, in a file that a job has written and in a compacted one."""
    entries = {MAKERS[kind](n): n for n in range(400)}
    store = _filled(lake, entries.items(), buckets=1)
    for _ in range(2):
        assert [lake.map().get_many([key])[0] for key in list(entries)[::40]] == list(entries.values())[::40]
        assert [store.get_many([key])[0] for key in entries] == list(entries.values())
        assert [store.get_many([key])[0] for key in ODD if key not in entries] == [None] * sum(
            key not in entries for key in ODD
        )
        lake.put(store, other=1)
        store.compact()


def test_one_key_reads_one_page_of_a_file_that_a_job_wrote(lake, paged, read_pages):
    """Row groups of a job's file follow each other by key, whatever the order of the items was."""
    numbers = random.Random(1).sample(range(1000), 500)
    store = _filled(lake, ((f"k{n}", n) for n in numbers), buckets=1)
    del read_pages[:]

    assert store.get_many([f"k{numbers[3]}"]) == [numbers[3]]
    assert read_pages == [16]
    assert store.get_many([f"k{numbers[3]}", "absent, and behind all"]) == [numbers[3], None]
    assert read_pages == [16]


def test_files_without_an_order_are_one_page(lake, paged, read_pages):
    """A journal has the order of its events, and other programs have any."""
    numbers = random.Random(1).sample(range(1000), 500)
    store = _filled(lake, ((n, n) for n in numbers), buckets=1, journal=True)

    assert [event.key for event in store.journal(0)] == numbers
    assert [store.get_many([n])[0] for n in range(1000)] == [n if n in set(numbers) else None for n in range(1000)]
    assert read_pages == [500]


def test_rows_that_are_too_large_for_a_page_are_looked_up_in_the_file(lake, paged, monkeypatch, read_pages):
    """The size of decoded values counts, not that of encoded ones."""
    monkeypatch.setattr(pages, "_LARGEST_PAGE", 20_000)
    store = _filled(lake, (((n, 1), "equal" * 100) for n in range(500)), buckets=1)
    lake.put(store, removed=1)
    lake.put(store, removed=None)

    assert store.get_many([(7, 1), (500, 1), "removed"]) == ["equal" * 100, None, None]
    assert read_pages == []


def test_pages_are_bounded_by_their_bytes(lake, paged, monkeypatch):
    """The least used ones leave, and are read again."""
    store = _filled(lake, ((f"k{n}", os.urandom(5000)) for n in range(1000)), buckets=1)
    cache = store._cache._pages
    cache._bytes_kept = 2_000_000
    expected = lake.content(store)
    for n in random.Random(2).choices(range(1000), k=200):
        assert store.get_many([f"k{n}"]) == [expected[f"k{n}"]]
        cached = sum(file.size_of(number) for file, number in cache._cached)
        assert cached == cache.size <= 2_000_000
    assert 10 < len(cache._cached) < 60


def test_puts_do_not_read_the_pages_again(lake, paged, read_pages):
    """Entries newer than the pages are in a dict, which own commits change."""
    store = _filled(lake, ((n, n) for n in range(500)), buckets=1)
    store._cache._new_rows = 100
    store.get_many(list(range(500)))
    del read_pages[:]
    for n in range(70):
        store.update([n % 7], lambda old, n=n: [None if n % 5 == 0 else n])
        assert store.get_many([n % 7, 400]) == [None if n % 5 == 0 else n, 400]
    assert len(read_pages) < 10, read_pages


def test_a_damaged_page_is_an_error(lake, paged):
    """Never a wrong value, and never an entry that is not there."""
    store = _filled(lake, ((n, os.urandom(2000)) for n in range(1000)), buckets=1)
    [file] = store.log.files()
    path = Path(store.log.folder.url) / file.path
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)

    failed = 0
    for n in range(0, 1000, 20):
        try:
            assert len(store.get_many([n])[0]) == 2000
        except IllegalStateError:
            failed += 1
    assert failed


def test_pages_that_a_vacuum_removed_are_read_from_what_replaced_them(lake, paged, without_pauses):
    """A handle that knows an old file meets the new one."""
    store = _filled(lake, ((n, n) for n in range(500)), buckets=1)
    other = lake.map()
    assert store.get_many([1]) == [1]
    other.update([1], lambda old: [-1])
    other.compact()
    other.vacuum(0)

    assert store.get_many([1, 499, 500]) == [-1, 499, None]


def test_sorted_files_are_read_by_other_programs(lake, paged):
    """Pages are files of Parquet with the rows of the map, and statistics that tell the row groups apart."""
    store = _filled(lake, ((n * 7919 % 500, str(n)) for n in range(500)), buckets=1)
    [file] = store.log.files()
    read = parquet.ParquetFile(Path(store.log.folder.url) / file.path)
    groups = [read.metadata.row_group(number).column(0).statistics for number in range(read.num_row_groups)]

    assert read.read(["key"]).column("key").to_pylist() == list(range(500))
    assert all(left.max < right.min for left, right in itertools.pairwise(groups))


@pytest.mark.parametrize(
    "texts", [[""], ["a"], ["a", "a\0", "a\0\0b", "ab"], ["x" * 9 + c for c in "abc"], ["é", "ü", "😀"]]
)
def test_texts_are_found_by_their_first_bytes(texts):
    """Also where these are equal, or end."""
    find = pages._texts(pa.array(texts))

    assert [find(text) for text in texts] == list(range(len(texts)))
    assert [find(text) for text in ("b", "a\0\0", "x" * 9, "é ", "\udc80", "x" * 9 + "ab")] == [-1] * 6


@pytest.mark.parametrize("high", ["", b""])
def test_statistics_without_the_largest_key_exclude_no_key(high):
    """A text of more than 4 KB is left out, which pyarrow 14 shows as an empty one."""
    statistics = SimpleNamespace(has_min_max=True, has_null_count=True, min=type(high)(), max=high, null_count=0)
    column = SimpleNamespace(path="key", path_in_schema="key", statistics=statistics)
    group = SimpleNamespace(column=lambda _: column)
    metadata = SimpleNamespace(num_columns=1, num_row_groups=1, schema=group, row_group=lambda _: group)

    assert pages._bounds(metadata, type(high)) is None
    assert not single_keys._are_elsewhere(group, pa.array([b"k" if high == b"" else "k"]))


def test_nulls_of_a_large_page_are_released_with_it():
    """The small pages share theirs, which remain."""
    nulls = pa.RecordBatch.from_arrays([pa.nulls(9000, pa.binary())], ["_pk"])
    pages._sharing_nulls(nulls.slice(0, 8192))
    gc.collect()
    before = pa.total_allocated_bytes()
    rows = [pages._sharing_nulls(nulls.slice(count)) for count in range(800)]

    # Others, such as a session that has ended, may release memory meanwhile.
    assert pa.total_allocated_bytes() <= before
    assert len(rows) == 800


def test_keys_of_a_page_are_hashed_in_parts(lake, paged, monkeypatch):
    """All at once they would take several times the bytes of the page."""
    counts, original = [], pages.identities
    monkeypatch.setattr(pages, "_HASHED", 16)
    monkeypatch.setattr(pages, "identities", lambda layout, keys: (counts.append(len(keys)), original(layout, keys))[1])
    store = _filled(lake, ((n / 4, n) for n in range(100)), buckets=1)

    assert [store.get_many([n / 4])[0] for n in range(101)] == [*range(100), None]
    assert max(counts) == 16


def test_a_dict_does_not_grow_beyond_the_cache_by_what_others_write(lake, paged):
    """The bucket was small when it was cached."""
    store, other = lake.map(buckets=1), lake.map()
    lake.put(store, small=1)
    assert store.get_many(["small"]) == [1]
    job = other.begin(None)
    job.commit(written(job.writer, ((f"k{n}", n) for n in range(100))))

    assert store.get_many(["small", "k7", "k100"]) == [1, 7, None]
    assert [bucket.older for bucket in store._cache._buckets.values()] == [store.log.groups[0]]


def test_a_dict_does_not_take_large_values_that_others_write(lake, monkeypatch):
    """Such rows are read one by one."""
    monkeypatch.setattr(caches, "_BYTES_KEPT", 1000)
    monkeypatch.setattr(caches, "LARGE_VALUE", 500)
    store = lake.map(buckets=1)
    lake.put(store, small=b"")
    assert store.get_many(["small"]) == [b""]
    large = {f"k{n}": os.urandom(5000) for n in range(4)}
    lake.put(lake.map(), **large)

    assert store.get_many(["small", *large]) == [b"", *large.values()]
    assert not store._cache._buckets


def _logging(calls, *arguments):
    calls.append(arguments[-1])
    return arguments[-1]


@pytest.mark.parametrize(
    "merge", [lambda calls: partial(_logging, calls), lambda calls: Update(partial(_logging, calls))]
)
def test_functions_get_the_rows_of_a_job_in_their_order(lake, paged, merge):
    """The row that a failure names does not depend on their number; what is written is sorted."""
    numbers, calls = random.Random(1).sample(range(500), 500), []
    store = _filled(lake, ((n, -1) for n in range(500)), buckets=1)
    job = store.begin(None, merge=merge(calls))
    job.commit(written(job.writer, ((n, n) for n in numbers)))

    assert calls == numbers
    made = parquet.ParquetFile(Path(store.log.folder.url) / store.log.groups[0][-1].path)
    assert made.read(["key"]).column("key").to_pylist() == list(range(500))
    assert lake.map().get_many(numbers) == numbers
