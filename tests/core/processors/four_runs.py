"""Runs one processor as Jet's `TestSupport` does: with an outbox of one item, and restored at different places."""

from __future__ import annotations

import pickle
from typing import Any

from dstream.executor.block_inbox import BlockInbox
from dstream.spi.processor import ProcessorContext, Watermark
from dstream.spi.processor_suppliers import SupplierContext, meta_supplier

RUNS = ("not saved", "saved", "restored after every other item", "restored after every item")


class OneItemOutbox:
    """Takes one item, and one entry of a snapshot, in each call of the processor."""

    bucket_count = 1

    def __init__(self) -> None:
        self.emitted: list[Any] = []
        self.entries: dict[Any, Any] = {}
        self.room = self.entry_room = 1

    def offer(self, item: Any, to: Any = None) -> bool:
        """Take an item if there is room."""
        return self.offer_all([item], to) == 1

    def offer_all(self, items: Any, to: Any = None) -> int:
        """Take the first item if there is room."""
        assert None not in items
        taken = min(self.room, len(items))  # Usually 0 or 1.
        self.emitted += items[:taken]
        self.room -= taken
        return taken

    def offer_to_snapshot(self, key: Any, value: Any) -> bool:
        """Take an entry if there is room."""
        if not self.entry_room:
            return False
        assert key not in self.entries, "keys are unique"
        self.entries[key] = value
        self.entry_room = 0
        return True


class OneProcessor:
    """Drives one processor; `run` is one of `RUNS`."""

    def __init__(self, supplier: Any, run: str) -> None:
        self.supplier = meta_supplier(supplier).get(["here"])("here")
        self.supplier.init(SupplierContext("tested"))
        self.run, self.steps, self.emitted = run, 0, []
        self._make()

    def _make(self) -> None:
        (self.processor,) = self.supplier.get(1)
        self.outbox = OneItemOutbox()
        self.outbox.emitted = self.emitted
        self.processor.init(self.outbox, ProcessorContext("tested"))

    def until_done(self, method: Any, *given: Any) -> None:
        """Call a method until it is done; each call makes progress."""
        while True:
            before = len(self.emitted), len(self.outbox.entries), [len(each) for each in given if _is_inbox(each)]
            self.outbox.room = self.outbox.entry_room = 1
            done = method(*given)
            if done and not any(len(each) for each in given if _is_inbox(each)):
                return
            after = len(self.emitted), len(self.outbox.entries), [len(each) for each in given if _is_inbox(each)]
            assert done or before != after, f"{method.__name__} made no progress"

    def step(self, method: Any, *given: Any) -> None:
        """Do one thing, then save and restore if it is time to."""
        self.until_done(getattr(self.processor, method), *given)
        self.snapshot()

    def snapshot(self) -> None:
        """Save, and go on with what was saved, as the run has it."""
        self.steps += 1
        if self.run == RUNS[0]:
            return
        self.outbox.entries = {}
        self.until_done(self.processor.save_to_snapshot)
        saved = pickle.loads(pickle.dumps(list(self.outbox.entries.items())))
        if self.run == RUNS[1] or (self.run == RUNS[2] and self.steps % 2):
            return
        self.processor.close(None)
        self._make()
        if saved:
            inbox = BlockInbox()
            inbox.fill(saved)
            self.processor.restore_from_snapshot(inbox)
            assert not len(inbox)
            self.until_done(self.processor.finish_snapshot_restore)

    def process(self, ordinal: int, item: Any) -> None:
        """Give it an item, or a watermark, which passes on when it is done with that."""
        if isinstance(item, Watermark):
            self.until_done(self.processor.try_process_watermark, item)
            self.emitted.append(item)
            return self.snapshot()
        inbox = BlockInbox()
        inbox.fill([item])
        while len(inbox):
            self.outbox.room = 1
            before = len(self.emitted)
            self.processor.process(ordinal, inbox)
            assert not len(inbox) or len(self.emitted) > before
        return self.snapshot()

    def complete(self) -> None:
        """Let it complete; between two calls it may be saved and restored."""
        while True:
            self.outbox.room = self.outbox.entry_room = 1
            if self.processor.complete():
                break
            self.snapshot()
        self.processor.close(None)
        self.supplier.close(None)


def _is_inbox(value: Any) -> bool:
    return isinstance(value, BlockInbox)


def emitted_in_four_runs(supplier: Any, *inputs: Any, completes: bool = True) -> list[Any]:
    """Return what a processor emits for inputs, one edge after another; the same in all runs."""
    found = []
    for run in RUNS:
        one = OneProcessor(supplier, run)
        for ordinal, items in enumerate(inputs):
            for item in items:
                one.process(ordinal, item)
            one.step("complete_edge", ordinal)
        if completes:
            one.complete()
        found.append(list(one.emitted))
    assert [sorted(each, key=repr) for each in found] == [sorted(found[0], key=repr)] * len(RUNS)
    return found[0]
