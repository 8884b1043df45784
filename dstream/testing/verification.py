"""`verify_processor`: the output of a processor, interrupted, saved and restored at any point."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import groupby
from typing import Any

from dstream.arguments import checked_function, kind_of
from dstream.core.suppliers import Reading
from dstream.spi.processor import Processor, Watermark
from dstream.spi.suppliers import AnySupplier, meta_supplier
from dstream.testing.comparison import difference, difference_in_any_order, report
from dstream.testing.processors import ReadingProcessor
from dstream.testing.protocol import REFUSED_FIRST, RUNS, ClassState, ProcessorRun, RunLimits
from dstream.values.time import seconds

__all__ = ["VerifiedProcessor", "same_items_in_any_order", "verify_processor"]


_MORE = 10_000
"""The items beyond the expected ones after which a processor counts as one without an end."""

Checker = Callable[[list[Any], list[Any]], object]
"""Function of the expected and the emitted items of an edge that returns whether they are equal."""


def verify_processor(
    supplier: AnySupplier | Processor, *, clock: Callable[[], float] = time.monotonic
) -> VerifiedProcessor:
    """Begin to verify a processor; `expect_output` runs it and compares its output.

    It is driven four times by the protocol, as Hazelcast Jet's `TestSupport` does: never saved; saved and not restored;
    restored after every other item; restored after every item. Snapshots are taken between calls of `complete()` too.
    It receives one item at a time, and the outbox accepts one item in each call. A fifth run refuses each emitted item
    once, and has all items of an edge in the inbox, if no other edge has its priority. Each call makes progress, and a
    call of a cooperative processor takes at most a second. A refused item is offered again first, and no key is saved
    twice. Entries of a snapshot are restored in another order. No attribute of a class of the user's changes meanwhile.

    Args:
        supplier: any supplier of a vertex. A processor instance cannot be created again, so it is not restored. The
            source of `processors.read(source)` is read in one task; use `source.opened(context)` if it needs a context.
        clock: returns seconds, to measure calls.

    Raises:
        TypeError: it is none of these.

    Example:
        >>> from dstream.core import processors
        >>> verify_processor(processors.map(lambda n: n * n)).input([1, 2]).expect_output([1, 4])
    """
    if isinstance(supplier, Reading):
        supplier = partial(ReadingProcessor, supplier.source)
    if isinstance(supplier, Processor):
        return VerifiedProcessor(_only(supplier), limits=RunLimits(True, 1.0, clock), runs=RUNS[:1])
    return VerifiedProcessor(meta_supplier(supplier), limits=RunLimits(True, 1.0, clock))


def _only(processor: Processor) -> Callable[[], Processor]:
    """Return a supplier of one processor, once."""
    made = iter([processor])
    return lambda: next(made)


def same_items_in_any_order(expected: list[Any], emitted: list[Any]) -> bool:
    """Return whether two lists have the same items, each as often; for `output_checker`."""
    return difference_in_any_order(expected, emitted) is None


def _same_items(expected: list[Any], emitted: list[Any]) -> bool:
    return difference(expected, emitted) is None


@dataclass(frozen=True, slots=True, repr=False)
class VerifiedProcessor:
    """Verification of a processor, a value: each method returns another one, and `expect_output` runs it."""

    supplier: AnySupplier
    limits: RunLimits
    runs: tuple[str, ...] = (RUNS[0], REFUSED_FIRST, *RUNS[1:])
    edges: tuple[tuple[Any, ...], ...] = ()
    priorities: tuple[int, ...] = ()
    checker: Checker = _same_items
    completes_within: float | None = None
    is_completed: bool = True

    def input(self, items: Iterable[Any]) -> VerifiedProcessor:
        """Add one inbound edge.

        Args:
            items: arrive by it; each `Watermark` among them moves time, is forwarded, and is expected in the output.
        """
        return self.inputs([items])

    def inputs(self, edges: Iterable[Iterable[Any]], *, priorities: Sequence[int] | None = None) -> VerifiedProcessor:
        """Add several inbound edges.

        Args:
            edges: the items of each edge.
            priorities: the priority of each edge; edges with the lowest number are first, and edges with equal numbers
                alternate item by item.

        Raises:
            ValueError: the numbers of priorities and edges differ.
        """
        taken = tuple(tuple(each) for each in edges)
        given = tuple(priorities) if priorities is not None else (0,) * len(taken)
        if len(given) != len(taken):
            raise ValueError(f"there are {len(taken)} edges and {len(given)} priorities")
        return replace(self, edges=taken, priorities=given)

    def disable_snapshots(self) -> VerifiedProcessor:
        """Disable snapshots."""
        return replace(self, runs=tuple(run for run in self.runs if run not in RUNS[1:]))

    def disable_progress_assertion(self) -> VerifiedProcessor:
        """Accept calls that do nothing, as those that wait for another system."""
        return replace(self, limits=replace(self.limits, asserts_progress=False))

    def disable_complete_call(self) -> VerifiedProcessor:
        """Leave out the call of `complete()`, as behind an input without an end."""
        return replace(self, is_completed=False)

    def disable_run_until_completed(self, timeout: float | timedelta) -> VerifiedProcessor:
        """Call `complete()` for some time, although it is never done, as that of a source without an end.

        Args:
            timeout: seconds, or a timedelta; what was emitted until then is compared.
        """
        # What it emits in that time depends on how often it is called.
        runs = tuple(run for run in self.runs if run != REFUSED_FIRST)
        return replace(self, completes_within=seconds(timeout, "timeout"), runs=runs)

    def cooperative_timeout(self, timeout: float | timedelta) -> VerifiedProcessor:
        """Set the time limit of a call of a cooperative processor.

        Args:
            timeout: seconds, or a timedelta; 0 for any time.
        """
        return replace(self, limits=replace(self.limits, cooperative_timeout=seconds(timeout, "timeout")))

    def output_checker(self, checker: Checker) -> VerifiedProcessor:
        """Set the comparison of the output; unset, items are the same ones in the same order.

        Args:
            checker: takes the expected and the emitted list, and returns whether they are equal, such as
                `same_items_in_any_order`.
        """
        return replace(self, checker=checked_function(checker, "checker"))

    def expect_output(self, items: Iterable[Any]) -> None:
        """Run the processor with one outbound edge, and compare.

        Args:
            items: the expected items of the edge.

        Raises:
            AssertionError: the output differs, or the processor broke the protocol; the message names the run.
        """
        __tracebackhide__ = True
        self.expect_outputs([items])

    def expect_outputs(self, edges: Iterable[Iterable[Any]]) -> None:
        """Run the processor with several outbound edges, or none, and compare.

        Args:
            edges: what arrives by each.

        Raises:
            AssertionError: the output differs, or the processor broke the protocol; the message names the run.
        """
        __tracebackhide__ = True
        expected = [list(each) for each in edges]
        for run in self.runs:
            for ordinal, (wanted, emitted) in enumerate(zip(expected, self._emitted(run, expected), strict=True)):
                if not self.checker(wanted, emitted):
                    raise AssertionError(self._message(run, ordinal, wanted, emitted))

    def _message(self, run: str, ordinal: int, wanted: list[Any], emitted: list[Any]) -> str:
        in_any_order = difference_in_any_order(wanted, emitted)
        found = in_any_order or difference(wanted, emitted) or "the checker says that it is not the same"
        order = "" if in_any_order else ", in another order"
        state = ""
        if run in RUNS[2:]:
            state = (
                ", and it was right without being restored: part of the state is not saved, or depends on the order in "
                "which entries come back"
            )
        what = f"edge {ordinal} got something else in the run {run!r}{order}{state}: {found}"
        return report(wanted, emitted, what)

    def _emitted(self, run: str, expected: Sequence[Sequence[Any]]) -> list[list[Any]]:
        limits = self.limits
        if self.completes_within is None:
            limits = replace(limits, most_items=_MORE + 10 * max(map(len, expected), default=0))
        one = ProcessorRun(self.supplier, run, len(expected), limits)
        on_class = ClassState(one.processor)
        try:
            self._drive(one)
            if changed := on_class.change():
                raise AssertionError(
                    f"the processor keeps state on its class: {changed}, in the run {run!r}. All processors of a "
                    "process share it, and no snapshot has it: set it in start(context), on self"
                )
        except BaseException as error:
            one.close(error)
            raise
        one.close()
        return one.outputs

    def _drive(self, one: ProcessorRun) -> None:
        one.snapshot()
        for priority in sorted(set(self.priorities)):
            self._drive_edges(one, [n for n, each in enumerate(self.priorities) if each == priority])
        if not self.is_completed:
            return
        if self.completes_within is None:
            one.complete()
            return
        ends = self.limits.clock() + self.completes_within
        if one.complete(lambda: self.limits.clock() < ends):
            raise AssertionError("complete() returned True, and disable_run_until_completed() says that it never does")

    def _drive_edges(self, one: ProcessorRun, ordinals: list[int]) -> None:
        """Pass it the items of edges of one priority in turn, and the end of each."""
        if one.run == REFUSED_FIRST and len(ordinals) == 1:
            self._drive_blocks(one, ordinals[0])
            return
        left: dict[int, Iterator[Any]] = {each: iter(self.edges[each]) for each in ordinals}
        while left:
            for ordinal, items in list(left.items()):
                try:
                    item = next(items)
                except StopIteration:
                    del left[ordinal]
                    one.complete_edge(ordinal)
                else:
                    one.process(ordinal, item)

    def _drive_blocks(self, one: ProcessorRun, ordinal: int) -> None:
        """Pass it the items between two watermarks together."""
        for is_mark, some in groupby(self.edges[ordinal], key=lambda item: isinstance(item, Watermark)):
            if is_mark:
                for each in some:
                    one.process(ordinal, each)
            else:
                one.process_block(ordinal, list(some))
        one.complete_edge(ordinal)

    def __repr__(self) -> str:
        return f"verify_processor({kind_of(self.supplier)})"
