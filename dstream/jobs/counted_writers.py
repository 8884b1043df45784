"""Writers that count what they write. Numbers come with receipts, so those of attempts that fail count nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, count
from typing import Any, cast

from dstream.spi import MapWriter, Writer
from dstream.spi.sink import Receipt

__all__ = ["counted_receipts", "counting"]


def counting(writer: Writer | MapWriter) -> Writer | MapWriter:
    """Return a writer that does the same, and gives one more receipt: how many items or entries it wrote."""
    if getattr(writer, "write_bucket", None) is not None:
        return _CountingEntries(cast(MapWriter, writer))
    return _CountingItems(cast(Writer, writer))


def counted_receipts(receipts: Sequence[Any]) -> tuple[list[Receipt], int]:
    """Return the receipts of the writer itself, and how many items or entries it wrote."""
    its_own = [receipt[0] for receipt in receipts if type(receipt) is not int]
    return its_own, sum(receipt for receipt in receipts if type(receipt) is int)


@dataclass(frozen=True, slots=True)
class _CountingItems:
    writer: Writer

    @property
    def check_item(self) -> Any:
        """The check of the writer, if it has one."""
        return getattr(self.writer, "check_item", None)

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        numbers = count(1)
        for receipt in self.writer.write(compress(items, numbers)):
            yield (receipt,)
        yield next(numbers) - 1


@dataclass(frozen=True, slots=True)
class _CountingEntries:
    writer: MapWriter

    @property
    def check_item(self) -> Any:
        """The check of the writer, if it has one."""
        return getattr(self.writer, "check_item", None)

    @property
    def buckets(self) -> int:
        return self.writer.buckets

    def bucket_of(self, key: Any) -> int:
        return self.writer.bucket_of(key)

    def write_bucket(self, bucket: int, entries: Iterator[tuple[Any, Any]]) -> Iterator[Receipt]:
        numbers = count(1)
        for receipt in self.writer.write_bucket(bucket, compress(entries, numbers)):
            yield (receipt,)
        yield next(numbers) - 1
