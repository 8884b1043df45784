"""`GraphExecution`: the processors of a graph in one process, with their suppliers and log.

A Spark worker has no log handlers, and logs only warnings: lines of `peek_input`, `write_logger` and the loggers of
processors would be lost. So a worker writes them to its stderr, as functions that print do.

Tasklets take turns in one thread; each call lets a processor do a little. The output of a processor is buffered in a
queue of the next one; while the queue is full, the first one must wait. Processors that are not cooperative have
threads of their own.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from dstream.base.records import record
from dstream.failures import is_our_name, naming
from dstream.plan.processor_graph import GraphEdge, GraphVertex, VertexGraph
from dstream.processors.blocks import GraphArrival, GraphBlock
from dstream.processors.edges import Door, Feed, Giving, Sending, router_of
from dstream.processors.inbound_edges import EdgeInflow, inflow
from dstream.processors.inbox_outbox import EdgeOutbox, OutboundEdge
from dstream.processors.tasklets import OwnThread, ProcessorTasklet, TaskletState
from dstream.spi.processor import Overflow, Processor, ProcessorContext
from dstream.spi.suppliers import ProcessorSupplier, SupplierContext, checked_count, supplier_at

__all__ = ["SLICE", "GraphExecution", "ProcessorLogs", "Saved", "SharedSuppliers", "shared_suppliers"]


@dataclass(slots=True)
class _Used:
    supplier: ProcessorSupplier
    times: int = 0


class SharedSuppliers:
    """The suppliers that are in use. Runs in several threads may take them."""

    def __init__(self) -> None:
        self._used: dict[int, _Used] = {}
        self._lock = threading.RLock()

    def take(self, supplier: ProcessorSupplier, context: SupplierContext) -> None:
        """Start a supplier, unless another run has started it. The caller must return it, also after a failure.

        Raises:
            Exception: the error of its `init`.
        """
        with self._lock:
            # The entry refers to the supplier, so that no other supplier can get its `id`.
            used = self._used.setdefault(id(supplier), _Used(supplier))
            used.times += 1
            if used.times == 1:
                # Under the lock: another run must not take a supplier that is not ready yet.
                supplier.init(context)

    def give_back(self, supplier: ProcessorSupplier, error: BaseException | None) -> None:
        """Close a supplier if no other run uses it.

        Raises:
            Exception: the error of its `close`.
        """
        with self._lock:
            used = self._used[id(supplier)]
            used.times -= 1
            if used.times:
                return
            del self._used[id(supplier)]
        # Without the lock: this may take long, and other runs need their suppliers.
        supplier.close(error)


shared_suppliers = SharedSuppliers()
"""The shared suppliers of this process."""


_LOGGER = "dstream.core"


class _ToStderr(logging.StreamHandler):  # type: ignore[type-arg]  # Generic for type checkers alone.
    """The log handler of a worker, which replaces the handlers of the caller."""


def _level() -> int:
    return logging.getLogger(_LOGGER).getEffectiveLevel()


def _has_handlers() -> bool:
    return logging.getLogger(_LOGGER).hasHandlers()


@record(slots=False)
class ProcessorLogs:
    """The log levels of the caller's process, which are sent to the tasks.

    Attributes:
        level: the lowest level that loggers of processors report.
        has_handlers: whether the caller has set up logging; otherwise requested lines are printed.
        process: the process id of the caller.
    """

    level: int = field(default_factory=_level)
    has_handlers: bool = field(default_factory=_has_handlers)
    process: int = field(default_factory=os.getpid)

    def begin(self) -> None:
        """Set the level of a worker's logger to the caller's, and add a handler if the worker has none."""
        if os.getpid() == self.process:
            return
        logger = logging.getLogger(_LOGGER)
        # Spark reuses a worker for later runs, whose callers may set other levels.
        for ours in [each for each in logger.handlers if isinstance(each, _ToStderr)]:
            logger.removeHandler(ours)
        logger.setLevel(self.level)
        if self.has_handlers and not logger.hasHandlers():
            handler = _ToStderr(sys.stderr)
            handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
            logger.addHandler(handler)


_log = logging.getLogger("dstream.core")

Place = tuple[str, int]
"""A vertex, and the number of one of its processors."""

Saved = dict[Place, tuple[dict[Any, Any], TaskletState]]
"""The entries that processors saved, and the state of their tasklets."""

SLICE = 0.05
"""Seconds for processors without inputs in an epoch."""
_FIRST_PAUSE = 0.0002
_LONGEST_PAUSE = 0.005
HERE = "here"
"""The address of the one member."""


class GraphExecution:
    """The processors of a graph in this process. They are created at once, and must be closed.

    Args:
        graph: the graph; its suppliers are called in this process.
        parallelism: the number of processors of each vertex, by its name.
        here: the number of the processors that run in this process, one of each vertex; None: all of them.
        guarantee: the guarantee that processors see.
        senders: the number of tasks or processors that send by each inlet, in order; one by default.
        check: called in every turn; raises an exception to end the run; None: no check.
        overflow: returns the storage for groups of a processor that do not fit into memory; None: there is none.

    Attributes:
        saved: the state that was saved last.

    Raises:
        Exception: the error of a supplier, or of `init` of a processor.
    """

    def __init__(
        self,
        graph: VertexGraph,
        parallelism: Mapping[str, int],
        here: int | None = None,
        guarantee: str = "none",
        senders: Sequence[int] = (),
        check: Callable[[], object] | None = None,
        overflow: Callable[[], Overflow] | None = None,
    ) -> None:
        self._check = check
        self._overflow = overflow
        self._graph = graph
        self._parallelism = parallelism
        self._here = here
        self._guarantee = guarantee
        self._senders = dict(zip(map(id, graph.inlets), senders, strict=False))
        self._suppliers: list[tuple[str, ProcessorSupplier]] = []
        self._inflows: dict[tuple[int, int], EdgeInflow] = {}
        self._given: deque[GraphBlock] = deque()
        self._tasklets: list[ProcessorTasklet] = []
        self._at_work = ExitStack()
        self.saved: Saved = {}
        try:
            self._make()
        except BaseException as error:
            self.close(error)
            raise

    # ------------------------------------------------------------------------------------------------------- making

    def _make(self) -> None:
        for edge in self._graph.edges:
            if edge.destination in self._graph.names:
                self._make_inflows(edge)
        for vertex in self._graph.vertices:
            self._tasklets += self._made(vertex)
        for tasklet in self._tasklets:
            tasklet.start()

    def _numbers(self, vertex: str) -> Sequence[int]:
        return range(self._parallelism[vertex]) if self._here is None else (self._here,)

    def _make_inflows(self, edge: GraphEdge) -> None:
        is_inner = edge.source in self._graph.names
        senders = len(self._numbers(edge.source)) if is_inner else self._senders.get(id(edge), 1)
        # An edge that waits for another edge must not block its sender, on which the other edge may depend.
        waits = any(other.priority < edge.priority for other in self._graph.into(edge.destination))
        for number in self._numbers(edge.destination):
            self._inflows[id(edge), number] = inflow(edge, senders, is_bounded=not waits)

    def _made(self, vertex: GraphVertex) -> list[ProcessorTasklet]:
        numbers = self._numbers(vertex.name)
        with naming(vertex.step):
            supplier = supplier_at(HERE, vertex.supplier)
            self._suppliers.append((vertex.name, supplier))
            count = self._parallelism[vertex.name]
            shared_suppliers.take(supplier, SupplierContext(vertex.name, count, self._guarantee))
            if self._here is None:
                made = checked_count(supplier.get(count), count)
            else:
                made = [supplier.get_one(self._here, count)]
        return [self._tasklet(vertex, number, each) for number, each in zip(numbers, made, strict=True)]

    def _tasklet(self, vertex: GraphVertex, number: int, processor: Processor) -> ProcessorTasklet:
        logger = logging.getLogger(f"dstream.core.{vertex.name}.{number}")
        count = self._parallelism[vertex.name]
        context = ProcessorContext(vertex.name, number, count, self._guarantee, logger, self._overflow)
        inflows = [self._inflows[id(edge), number] for edge in self._graph.into(vertex.name)]
        outbox = EdgeOutbox([self._way(edge, number) for edge in self._graph.out_of(vertex.name)])
        return ProcessorTasklet(processor, context, inflows, outbox, vertex.step)

    def _way(self, edge: GraphEdge, number: int) -> OutboundEdge:
        """Return the outbound edge for the items of one processor."""
        if edge.destination not in self._graph.names:
            return Giving(self._graph.outlets.index(edge), number, self._given)
        if self._here is not None:
            return Sending(None, [self._inflows[id(edge), number]], 0)
        targets = self._parallelism[edge.destination]
        router = router_of(edge, number, self._parallelism[edge.source], targets)
        return Sending(router, [self._inflows[id(edge), target] for target in range(targets)], number)

    def _doors(self) -> list[Door]:
        """Return the receivers of the inlets, in their order."""
        steps = {each.name: each.step for each in self._graph.vertices}
        return [
            Door(
                edge,
                self._parallelism[edge.destination],
                {n: self._inflows[id(edge), n] for n in self._numbers(edge.destination)},
                self._senders.get(id(edge), 1),
                steps[edge.destination],
            )
            for edge in self._graph.inlets
        ]

    # --------------------------------------------------------------------------------------------- between epochs

    @property
    def has_ended(self) -> bool:
        """Return whether all processors have completed."""
        return all(each.has_ended for each in self._tasklets)

    @property
    def has_sources(self) -> bool:
        """Return whether a processor without inbound edges has not ended."""
        return any(each.is_source and not each.has_ended for each in self._tasklets)

    @property
    def has_own_work(self) -> bool:
        """Return whether a processor has something to do without items."""
        return any(each.has_own_work for each in self._tasklets)

    @property
    def unsaved(self) -> set[str]:
        """Return the vertices of users' processors that do not save: their state is lost if the job moves."""
        return {
            each.context.vertex
            for each in self._tasklets
            if type(each.processor).save_to_snapshot is Processor.save_to_snapshot
            and not is_our_name(type(each.processor).__module__)
        }

    @property
    def hears_time(self) -> bool:
        """Return whether a processor reacts when time advances."""
        return any(each.hears_time for each in self._tasklets)

    # ------------------------------------------------------------------------------------------------------ running

    def restore(self, saved: Saved) -> None:
        """Restore the processors from their saved state; at most once, before anything runs.

        Raises:
            Exception: the error of a processor.
        """
        for tasklet in self._tasklets:
            place = tasklet.context.vertex, tasklet.context.index
            if place in saved:
                entries, state = saved[place]
                tasklet.restore(list(entries.items()), state)

    def run(self, arrivals: Iterator[GraphArrival]) -> Iterator[GraphBlock]:
        """Run until all processors have completed, and yield the output.

        Args:
            arrivals: in any order of inlets, which end with them; items that wait for an edge of an earlier priority
                are buffered, past a bound on disk.

        Raises:
            Exception: the error of a processor, with its vertex and item.
        """
        doors = self._doors()
        return self._turns(Feed(arrivals, doors, range(len(doors))), lambda: True, self._have_all_ended)

    def epoch(self, arrivals: Iterator[GraphArrival], ended: Collection[int] = ()) -> Iterator[GraphBlock]:
        """Run until all arrivals have been processed, and yield the output; sources get a slice of time.

        Args:
            arrivals: as for `run`.
            ended: the numbers of the inlets that end with these arrivals. A processor completes if all its input has
                ended; the others remain open.

        Raises:
            UnsupportedError: items wait for an edge that did not end.
            Exception: the error of a processor, with its vertex and item.
        """
        feed = Feed(arrivals, self._doors(), ended)
        yield from self._turns(feed, _Slice().goes_on, self._are_all_quiet)
        for each in self._tasklets:
            each.check_that_nothing_waits()

    def save(self) -> Iterator[GraphBlock]:
        """Save the state of each processor in `saved`, between two runs, and yield the items that they emit then.

        Items that a processor emits while it saves are processed by the downstream processors before they save.
        """
        self.saved = {}
        try:
            for tasklet in self._tasklets:
                while not tasklet.save():
                    yield from self._settle()
                yield from self._settle()
                self.saved[tasklet.context.vertex, tasklet.context.index] = tasklet.saved, tasklet.state()
        finally:
            for tasklet in self._tasklets:
                tasklet.has_saved = False

    def _settle(self) -> Iterator[GraphBlock]:
        """Process everything in the queues; sources are not read."""
        return self._turns(Feed(iter(()), [], ()), lambda: False, self._are_all_quiet)

    def _have_all_ended(self, sources_go_on: bool) -> bool:
        return all(each.has_ended and each.is_quiet for each in self._tasklets)

    def _are_all_quiet(self, sources_go_on: bool) -> bool:
        """Return whether no items are pending; checked in the order of the graph, so that no moving item is missed."""
        is_sourced = sources_go_on and any(each.is_source and not each.has_ended for each in self._tasklets)
        return not is_sourced and all(each.is_quiet for each in self._tasklets)

    def _turns(
        self, feed: Feed, sources_go_on: Callable[[], bool], is_over: Callable[[bool], bool]
    ) -> Iterator[GraphBlock]:
        """Run tasklets in turns until there is nothing to do."""
        given, pause = self._given, 0.0
        with ExitStack() as stack:
            self._at_work = stack
            threads = self._threads(stack, sources_go_on)
            in_turn = [each for each in self._tasklets if each.processor.is_cooperative]
            while True:
                if self._check is not None:
                    self._check()
                is_progress, goes_on = feed.push(), sources_go_on()
                for each in in_turn:
                    is_called = goes_on or not each.is_source
                    is_progress = (each.call() if is_called else each.stand_still()) or is_progress
                in_turn = [each for each in in_turn if not each.has_ended or not each.is_quiet]
                for thread in threads:
                    is_progress = thread.look() or is_progress
                while given:
                    yield given.popleft()
                if not is_progress and feed.is_done and is_over(goes_on) and all(each.is_quiet for each in threads):
                    break
                pause = 0.0 if is_progress else min(_LONGEST_PAUSE, pause + _FIRST_PAUSE)
                if pause and (threads or pause > _FIRST_PAUSE):
                    time.sleep(pause)
        while given:
            yield given.popleft()

    def _threads(self, stack: ExitStack, sources_go_on: Callable[[], bool]) -> list[OwnThread]:
        """Start the threads of processors that are not cooperative; they stop with the stack."""
        threads = []
        for each in self._tasklets:
            if not each.processor.is_cooperative:
                threads.append(OwnThread(each, sources_go_on))
                stack.callback(threads[-1].stop)
        return threads

    def counts(self) -> dict[str, tuple[list[int], list[int]]]:
        """Return the numbers of items received by each inbound edge and sent by each outbound edge, for each vertex."""
        found: dict[str, tuple[list[int], list[int]]] = {}
        for each in self._tasklets:
            known = found.get(each.context.vertex)
            received, sent = each.received, each.sent
            if known is not None:
                received = [a + b for a, b in zip(known[0], received, strict=True)]
                sent = [a + b for a, b in zip(known[1], sent, strict=True)]
            found[each.context.vertex] = list(received), list(sent)
        return found

    def close(self, error: BaseException | None = None) -> None:
        """Close processors and suppliers, whose threads have stopped by then; their errors are logged."""
        self._at_work.close()
        # Taken out first: a second call, such as that of a finalizer, closes nothing twice.
        tasklets, self._tasklets = self._tasklets, []
        for each in tasklets:
            each.close(error)
        suppliers, self._suppliers = self._suppliers, []
        for vertex, supplier in suppliers:
            try:
                shared_suppliers.give_back(supplier, error)
            except Exception:
                _log.exception("close() of the supplier of the vertex %r failed", vertex)


class _Slice:
    """The time that sources have in an epoch: it begins when the first of them is about to be called."""

    def __init__(self) -> None:
        self._ends_at = 0.0

    def goes_on(self) -> bool:
        """Return whether it is not over."""
        now = time.monotonic()
        self._ends_at = self._ends_at or now + SLICE
        return now < self._ends_at
