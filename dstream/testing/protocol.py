"""`ProcessorRun`: one processor driven by the protocol, with a small outbox and restores from snapshots."""

from __future__ import annotations

import copy
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dstream.base.pickling import dumps
from dstream.base.showing import add_note
from dstream.core.abstract_processor import NoAnswerError
from dstream.failures import MISSING, shown
from dstream.spi.processor import Processor, Watermark
from dstream.spi.suppliers import AnySupplier, MetaSupplierContext, SupplierContext, meta_supplier, supplier_at
from dstream.testing.processors import TestInbox, TestOutbox, TestProcessorContext

__all__ = ["REFUSED_FIRST", "RUNS", "ClassState", "ProcessorRun", "RunLimits"]


_OURS = ("dstream", "builtins", "typing", "abc")


class ClassState:
    """Snapshot of those attributes of an object that the user's classes define.

    Functions, properties and their kin are left out. What cannot be copied is compared by identity.

    Args:
        thing: an instance.
    """

    def __init__(self, thing: object) -> None:
        self._classes = [each for each in type(thing).__mro__ if each.__module__.partition(".")[0] not in _OURS]
        self._before = {(kind, name): (value, _copied(value)) for kind, name, value in self._attributes()}

    def _attributes(self) -> Iterator[tuple[type, str, Any]]:
        for kind in self._classes:
            for name, value in list(vars(kind).items()):
                is_pythons = name.startswith(("__", "_abc_"))
                if not is_pythons and not callable(value) and not hasattr(type(value), "__get__"):
                    yield kind, name, value

    def change(self) -> str | None:
        """Return the change since then in words; None: nothing."""
        for kind, name, value in self._attributes():
            was, copied = self._before.get((kind, name), (MISSING, MISSING))
            if was is MISSING:
                return f"{kind.__qualname__}.{name} was set to {shown(value)}"
            if was is not value or not _is_same(copied, value):
                return f"{kind.__qualname__}.{name} was {shown(copied)}, and is {shown(value)}"
        return None


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:  # Such as a lock, which is not compared.
        return value


def _is_same(before: Any, now: Any) -> bool:
    """Return whether a value is as its copy was; one that is equal only to itself has no visible state."""
    if before is now or getattr(type(before), "__eq__", None) is object.__eq__:
        return True
    try:
        return bool(before == now)
    except Exception:  # Such as an array, which compares item by item.
        return repr(before) == repr(now)


RUNS = ("not saved", "saved", "restored after every other item", "restored after every item")
"""The runs of Jet's `TestSupport`. In these, a processor that emits one item for each is never refused one."""
REFUSED_FIRST = "each emitted item refused first"
"""Additional run, without snapshots: each emitted item is refused once, and the inbox contains several items."""
_HERE = "here"


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The bounds of each call.

    Attributes:
        asserts_progress: each call must emit an item, take an item or be done.
        cooperative_timeout: limit of a call of a cooperative processor in seconds; 0: without a limit.
        clock: returns seconds.
        most_items: limit of the items emitted by one edge; 0: any number.
    """

    asserts_progress: bool = True
    cooperative_timeout: float = 0.0
    clock: Callable[[], float] = time.monotonic
    most_items: int = 0


class ProcessorRun:
    """Life cycle of one processor, from `init` to `close`.

    Args:
        supplier: creates it, and creates it again for each restore.
        run: one of `RUNS`, or `REFUSED_FIRST`.
        outputs: the number of outbound edges.
        limits: the limits of each call.

    Attributes:
        processor: the current processor.
        supplier: its supplier.
        outbox: its outbox; each bucket accepts one item in each call.
        outputs: what was emitted, by the ordinals of the edges, forwarded watermarks included.
        saved: the last snapshot.
        run: as passed.
    """

    processor: Processor
    outbox: TestOutbox

    def __init__(
        self, supplier: AnySupplier, run: str = RUNS[0], outputs: int = 1, limits: RunLimits | None = None
    ) -> None:
        self._limits = limits or RunLimits()
        self._saves = run not in (RUNS[0], REFUSED_FIRST)
        self._guarantee = "exactly-once" if self._saves else "none"
        self._meta = meta_supplier(supplier)
        self._meta.init(MetaSupplierContext("tested", guarantee=self._guarantee))
        self.supplier = supplier_at(_HERE, self._meta)
        self.supplier.init(SupplierContext("tested", guarantee=self._guarantee))
        self.outputs: list[list[Any]] = [[] for _ in range(outputs)]
        self.saved: dict[Any, Any] = {}
        self.run = run
        self._steps = 0
        self._refused: Any = MISSING  # In the last call.
        self._refuses_next = True
        self._make()

    def _make(self) -> None:
        (self.processor,) = self.supplier.get(1)
        self.outbox = TestOutbox(*([1] * len(self.outputs)))
        self.processor.init(self.outbox, TestProcessorContext(guarantee=self._guarantee))

    @property
    def emitted(self) -> list[Any]:
        """The items emitted by the first edge."""
        return self.outputs[0]

    # ---------------------------------------------------------------------------------------------------- what happens

    def process(self, ordinal: int, item: Any) -> None:
        """Give it an item or a watermark, which is forwarded when the processor is done with it; then save."""
        if isinstance(item, Watermark):
            self.until_done("tick")
            self.until_done("try_process_watermark", item)
            for each in self.outputs:
                each.append(item)
        else:
            self.process_block(ordinal, [item])
        self.snapshot()

    def process_block(self, ordinal: int, items: Sequence[Any]) -> None:
        """Give it items that are in the inbox together."""
        inbox = TestInbox(items)
        self.until_done("tick")
        while len(inbox):
            self._calling("process", ordinal, inbox)
            self.until_done("tick")
        if self.outbox.refused is not MISSING:
            raise self._lost(f"{self._called('process', [ordinal, *items])} took it", self.outbox.refused)

    def complete_edge(self, ordinal: int) -> None:
        """Call `complete_edge` for an edge that has ended; then save."""
        self.until_done("complete_edge", ordinal)
        self.snapshot()

    def complete(self, goes_on: Callable[[], bool] = lambda: True) -> bool:
        """Call `complete` until it is done, and save between two calls.

        Args:
            goes_on: whether to call it again.

        Returns:
            Whether it is done.
        """
        while goes_on():
            self.until_done("tick")
            if self._is_done("complete"):
                self.outbox.has_ended = True
                return True
            self.snapshot()
        return False

    def snapshot(self) -> None:
        """Save, and go on from the snapshot, as the run requires."""
        self._steps += 1
        if not self._saves:
            return
        self.saved = {}
        self.outbox.snapshot_capacity = 1
        self.until_done("save_to_snapshot")
        self.outbox.snapshot_capacity = 0
        if self.run == RUNS[1] or (self.run == RUNS[2] and self._steps % 2):
            return
        self.processor.close(None)
        self._make()
        # Entries are restored in any order: here in reverse.
        self._restore(pickle.loads(dumps(list(reversed(self.saved.items())))))

    def _restore(self, entries: list[tuple[Any, Any]]) -> None:
        inbox = TestInbox(entries)
        while len(inbox):
            self._calling("restore_from_snapshot", inbox)
        if entries:
            self.until_done("finish_snapshot_restore")

    def close(self, error: BaseException | None = None) -> None:
        """Close it and its suppliers.

        Args:
            error: why the run failed; then nothing that this raises hides it.
        """
        for each in (self.processor, self.supplier, self._meta):
            try:
                each.close(error)
            except Exception as failed:
                if error is None:
                    add_note(failed, f"in {type(each).__name__}.close(None), in the run {self.run!r}")
                    if failed is self.outbox.broken:
                        raise self._broken("close", [None], failed) from failed
                    raise

    # -------------------------------------------------------------------------------------------------------- one call

    def until_done(self, method: str, *given: Any) -> None:
        """Call a method of the processor until it is done.

        Args:
            method: its name.
            given: its arguments.

        Raises:
            AssertionError: a call broke the protocol.
            Exception: what the processor raised.
        """
        while not self._is_done(method, *given):
            pass

    def _is_done(self, method: str, *given: Any) -> bool:
        done = self._calling(method, *given)
        waits = self._refused if method not in _ENDS or self._refused is not MISSING else self.outbox.refused
        if done and waits is not MISSING:
            raise self._lost(f"{self._called(method, given)} returned True", waits)
        return bool(done)

    def _calling(self, method: str, *given: Any) -> Any:
        """Call a method once, check its effects, and collect the items that it emitted."""
        # Copies, since the processor empties the inbox.
        before = [each.queue if isinstance(each, TestInbox) else each for each in given]
        refuses_all = self._refuses_next and self.run == REFUSED_FIRST
        self.outbox.capacities = [0 if refuses_all else 1] * len(self.outputs)
        began = self._limits.clock()
        try:
            done = getattr(self.processor, method)(*given)
        except Exception as error:
            add_note(error, f"in {self._called(method, before)}, in the run {self.run!r}")
            if error is self.outbox.broken or isinstance(error, NoAnswerError):
                raise self._broken(method, before, error) from error
            raise
        if self.outbox.broken is not None:  # The processor has caught it.
            raise self._broken(method, before, self.outbox.broken) from self.outbox.broken
        if done is None and method not in _RETURN_NOTHING:
            raise AssertionError(f"{self._called(method, before)} must return True or False, not None")
        self._check_time(self._limits.clock() - began, method, before)
        self._refused = self.outbox.refused_now
        has_taken = any(
            len(each) < len(was) for each, was in zip(given, before, strict=True) if was and _is_inbox(each)
        )
        has_emitted = self._take()
        was_kept_back = refuses_all and self._refused is not MISSING
        self._refuses_next = has_emitted or (self._refuses_next and not was_kept_back)
        is_progress = has_emitted or bool(done) or has_taken or was_kept_back
        if self._limits.asserts_progress and not is_progress:
            raise AssertionError(
                f"{self._called(method, before)} made no progress, in the run {self.run!r}: it emitted nothing, "
                f"{'took nothing out of the inbox' if any(map(_is_inbox, given)) else 'was not done'}, and would be "
                "called for ever"
            )
        return done

    def _take(self) -> bool:
        """Collect the emitted and the saved items; return whether there were any."""
        entries = self.outbox.drain_snapshot_queue_and_reset()
        for key, value in entries:
            if key in self.saved:
                raise AssertionError(f"{self._name} saved the key {shown(key)} twice in one snapshot")
            self.saved[key] = value
        drained = self.outbox.drain_queues_and_reset()
        for output, items in zip(self.outputs, drained, strict=True):
            output += items
            if self._limits.most_items and len(output) > self._limits.most_items:
                raise AssertionError(
                    f"{self._name} emitted {len(output)} items in the run {self.run!r}, far more than are expected: "
                    "does it know after a snapshot how far it was?"
                )
        return bool(entries) or any(drained)

    def _check_time(self, took: float, method: str, given: Sequence[Any]) -> None:
        limit = self._limits.cooperative_timeout
        if self.processor.is_cooperative and limit and took > limit:
            raise AssertionError(
                f"{self._called(method, given)} took {took:g} s, and one call of a cooperative processor may take "
                f"{limit:g} s, as it shares a thread: it does less in a call, or says is_cooperative = False"
            )

    @property
    def _name(self) -> str:
        return type(self.processor).__name__

    def _called(self, method: str, given: Sequence[Any]) -> str:
        return f"{self._name}.{method}({', '.join(map(shown, given))})"

    def _broken(self, method: str, given: Sequence[Any], error: Exception) -> AssertionError:
        return AssertionError(f"{self._called(method, given)} broke the protocol, in the run {self.run!r}: {error}")

    def _lost(self, what: str, item: Any) -> AssertionError:
        return AssertionError(
            f"{what}, and {shown(item)}, which the outbox had refused, is lost, in the run {self.run!r}: it has to be "
            "offered again until it is taken"
        )


_ENDS = ("try_process_watermark", "complete_edge", "complete")
"""Methods that are done when what was refused in an earlier call has gone out, too."""
_RETURN_NOTHING = ("process", "restore_from_snapshot")


def _is_inbox(value: Any) -> bool:
    return isinstance(value, TestInbox)
