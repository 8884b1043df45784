"""Entries and items in encoded form: portions, splits, changes and merges."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from dstream.base.memory import BatchIterator, size_of
from dstream.base.records import record
from dstream.spi.store import UNCHANGED, ListView, Merge, Revision, Splice, Unchanged, Update
from dstream.storage.base.options import ViewOvertakenError
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.description import settled
from dstream.storage.codec.keys import bucket_of
from dstream.values.entries import JournalEvent

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "PORTION_BYTES",
    "EncodedEntries",
    "EncodedItems",
    "Entries",
    "EntryWriter",
    "ItemWriter",
    "Items",
    "NumberedJournal",
    "Portions",
    "changed",
    "check_answers",
    "checked_splice",
    "decoded",
    "divided",
    "edit_list",
    "encoded_bucket",
    "encoded_items",
    "encoded_keys",
    "entries_as",
    "items_as",
    "journal_event",
    "merged",
    "merged_with",
    "updated",
]


T = TypeVar("T")

PORTION_BYTES = 4 << 20
"""Bytes that are encoded, written and later read at a time; a single row may be larger."""

_FIRST_ROWS = 512


class Portions(Generic[T]):
    """Cuts rows into lists, learning how large the rows are; the first row of all is measured.

    Args:
        rows: those to cut.
        most: how many rows a list may have however small they are.
    """

    def __init__(self, rows: Iterable[T], most: int) -> None:
        self._taking = BatchIterator(rows)
        self._most = most
        self._count = 0

    def take(self) -> list[T]:
        """Return the next rows, none at the end."""
        if self._count:
            return self._taking.take(self._count)
        # One row alone, so that rows of hundreds of megabytes are not collected before their size is known.
        first = self._taking.take(1)
        if first:
            self._count = max(1, min(PORTION_BYTES // size_of(first), _FIRST_ROWS))
            first += self._taking.take(self._count - 1) if self._count > 1 else []
        return first

    def has_more(self) -> bool:
        """Return whether there are rows left; it reads one row ahead."""
        return self._taking.has_more()

    def learn(self, rows: int, size: int) -> None:
        """Use the bytes of encoded rows as an estimate for the next ones."""
        self._count = min(self._most, max(1, PORTION_BYTES * rows // max(1, size)))


ROWS_PER_BATCH = 8192


class Entries(NamedTuple):
    """Encoded entries, and the codec that encoded them."""

    codec: Codec
    entries: list[tuple[bytes, bytes]]


class Items(NamedTuple):
    """Encoded items, and the codec that encoded them."""

    codec: Codec
    items: list[bytes]


@record
class EncodedEntries:
    """A split that contains its entries."""

    codec: Codec
    entries: Sequence[tuple[bytes, bytes]]

    def read(self) -> Iterator[tuple[Any, Any]]:
        """Decode the entries one after another."""
        for key, value in self.entries:
            yield self.codec.decode_key(key), self.codec.decode_value(value)

    def read_arrow(self) -> Iterator[pa.RecordBatch]:
        """Decode the entries into columns."""
        for some in _batches(self.entries):
            keys = [self.codec.decode_key(key) for key, _ in some]
            yield self.codec.batch(keys, [self.codec.decode_value(value) for _, value in some])


@record
class EncodedItems:
    """A split that contains its items."""

    codec: Codec
    items: Sequence[bytes]

    def read(self) -> Iterator[Any]:
        """Decode the items one after another."""
        return map(self.codec.decode_value, self.items)

    def read_arrow(self) -> Iterator[pa.RecordBatch]:
        """Decode the items into a column."""
        for some in _batches(self.items):
            yield self.codec.batch((), list(map(self.codec.decode_value, some)))


def _batches(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    return (rows[start : start + ROWS_PER_BATCH] for start in range(0, len(rows), ROWS_PER_BATCH))


def divided(rows: Sequence[T], parts: int) -> list[Sequence[T]]:
    """Cut `rows` into at most that many stretches of about equal length, none of them empty."""
    parts = max(1, min(parts, len(rows)))
    edges = [len(rows) * part // parts for part in range(parts + 1)]
    return [rows[start:stop] for start, stop in itertools.pairwise(edges) if start < stop]


def decoded(codec: Codec, values: Iterable[bytes | None]) -> list[Any]:
    """Decode values, None for the absent ones."""
    return [None if value is None else codec.decode_value(value) for value in values]


def encoded_keys(codec: Codec, keys: Sequence[Any]) -> list[bytes]:
    """Encode the keys of one change, which must differ.

    Raises:
        ValueError: two of them are equal; which of their values wins would be anybody's guess.
    """
    encoded = list(map(codec.encode_key, keys))
    if len(set(encoded)) < len(encoded):
        twice = next(key for key, data in zip(keys, encoded, strict=True) if encoded.count(data) > 1)
        raise ValueError(f"one change of {codec.kind} {codec.name!r} names the key {twice!r} twice")
    return encoded


def changed(
    codec: Codec, keys: Sequence[Any], encoded: Sequence[bytes], new: Sequence[Any]
) -> tuple[Codec, dict[bytes, bytes | None]]:
    """Encode the results of a change, and leave out unchanged values.

    Returns:
        The codec, now decided; and new values by key, None where the entry is removed.

    Raises:
        ValueError: there are more or fewer values than keys.
    """
    check_answers(codec, keys, new)
    kept = [(key, value) for key, value in zip(keys, new, strict=True) if _is_value(value)]
    codec = codec.decided_by([key for key, _ in kept], [value for _, value in kept])
    for key, value in kept:
        codec.checked(key, value)
    return codec, {
        data: None if value is None else codec.encode_value(value)
        for data, value in zip(encoded, new, strict=True)
        if not isinstance(value, Unchanged)
    }


def check_answers(codec: Codec, keys: Sequence[Any], new: Sequence[Any]) -> None:
    """Refuse a change's results if they are not one answer for each key; errors as for `changed`."""
    if len(new) != len(keys):
        raise ValueError(
            f"a change of {codec.kind} {codec.name!r} got {len(keys)} values and returned {len(new)}; return one for "
            "each: the new value, None to remove the entry, or UNCHANGED"
        )


def _is_value(value: Any) -> bool:
    return value is not None and value is not UNCHANGED


def merged(
    codec: Codec, old: dict[bytes, bytes], new: dict[bytes, bytes], merge: Callable[[Any, Any], Any] | Revision
) -> dict[bytes, bytes]:
    """Return the new entries, each merged with the old value of its key, if any.

    A removed entry has an empty value, which no encoded value is, and so has an entry without an old value that a
    revision leaves absent.
    """
    result = dict.fromkeys(new, b"") if isinstance(merge, Revision) else dict(new)
    for key, there in old.items():
        known, before = codec.decode_key(key), codec.decode_value(there)
        value = merge.fn(known, before) if isinstance(merge, Revision) else merge(before, codec.decode_value(new[key]))
        if value is not None:
            codec.checked(known, value)
        result[key] = b"" if value is None else codec.encode_value(value)
    return result


def updated(
    codec: Codec, old: Mapping[bytes, bytes | None], written: Mapping[bytes, bytes], update: Update
) -> tuple[Codec, dict[bytes, bytes]]:
    """Return the new values of keys, empty if there is none, and the codec, whose types the first value decides.

    Args:
        codec: the codec of the collection.
        old: the stored values, empty or None if there is none.
        written: the value that a job has written for each key, encoded as if it were stored.
        update: makes the new values.
    """
    result = {}
    for key, items in written.items():
        known, there = codec.decode_key(key), old.get(key) or b""
        value = update.fn(known, codec.decode_value(there) if there else None, codec.decode_value(items))
        if _is_value(value):
            codec = codec.decided_by([known], [value])
            codec.checked(known, value)
        result[key] = there if value is UNCHANGED else b"" if value is None else codec.encode_value(value)
    return codec, result


def entries_as(codec: Codec, receipts: Sequence[Entries]) -> tuple[Codec, dict[bytes, bytes]]:
    """Return all entries, by key; the first one decides types that are still open.

    Bytes do not depend on the types, so they are unchanged; but a strict map refuses values of other types.
    """
    for written in receipts[:1]:
        codec = settled(codec, written.codec)
    for written in receipts:
        if codec.strict and (written.codec.key, written.codec.value) != (codec.key, codec.value):
            for key, value in EncodedEntries(*written).read():
                codec.checked(key, value)
    return codec, {key: value for written in receipts for key, value in written.entries}


def encoded_items(codec: Codec, items: Iterable[Any]) -> Items:
    """Encode items for a list; the first one decides the type if it is still open."""
    encoded = []
    for item in items:
        if not codec.is_decided:
            codec = codec.decided_by((), [item])
        codec.checked(None, item)
        encoded.append(codec.encode_value(item))
    return Items(codec, encoded)


def items_as(codec: Codec, receipts: Sequence[Items]) -> Items:
    """Return the items of all receipts, in their order; types as for entries."""
    for written in receipts[:1]:
        codec = settled(codec, written.codec)
    for written in receipts:
        if codec.strict and written.codec.value != codec.value:
            for item in EncodedItems(*written).read():
                codec.checked(None, item)
    return Items(codec, [item for written in receipts for item in written.items])


V = TypeVar("V", bound=ListView)


def edit_list(
    name: str,
    look: Callable[[], tuple[T, V]],
    change: Callable[[ListView], Splice | None],
    splice: Callable[[T, V, Splice], bool],
) -> None:
    """Replace a stretch of a list, from the beginning again if the list has changed meanwhile.

    Args:
        name: the name of the list.
        look: returns the version of the list, and a view that raises a `ViewOvertakenError` once there is another
            version.
        change: returns the stretch for a view, or None for no change.
        splice: writes the stretch, unless there is another version; then it returns False.
    """
    done = False
    while not done:
        version, view = look()
        try:
            wanted = change(view)
        except ViewOvertakenError as error:
            if error.view is not view:  # That of another list, which `change` looks at too.
                raise
        else:
            done = wanted is None or splice(version, view, checked_splice(name, wanted, view.size))


def checked_splice(name: str, splice: Splice, size: int) -> Splice:
    """Return the splice.

    Raises:
        IndexError: it reaches beyond the list.
    """
    if not 0 <= splice.start <= splice.stop <= size:
        raise IndexError(f"list {name!r} has {size} items; those from {splice.start} to {splice.stop} are not in it")
    return splice


def journal_event(
    codec: Codec, key: bytes, old: bytes | None, new: bytes | None, timestamp: int | None, offset: int
) -> JournalEvent:
    """Decode one change."""
    kind: Literal["ADDED", "UPDATED", "REMOVED"]
    kind = "ADDED" if old is None else "REMOVED" if new is None else "UPDATED"
    old_value, new_value = decoded(codec, (old, new))
    return JournalEvent(kind, codec.decode_key(key), old_value, new_value, offset, timestamp)


def encoded_bucket(
    codec: Codec, entries: Iterable[tuple[Any, Any]], bucket: int, buckets: int, merge: Merge | None
) -> tuple[Codec, dict[bytes, bytes]]:
    """Return the entries of a bucket, encoded, and the codec, whose types the first one decides if they are open.

    Raises:
        ValueError: a key belongs into another bucket.
    """
    is_update = isinstance(merge, Update)  # The written values are not those of the map then.
    checking = replace(codec, value=None) if is_update else codec
    encoded = {}
    for key, value in entries:
        checking.checked(key, value)
        if not (codec.is_decided or is_update):
            codec = codec.decided_by([key], [value])
        data = codec.encode_key(key)
        # In another bucket the key would not be found again.
        if bucket_of(data, buckets) != bucket:
            raise ValueError(f"{codec}: {key!r} does not belong into bucket {bucket}")
        encoded[data] = codec.encode_value(value)
    return codec, encoded


def merged_with(
    codec: Codec, old: dict[bytes, bytes], new: dict[bytes, bytes], merge: Merge
) -> tuple[Codec, dict[bytes, bytes]]:
    """Return the new values, empty if there is none, and the resulting codec; `old` is empty for these, too."""
    if isinstance(merge, Update):
        return updated(codec, old, new, merge)
    return codec, merged(codec, {key: value for key, value in old.items() if value}, new, merge)


@record
class ItemWriter:
    """Writer of the items of tasks, which checks them before by the types when the job began."""

    codec: Codec

    def check_item(self, item: Any) -> None:
        """Refuse an item that the list does not accept."""
        self.codec.checked(None, item)


@record
class EntryWriter:
    """Writer of the entries of tasks, which checks them before by the types when the job began.

    Attributes:
        buckets: the number of parts into which the keys are divided.
        is_merging: the written values are not values of the map, so they decide no types, and are not checked.
    """

    codec: Codec
    buckets: int
    is_merging: bool

    def bucket_of(self, key: Any) -> int:
        """Return the bucket of a key."""
        return bucket_of(self.codec.encode_key(key), self.buckets)

    def check_item(self, entry: tuple[Any, Any]) -> None:
        """Refuse an entry that the map does not accept, unless its value is merged."""
        key, value = entry
        self.bucket_of(key)
        if not self.is_merging:
            self.codec.checked(key, value)


class NumberedJournal(ABC):
    """The offsets of a journal whose events are numbered without gaps."""

    @abstractmethod
    def journal_end(self) -> int:
        """Return the number of the last event."""

    def journal_reach(self, since: int, most: int | None = None) -> int:
        """Return the number of the last event, or an earlier one."""
        last = max(since, self.journal_end())
        return last if most is None else min(last, since + most)

    def journal_left(self, since: int) -> int | None:
        """Subtract the numbers."""
        return max(0, self.journal_end() - since)

    def shown_offset(self, offset: int) -> str:
        """Return the number of an event."""
        return f"event {offset:,}"
