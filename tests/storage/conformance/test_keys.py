"""Keys: which are equal, which are refused, and that they come back."""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
from collections import namedtuple

import pytest

from dstream.errors import NullElementError, UnstableKeyError

Point = namedtuple("Point", "x y")

EQUAL = [
    (1, 1.0, True),
    (0, 0.0, -0.0, False),
    (2**70, float(2**70)),
    (float("nan"), -math.nan),
    ((1, "a"), (1.0, "a"), (True, "a")),
    (Point(1, 2), (1, 2), Point(1.0, 2)),
    ((float("nan"), 1), (-math.nan, 1)),
    (frozenset([1, "a"]), frozenset(["a", 1.0])),
    (decimal.Decimal("1.5"), 1.5, decimal.Decimal("1.50")),
]
DIFFERENT = [
    *("", "1", b"1", b"", 1, 2, 1.5, -1, 2**63, -(2**63), 2**200, "ä", "a\u0308", "\ud800", "\0"),
    *((), (1,), ((1,),), (1, 2), ("1", 2), (1, None), ("a", "b"), ("ab", ""), frozenset(), frozenset([1])),
    *(math.inf, -math.inf, math.nan, 1e308, decimal.Decimal("0.1"), 0.1),
    *(datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29), datetime.timedelta(seconds=1), uuid.UUID(int=1)),
]


@pytest.mark.parametrize("keys", EQUAL, ids=lambda keys: f"like {type(keys[0]).__name__}")
def test_keys_are_equal_as_in_python(storage, use, keys):
    """Equal keys, and all NaN, name one entry."""
    store = use.map(storage)
    for number, key in enumerate(keys):
        use.put(store, {key: number})

    assert store.size() == 1
    assert store.get_many(keys) == [len(keys) - 1] * len(keys)


def test_keys_of_every_kind_are_kept_apart(storage, use):
    """Keys that differ never meet, and each comes back equal to what was put."""
    store = use.map(storage)
    use.put(store, {key: index for index, key in enumerate(DIFFERENT)})

    assert store.get_many(DIFFERENT) == list(range(len(DIFFERENT)))
    came_back = {index: key for key, index in use.content(store).items()}
    assert all(key != key or key == came_back[index] for index, key in enumerate(DIFFERENT))


def test_keys_written_by_a_job_are_those_of_point_reads(storage, use):
    """Tasks and callers agree on what a key is."""
    store = use.map(storage)
    use.run(store, "job", {key: index for index, key in enumerate(DIFFERENT)})

    assert store.get_many(DIFFERENT) == list(range(len(DIFFERENT)))


def test_keys_first_of_equal_ones_stays(storage, use):
    """A later put of an equal key changes the value, not the key."""
    store = use.map(storage)
    use.put(store, {1: "int"})
    use.put(store, {True: "bool", "other": ""})

    [key] = [key for key in use.content(store) if key == 1]
    assert type(key) is int


def test_keys_none_is_refused(storage, use):
    """None is no key, wherever it is used."""
    store = use.map(storage)
    job = store.begin("job")

    for action in (
        lambda: store.get_many([None]),
        lambda: use.put(store, {None: 1}),
        lambda: job.writer.bucket_of(None),
        lambda: use.bucket(job, 0, [(None, 1)]),
    ):
        with pytest.raises(NullElementError):
            action()


class Identity:
    """Compares and hashes by identity."""


@pytest.mark.parametrize(
    "key", [Identity(), [1], {}, {1}, (1, [2]), print, object()], ids=lambda key: type(key).__name__
)
def test_keys_without_a_stable_encoding_are_refused(storage, use, key):
    """The message names the type that cannot be part of a key."""
    store = use.map(storage)
    job = store.begin("job")
    culprit = "list" if isinstance(key, tuple) else type(key).__name__

    for action in (
        lambda: store.get_many([key]),
        lambda: store.update([key], lambda old: [1]),
        lambda: job.writer.bucket_of(key),
        lambda: use.bucket(job, 0, [(key, 1)]),
    ):
        with pytest.raises(UnstableKeyError, match=culprit):
            action()


def _put_all(backend, use, entries):
    use.put(use.map(backend.open()), entries)


@pytest.mark.usefixtures("shared")
def test_keys_of_another_process_are_the_same(backend, storage, use, elsewhere):
    """What encodes a key does not depend on the process: string hashes do."""
    elsewhere(_put_all, backend, use, dict.fromkeys(DIFFERENT, 1)).returned()
    store = use.map(storage)

    assert store.get_many(DIFFERENT) == [1] * len(DIFFERENT)


def test_keys_have_a_bucket_each(storage, use):
    """Equal keys have the same bucket, and the buckets of many keys are all in use."""
    writer = use.map(storage, buckets=4).begin(None).writer

    assert writer.buckets == 4
    assert {writer.bucket_of(key) for key in range(100)} == {0, 1, 2, 3}
    for keys in EQUAL:
        assert len({writer.bucket_of(key) for key in keys}) == 1
