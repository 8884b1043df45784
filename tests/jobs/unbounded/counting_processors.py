"""Processors of graphs without an end: counts by word, and sources that go on."""

from __future__ import annotations

from typing import Any

from dstream.core import AbstractProcessor, BroadcastKey, Inbox, Outbox, Processor, ProcessorContext, Watermark

__all__ = ["CALLS", "Called", "Numbers", "Slow", "Totals", "TotalsOfKeys"]

CALLS: list[Any] = []
"""What processors were asked to do, in this process."""


class Totals(AbstractProcessor):
    """Emits each word with how many there were, each watermark, and all totals at the end."""

    def start(self, context: ProcessorContext) -> None:
        self.totals: dict[str, int] = {}
        self.saving: Any = None

    def try_process(self, ordinal: int, item: str) -> bool:
        total = self.totals.get(item, 0) + 1
        if not self.try_emit((item, total)):
            return False
        self.totals[item] = total
        return True

    def try_process_watermark(self, watermark: Watermark) -> bool:
        return self.try_emit(("until", watermark.timestamp))

    def complete(self) -> bool:
        return self.try_emit(("end", sum(self.totals.values())))

    def save_to_snapshot(self) -> bool:
        self.saving = self.saving or iter(list(self.totals.items()))
        if not self.emit_from_traverser_to_snapshot(self.saving):
            return False
        self.saving = None
        return True

    def restore_entry(self, key: str, value: int) -> None:
        self.totals[key] = value


class Slow(AbstractProcessor):
    """Gives its items on, and says at its end how many there were, after many calls."""

    def start(self, context: ProcessorContext) -> None:
        self.items, self.calls_left = 0, 500

    def try_process(self, ordinal: int, item: Any) -> bool:
        if not self.try_emit(item):
            return False
        self.items += 1
        return True

    def complete(self) -> bool:
        self.calls_left -= 1
        return self.calls_left <= 0 and self.try_emit(("slowly", self.items))

    def save_to_snapshot(self) -> bool:
        return self.try_emit_to_snapshot("state", (self.items, self.calls_left))

    def restore_entry(self, key: str, value: Any) -> None:
        self.items, self.calls_left = value


class TotalsOfKeys(Totals):
    """Emits for each event its key with how many there were of it, and nothing else."""

    def try_process(self, ordinal: int, item: Any) -> bool:
        return super().try_process(ordinal, item.key)

    def try_process_watermark(self, watermark: Watermark) -> bool:
        return True

    def complete(self) -> bool:
        return True


class Numbers(Processor):
    """A source that emits (its number, 0), (its number, 1) and so on, so many between two snapshots, up to an end.

    An epoch may end after one call, on a machine that does other work: `at_once` says how many come of that one.
    """

    def __init__(self, end: int | None = None, most: int = 10_000, at_once: int = 100) -> None:
        self.end = end
        self.most = self.left = most
        self.at_once = at_once
        self.next = 0

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        self.outbox, self.index = outbox, context.index

    def complete(self) -> bool:
        for _ in range(min(self.at_once, self.left)):
            if self.next == self.end:
                return True
            if not self.outbox.offer((self.index, self.next)):
                break
            self.next += 1
            self.left -= 1
        return False

    def save_to_snapshot(self) -> bool:
        self.left = self.most
        return self.outbox.offer_to_snapshot(BroadcastKey("next"), self.next)

    def restore_from_snapshot(self, inbox: Inbox) -> None:
        ((_, self.next),) = inbox.drain()


class Called(Totals):
    """Notes each call of the protocol; fails on the word `fail`, once."""

    failures = 1

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        CALLS.append("init")
        super().init(outbox, context)

    def process(self, ordinal: int, inbox: Inbox) -> None:
        CALLS.append("process")
        if inbox.peek() == "fail" and type(self).failures:
            type(self).failures -= 1
            raise ValueError("as it was told")
        super().process(ordinal, inbox)

    def try_process_watermark(self, watermark: Watermark) -> bool:
        CALLS.append(f"watermark {watermark.timestamp}")
        return True

    def complete_edge(self, ordinal: int) -> bool:
        CALLS.append(f"complete_edge {ordinal}")
        return True

    def complete(self) -> bool:
        CALLS.append("complete")
        return super().complete()

    def save_to_snapshot(self) -> bool:
        CALLS.append("save")
        return super().save_to_snapshot()

    def restore_from_snapshot(self, inbox: Inbox) -> None:
        CALLS.append("restore")
        super().restore_from_snapshot(inbox)

    def finish_snapshot_restore(self) -> bool:
        CALLS.append("finish_restore")
        return True

    def close(self, error: BaseException | None) -> None:
        CALLS.append("close")
