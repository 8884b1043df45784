"""Writers of a job: counts of items and edges, and dead letters staged until the sinks publish."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress, count
from typing import Any, cast

from dstream.spi import MapWriter, WriteJob, Writer
from dstream.spi.epochs import EdgeCounts
from dstream.spi.sink import Receipt, Target
from dstream.stream.runtime import Delivery

__all__ = ["StagedLetters", "add_edges", "counted_receipts", "counting"]


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
        # `compress` takes a number behind each item, so the next one tells how many there were, without a call for any.
        for receipt in self.writer.write(compress(items, numbers)):
            # In a tuple: a receipt of a user's writer may be an int, too.
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


def add_edges(known: dict[str, dict[str, Any]], counts: EdgeCounts) -> None:
    """Add the counts of one task to those of each vertex in the state of a job.

    Args:
        known: by the name of the vertex; it is changed.
        counts: of the task.
    """
    for vertex, (received, sent) in counts.items():
        of_vertex = known.setdefault(vertex, {})
        for name, more in (("items_in_by_edge", received), ("items_out_by_edge", sent)):
            before = of_vertex.get(name) or [0] * len(more)
            of_vertex[name] = [number + further for number, further in zip(before, more, strict=True)]
        of_vertex["items_out"] = sum(of_vertex["items_out_by_edge"])


class StagedLetters:
    """Dead letters of one stage, staged run after run instead of being committed at once.

    Args:
        stage: its name.
        delivery: where they go.
        context: has the collections.
        begin: gives the write job of what runs; it is asked for at the first letter.

    Attributes:
        target: of the reducer.
        count: how many letters were written, of what runs now.
    """

    def __init__(
        self,
        stage: str,
        delivery: Delivery,
        context: Any,
        begin: Callable[[StagedLetters], WriteJob[Any]],
    ) -> None:
        self.stage = stage
        self.sink = delivery.reducer
        self.target: Target[Any] = delivery.reducer.open(context)
        self._delivery = delivery.opened(context)
        self._begin = begin
        self.count = 0
        self._receipts: list[Receipt] = []
        self._sayings: list[Callable[[], object]] = []

    @property
    def label(self) -> str:
        """Where they go, as the user wrote it."""
        return self._delivery.label

    def __call__(self, letters: Iterable[Any]) -> None:
        """Write letters that are invisible until the run is published; none if they were published before."""
        rest = iter(letters)
        for first in rest:
            # At the first letter: an epoch without failures begins nothing where letters go.
            job = self._begin(self)
            if job.is_done:
                return
            self._receipts += self._delivery.staged(self._counted(chain([first], rest)), job.writer)

    def _counted(self, letters: Iterable[Any]) -> Iterator[Any]:
        for letter in letters:
            self.count += 1
            yield letter

    def tell(self, say: Callable[[], object]) -> None:
        """Tell the user that letters were sent when they are published, if they are."""
        if self._receipts:
            self._sayings.append(say)

    def published(self) -> None:
        """Tell the user of the letters that are published now."""
        sayings, self._sayings = self._sayings, []
        for say in sayings:
            say()

    def forget(self) -> None:
        """Forget the letters of a run that is not published."""
        self._receipts, self._sayings, self.count = [], [], 0

    def none_written(self, job: WriteJob[Any]) -> list[Receipt]:
        """Write as a sink does that gets no item, and return the receipts."""
        return list(self._delivery.staged((), job.writer))

    def taken(self) -> list[Receipt]:
        """Return the receipts since the last call."""
        receipts, self._receipts = self._receipts, []
        return receipts
