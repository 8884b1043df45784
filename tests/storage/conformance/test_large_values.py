"""Large values: they come back, cost few copies, and leave no memory behind; what is too large is refused in words."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Iterator

import pyarrow as pa
import pytest

from dstream.schema import scalar_types
from dstream.spi.store import Options
from dstream.storage import Settings, open_storage
from dstream.storage.codec.pickles import Pickles
from dstream.storage.codec.values import ValueEncoding
from dstream.storage.lake import tables

MEGABYTE = 1 << 20
LARGE = {
    "bytes": b"\0\xff" * MEGABYTE,
    "str": "text" * MEGABYTE,
    "unicode": "ü" * 2 * MEGABYTE,
    "surrogate": "t" * 2 * MEGABYTE + "\ud800",
}


@pytest.mark.parametrize("kind", LARGE)
@pytest.mark.parametrize("by", ["update", "job"])
def test_large_values_come_back(backend, storage, use, kind, by):
    """Twice, since a second one of a length is written in another way; and beside a small one."""
    store = storage.create("map", "m", Options(buckets=1))
    for entries in ({"a": LARGE[kind], "b": "small"}, {"a": LARGE[kind]}, {"c": LARGE[kind]}):
        use.put(store, entries) if by == "update" else use.run(store, None, entries)
    items = use.list(storage, "small", LARGE[kind])

    with contextlib.closing(backend.open()) as other:
        found = (other if backend.shared else storage).open("map", "m", Options())
        assert found.get_many(["a", "b", "c"]) == [LARGE[kind], "small", LARGE[kind]]
    assert items.read(0, 2) == ["small", LARGE[kind]]


@pytest.mark.parametrize("value", LARGE.values(), ids=LARGE)
def test_large_values_are_encoded_as_msgpack_would(value):
    """The bytes are the same, so that what either has written is read."""
    import msgpack

    packed = msgpack.packb(value, unicode_errors="surrogatepass")
    assert ValueEncoding(Pickles("never", ())).encode(value) == packed


@contextlib.contextmanager
def _peak() -> Iterator[list[int]]:
    """Measure how many bytes Python and pyarrow have allocated at most, and how many stay."""
    whole = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(whole)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    found: list[int] = []
    try:
        yield found
        now, most = tracemalloc.get_traced_memory()
        found += [most + pool.max_memory(), now + pool.bytes_allocated()]
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(whole)


@pytest.mark.parametrize(
    ("value", "copies"), [(b"x" * 20 * MEGABYTE, 3), ("x" * 20 * MEGABYTE, 4)], ids=["bytes", "str"]
)
def test_large_values_of_a_lake_are_copied_few_times(tmp_path, value, copies):
    """Parquet takes three copies, and a string one more for its bytes. They were eight, and four stayed."""
    with contextlib.closing(open_storage(str(tmp_path / "lake"), Settings())) as storage:
        store = storage.create("map", "m", Options(buckets=1))
        store.update(["small"], lambda old: [value[:1]])
        with _peak() as found:
            for _ in range(5):
                store.update(["a"], lambda old: [value])
                assert store.get_many(["a"]) == [value]

    assert found[0] / len(value) < copies + 0.5
    assert found[1] / len(value) < 0.1


@pytest.mark.parametrize("value", [b"x" * 3 * MEGABYTE, "ü" * 2 * MEGABYTE])
def test_large_values_beyond_the_limit_are_refused_in_words(tmp_path, monkeypatch, value):
    """The error has the collection, the size, the limit, and what to do."""
    monkeypatch.setattr(scalar_types, "_LARGEST_VALUE", 2 * MEGABYTE)
    with contextlib.closing(open_storage(str(tmp_path / "lake"), Settings())) as storage:
        store = storage.create("map", "m", Options())
        with pytest.raises(ValueError, match=r"map 'm': a value has [34],\d+,\d+ bytes, .* 2,097,152 .*: divide it"):
            store.update(["a"], lambda old: [value])
        assert store.size() == 0


def test_large_values_are_not_compressed_beyond_sixteen_megabytes(tmp_path):
    """A compressor would copy them once more; smaller ones are compressed."""
    with contextlib.closing(open_storage(str(tmp_path / "lake"), Settings())) as storage:
        store = storage.create("map", "m", Options(buckets=1))
        for size in (tables._PLAIN_VALUE + MEGABYTE, 5 * MEGABYTE):
            store.update([size], lambda old, size=size: [b"x" * size])
        files = sorted(store.log.files(), key=lambda file: file.size)

    assert files[0].size < 100_000
    assert files[1].size > tables._PLAIN_VALUE
