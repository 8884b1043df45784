"""`Captured`: stands where a sink was, and brings what that would have got back to the test."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dstream.pickling import dumps
from dstream.spi import Sink
from dstream.spi.sink import MapWriter, Receipt, Writer

__all__ = ["Captured", "captured_items"]


@dataclass(frozen=True, slots=True)
class Captured:
    """A sink of which nobody sees anything but its receipts, which hold the items.

    Attributes:
        sink: in whose place it stands.
    """

    sink: Sink[Any, Any]

    job = None

    @property
    def label(self) -> str:
        """The sink as the user wrote it."""
        return self.sink.label

    @property
    def collector(self) -> Any:
        """What makes entries of the items, as for the sink."""
        return self.sink.collector

    def open(self, context: Any) -> Captured:
        """Return what is begun: there is no target."""
        return self

    def begin(self, job: str | None, epoch: int = 1) -> _Capturing:
        """Return one epoch."""
        return _Capturing(_Items() if self.sink.collector is None else _Entries())

    def result(self) -> None:
        """Return nothing."""


@dataclass(frozen=True, slots=True)
class _Capturing:
    writer: Writer | MapWriter
    is_done = False

    def commit(self, receipts: Sequence[Receipt]) -> None:
        """Publish nothing."""

    def abort(self) -> None:
        """Remove nothing."""


@dataclass(frozen=True, slots=True)
class _Items:
    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        yield dumps(list(items))


@dataclass(frozen=True, slots=True)
class _Entries:
    buckets = 1

    def bucket_of(self, key: Any) -> int:
        from dstream.keys import canonical_all, stable_hash

        (canonical,) = canonical_all([key])
        return stable_hash(canonical) % self.buckets

    def write_bucket(self, bucket: int, entries: Iterator[tuple[Any, Any]]) -> Iterator[Receipt]:
        yield dumps([tuple(entry) for entry in entries])


def captured_items(receipts: Sequence[Receipt]) -> list[Any]:
    """Return the items that receipts hold; those of a map are pairs of a key and a value."""
    return [item for receipt in receipts if isinstance(receipt, bytes) for item in pickle.loads(receipt)]
