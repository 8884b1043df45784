"""`PeekingProcessor`: a processor around another one, which logs its items, what it emits, or what it saves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from logging import Logger
from typing import Any, Literal

from dstream.spi.processor import Inbox, Outbox, Processor, ProcessorContext, Targets, Watermark
from dstream.values.log_lines import is_heard, tell

__all__ = ["Peek", "PeekingProcessor"]


@dataclass(frozen=True, slots=True)
class Peek:
    """What is logged, and how.

    Attributes:
        what: is looked at.
        to_string: gives the text of an item.
        should_log: says which items are logged; None: all.
    """

    what: Literal["input", "output", "snapshot"]
    to_string: Callable[[Any], str]
    should_log: Callable[[Any], object] | None

    def log(self, logger: Logger, place: str, items: Sequence[Any]) -> None:
        """Log items that passed a place, if anybody hears of them."""
        if not is_heard(logger):
            return
        for item in items:
            if isinstance(item, Watermark):
                tell(logger, f"{place}{item}")
            elif self.should_log is None or self.should_log(item):
                tell(logger, f"{place}{self.to_string(item)}")


class PeekingProcessor(Processor):
    """Hands each call on; boxes log what goes through them.

    Args:
        inner: the processor.
        peek: what is logged.
    """

    def __init__(self, inner: Processor, peek: Peek) -> None:
        self._inner, self._peek = inner, peek
        self._inboxes: dict[int, PeekingInbox] = {}
        self.is_cooperative = inner.is_cooperative
        self.ticks_alone = inner.ticks_alone and type(inner).tick is not Processor.tick

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        """Put an outbox that logs between them, if that is asked for."""
        self._logger = context.logger
        is_looked_at = self._peek.what != "input"
        self._inner.init(PeekingOutbox(outbox, self._peek, self._logger) if is_looked_at else outbox, context)

    def process(self, ordinal: int, inbox: Inbox) -> None:
        """Log items as they are taken or seen, each once."""
        if self._peek.what != "input":
            return self._inner.process(ordinal, inbox)
        seen = self._inboxes.get(ordinal)
        if seen is None:
            seen = self._inboxes[ordinal] = PeekingInbox(self._peek, self._logger, ordinal)
        return self._inner.process(ordinal, seen.around(inbox))

    def tick(self) -> bool:
        """Hand it on."""
        return self._inner.tick()

    def try_process_watermark(self, watermark: Watermark) -> bool:
        """Log a watermark when it was processed."""
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
        """Hand it on; what comes back was logged when it was saved."""
        self._inner.restore_from_snapshot(inbox)

    def finish_snapshot_restore(self) -> bool:
        """Hand it on."""
        return self._inner.finish_snapshot_restore()

    def close(self, error: BaseException | None) -> None:
        """Hand it on."""
        self._inner.close(error)


class PeekingInbox:
    """An inbox around another one. An item that stays at its head is logged once."""

    def __init__(self, peek: Peek, logger: Logger, ordinal: int) -> None:
        self._peek, self._logger = peek, logger
        self._place = f"Input from ordinal {ordinal}: "
        self._is_head_logged = False

    def around(self, inbox: Inbox) -> PeekingInbox:
        """Return this one, with what waits now."""
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
    """An outbox around another one; what that takes is logged."""

    def __init__(self, outbox: Outbox, peek: Peek, logger: Logger) -> None:
        self._outbox, self._peek, self._logger = outbox, peek, logger

    @property
    def bucket_count(self) -> int:
        """How many outbound edges there are."""
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
