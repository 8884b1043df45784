"""Vertices that log the input, output or snapshot of the processors of another supplier.

Watermarks are always logged. The processors see no difference. What `read` emits, and what `write` takes, is logged in
the process that runs the job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from logging import Logger
from typing import Any, Literal

from dstream.arguments import optional_running, running_function
from dstream.base.logging import is_enabled, log_line
from dstream.core.suppliers import EndSupplier
from dstream.spi.processor import Inbox, Outbox, Processor, ProcessorContext, Targets, Watermark
from dstream.spi.sink import Collections
from dstream.spi.suppliers import (
    Address,
    AnySupplier,
    MetaSupplierContext,
    ProcessorMetaSupplier,
    ProcessorSupplier,
    SupplierContext,
    checked_count,
    meta_supplier,
)

__all__ = ["Peek", "PeekingProcessor", "peek_input", "peek_output", "peek_snapshot"]


@dataclass(frozen=True, slots=True)
class Peek:
    """The items to log, and their format.

    Attributes:
        what: the observed items: "input", "output" or "snapshot".
        to_string: returns the string of an item.
        should_log: returns whether an item is logged; None: all.
    """

    what: Literal["input", "output", "snapshot"]
    to_string: Callable[[Any], str]
    should_log: Callable[[Any], object] | None

    def log(self, logger: Logger, place: str, items: Sequence[Any]) -> None:
        """Log observed items, if the logger is enabled."""
        if not is_enabled(logger):
            return
        for item in items:
            if isinstance(item, Watermark):
                log_line(logger, f"{place}{item}")
            elif self.should_log is None or self.should_log(item):
                log_line(logger, f"{place}{self.to_string(item)}")


class PeekingProcessor(Processor):
    """A processor around another one, whose inbox and outbox log the items that pass through them.

    Args:
        inner: the processor.
        peek: the items to log.
    """

    def __init__(self, inner: Processor, peek: Peek) -> None:
        self._inner, self._peek = inner, peek
        self._inboxes: dict[int, PeekingInbox] = {}
        self.is_cooperative = inner.is_cooperative

    @property
    def ticks_alone(self) -> bool:  # type: ignore[override]  # the inner one may have something to do at times only
        """Return whether the inner processor has something to do also while nothing arrives."""
        # This class overrides `tick`, by which a run recognizes processors that tick: the inner one is asked instead.
        return self._inner.ticks_alone and type(self._inner).tick is not Processor.tick

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        """Put an outbox that logs between them, if that is asked for."""
        self._logger = context.logger
        is_looked_at = self._peek.what != "input"
        self._inner.init(PeekingOutbox(outbox, self._peek, self._logger) if is_looked_at else outbox, context)

    def process(self, ordinal: int, inbox: Inbox) -> None:
        """Log items as they are taken or seen, each once."""
        if self._peek.what != "input":
            return self._inner.process(ordinal, inbox)
        # One for each edge and all calls: it remembers whether the item at the head was logged before.
        seen = self._inboxes.get(ordinal)
        if seen is None:
            seen = self._inboxes[ordinal] = PeekingInbox(self._peek, self._logger, ordinal)
        return self._inner.process(ordinal, seen.around(inbox))

    def tick(self) -> bool:
        """Hand it on."""
        return self._inner.tick()

    def try_process_watermark(self, watermark: Watermark) -> bool:
        """Log a watermark when it was processed."""
        # One that is refused is offered again, and is logged when it has passed.
        if not self._inner.try_process_watermark(watermark):
            return False
        if self._peek.what != "snapshot":
            self._peek.log(self._logger, "Input: " if self._peek.what == "input" else "Output forwarded: ", [watermark])
        return True

    def complete_edge(self, ordinal: int) -> bool:
        """Hand it on."""
        return self._inner.complete_edge(ordinal)

    def complete(self) -> bool:
        """Hand it on."""
        return self._inner.complete()

    def save_to_snapshot(self) -> bool:
        """Hand it on."""
        return self._inner.save_to_snapshot()

    def restore_from_snapshot(self, inbox: Inbox) -> None:
        """Pass it on; a restored entry was logged when it was saved."""
        self._inner.restore_from_snapshot(inbox)

    def finish_snapshot_restore(self) -> bool:
        """Hand it on."""
        return self._inner.finish_snapshot_restore()

    def close(self, error: BaseException | None) -> None:
        """Hand it on."""
        self._inner.close(error)


class PeekingInbox:
    """An inbox around another one. An item that remains at its head is logged once."""

    def __init__(self, peek: Peek, logger: Logger, ordinal: int) -> None:
        self._peek, self._logger = peek, logger
        self._place = f"Input from ordinal {ordinal}: "
        self._is_head_logged = False

    def around(self, inbox: Inbox) -> PeekingInbox:
        """Return this inbox, with the items that wait now."""
        self._inbox = inbox
        return self

    def peek(self) -> Any:
        """Return the first item, and log it unless it was."""
        item = self._inbox.peek()
        if item is not None and not self._is_head_logged:
            self._is_head_logged = True
            self._peek.log(self._logger, self._place, [item])
        return item

    def poll(self) -> Any:
        """Take the first item out."""
        # Logged before it is taken, and once: the processor may have looked at it before.
        self.peek()
        self._is_head_logged = False
        return self._inbox.poll()

    def remove(self) -> None:
        """Take the first item out."""
        self.peek()
        self._inbox.remove()
        self._is_head_logged = False

    def drain(self) -> list[Any]:
        """Take all items out."""
        items = self._inbox.drain()
        # The first one was logged when the processor peeked at it.
        self._peek.log(self._logger, self._place, items[1:] if self._is_head_logged else items)
        self._is_head_logged = False
        return items

    def drain_to(self, take: Callable[[Any], object]) -> int:
        """Take all items out, and hand each to a function."""
        count = 0
        for item in self:
            take(item)
            count += 1
        return count

    def __iter__(self) -> Iterator[Any]:
        while len(self._inbox):
            yield self.poll()

    def __len__(self) -> int:
        return len(self._inbox)


class PeekingOutbox:
    """An outbox around another one; items that the inner one accepts are logged."""

    def __init__(self, outbox: Outbox, peek: Peek, logger: Logger) -> None:
        self._outbox, self._peek, self._logger = outbox, peek, logger

    @property
    def bucket_count(self) -> int:
        """The number of outbound edges."""
        return self._outbox.bucket_count

    def offer(self, item: Any, to: Targets = None) -> bool:
        """Offer an item."""
        taken = self._outbox.offer(item, to)
        if taken:
            self._log([item], to)
        return taken

    def offer_all(self, items: Sequence[Any], to: Targets = None) -> int:
        """Offer a block."""
        taken = self._outbox.offer_all(items, to)
        # What found no room is offered again, and logged then.
        self._log(items[:taken], to)
        return taken

    def offer_to_snapshot(self, key: Any, value: Any) -> bool:
        """Offer an entry."""
        taken = self._outbox.offer_to_snapshot(key, value)
        if taken and self._peek.what == "snapshot":
            self._peek.log(self._logger, "Output to snapshot: ", [(key, value)])
        return taken

    def _log(self, items: Sequence[Any], to: Targets) -> None:
        if self._peek.what == "output":
            ordinals = range(self.bucket_count) if to is None else [to] if isinstance(to, int) else to
            for ordinal in ordinals:
                self._peek.log(self._logger, f"Output to ordinal {ordinal}: ", items)


ToString = Callable[[Any], str]
ShouldLog = Callable[[Any], object]


def peek_input(
    supplier: AnySupplier, to_string: ToString = str, should_log: ShouldLog | None = None
) -> ProcessorMetaSupplier:
    """Return a supplier of the same processors, which logs the items that they take, with the ordinal of the edge.

    Args:
        supplier: makes processors, in any form that a vertex takes.
        to_string: returns the string of an item.
        should_log: returns whether an item is logged; None: all.

    Raises:
        TypeError: one of these is of another kind.
        UnsupportedError: it reads a source, and takes no items.

    Example:
        >>> from dstream.core import processors
        >>> processors.peek_input(processors.map(str.upper))
        peek_input(map(str.upper))
    """
    return _peeking("input", supplier, to_string, should_log)


def peek_output(
    supplier: AnySupplier, to_string: ToString = str, should_log: ShouldLog | None = None
) -> ProcessorMetaSupplier:
    """Return a supplier of the same processors, which logs the items that they emit, once for each edge.

    Args:
        supplier: makes processors, in any form that a vertex takes.
        to_string: returns the string of an item.
        should_log: returns whether an item is logged; None: all.

    Raises:
        TypeError: one of these is of another kind.
        UnsupportedError: it writes to a sink, and emits no items.

    Example:
        >>> from dstream.core import processors
        >>> processors.peek_output(processors.map(str.upper), should_log=str.isalpha)
        peek_output(map(str.upper))
    """
    return _peeking("output", supplier, to_string, should_log)


def peek_snapshot(
    supplier: AnySupplier, to_string: ToString = str, should_log: ShouldLog | None = None
) -> ProcessorMetaSupplier:
    """Return a supplier of the same processors, which logs the entries that they save.

    Args:
        supplier: makes processors, in any form that a vertex takes.
        to_string: returns the string of a pair (key, value).
        should_log: takes such a pair, and returns whether it is logged; None: all.

    Raises:
        TypeError: one of these is of another kind.
        UnsupportedError: it reads a source or writes to a sink, and has no snapshot.

    Example:
        >>> from dstream.core import processors
        >>> processors.peek_snapshot(processors.noop()).preferred_local_parallelism
        -1
    """
    return _peeking("snapshot", supplier, to_string, should_log)


def _peeking(
    what: Literal["input", "output", "snapshot"], supplier: AnySupplier, to_string: Any, should_log: Any
) -> ProcessorMetaSupplier:
    inner = meta_supplier(supplier)
    peek = Peek(
        what,
        running_function(to_string, "to_string"),
        optional_running(should_log, "should_log"),
    )
    # A source and a sink have no processors: the job logs the items that it reads or writes.
    if isinstance(inner, EndSupplier):
        return inner.peeked(peek)
    shown = f"peek_{what}({getattr(supplier, '__qualname__', repr(supplier))})"
    return _PeekingSupplier(inner, peek, shown, inner.preferred_local_parallelism, inner.inputs)


@dataclass(frozen=True, slots=True, repr=False)
class _PeekingSupplier(ProcessorMetaSupplier):
    inner: ProcessorMetaSupplier
    peek: Peek
    shown: str
    preferred_local_parallelism: int
    inputs: int | None

    def init(self, context: MetaSupplierContext) -> None:
        self.inner.init(context)

    def get(self, addresses: Sequence[Address]) -> Callable[[Address], ProcessorSupplier]:
        return partial(_peeking_at, self.inner.get(addresses), self.peek)

    def close(self, error: BaseException | None) -> None:
        self.inner.close(error)

    def opened(self, context: Collections) -> ProcessorMetaSupplier:
        return replace(self, inner=self.inner.opened(context))

    def __repr__(self) -> str:
        return self.shown


def _peeking_at(get: Callable[[Address], ProcessorSupplier], peek: Peek, address: Address) -> ProcessorSupplier:
    return _Peeking(get(address), peek)


class _Peeking(ProcessorSupplier):
    def __init__(self, inner: ProcessorSupplier, peek: Peek) -> None:
        self._inner, self._peek = inner, peek

    def init(self, context: SupplierContext) -> None:
        self._inner.init(context)

    def get(self, count: int) -> Sequence[Processor]:
        return [PeekingProcessor(each, self._peek) for each in checked_count(self._inner.get(count), count)]

    def get_one(self, number: int, count: int) -> Processor:
        return PeekingProcessor(self._inner.get_one(number, count), self._peek)

    def close(self, error: BaseException | None) -> None:
        self._inner.close(error)
