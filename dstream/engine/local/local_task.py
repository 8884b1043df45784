"""`LocalTask`: what the steps of a plan ask of the one task that there is on the local engine."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

from dstream.engine.kernels.caches import Caches
from dstream.engine.kernels.guards import Recovered
from dstream.engine.kernels.item_count import ItemCount
from dstream.engine.kernels.made_services import MadeServices, closing, closing_with
from dstream.engine.kernels.watermarks import Watermarks
from dstream.engine.memory_bound import Bound
from dstream.engine.progress import Call, Facts, Progress
from dstream.engine.submitted import Cancellation
from dstream.plan.core import Called, Core
from dstream.plan.core_of_graphs import Processing
from dstream.plan.core_of_services import Served, served_steps
from dstream.plan.properties import bounded_operations, is_of_epoch
from dstream.plan.steps import Guard, Op, Step
from dstream.plan.walk import topological

__all__ = ["Kinds", "LocalTask"]

Kinds = frozenset[type[Core]]
"""Those of the operations of a plan."""

_ENDING = frozenset((Called, Processing))
"""Kinds of operations that close something when their task ends."""


class LocalTask:
    """A task in the caller's process: `peek` calls the action itself.

    Attributes:
        broadcast_limit: how many bytes the right side of a hash join may have that does not say it itself.
        caches: what is kept of `cache()` steps.
        kinds: those of the operations of the plan.
        operation: shows how far the task is; None if nobody wants to see it.
        watermarks: those that it knows.
        reads_all: also what a writer leaves is read.
    """

    partition = 0

    def __init__(
        self,
        worker_memory: int,
        broadcast_limit: int,
        progress: Progress,
        caches: Caches,
        call: Call,
        core: Core,
        kinds: Kinds,
        cancellation: Cancellation,
    ) -> None:
        operations = topological(core)
        self._recovered = Recovered(operations, progress)
        self.watermarks = Watermarks()
        self.kinds = kinds
        self.reads_all = is_of_epoch(core)
        self._ending = ExitStack()
        self._services = MadeServices()
        self._has_an_end = (
            bool(self._recovered) or not kinds.isdisjoint(_ENDING) or any(True for _ in served_steps(operations))
        )
        self.bound = Bound(worker_memory)
        self.broadcast_limit = broadcast_limit
        self.caches = caches
        self.operation = progress.begin(self._facts)
        self._call = call
        self._core = core
        self._cancellation = cancellation
        self._read = 0

    @functools.cached_property
    def bounded(self) -> dict[int, bool]:
        """Whether the items of each operation end, by its `id`."""
        return bounded_operations(self._core)

    def noting(self, guard: Guard) -> Callable[[Any], object]:
        return self._recovered.taking(guard)

    def at_end(self, close: Callable[[], object]) -> None:
        self._ending.push(closing(close))

    def at_end_with(self, close: Callable[[BaseException | None], object]) -> None:
        self._ending.push(closing_with(close))

    def service(self, served: Served, step: Step) -> Any:
        """Return what the service of a step gives: one task is all there is, so there is one for the run."""
        if not self._services:
            self.at_end(self._services.destroy)
        return self._services.get(served, step)

    def ending(self) -> ExitStack:
        """Close at the end what has to be closed, and deliver what steps with guards failed on."""
        # No generator of `contextlib`: it sets attributes of an exception, which may refuse them.
        ending = ExitStack()
        ending.enter_context(self._recovered)
        ending.enter_context(self._ending)
        return ending

    def watching(self, items: Iterator[Any]) -> Iterator[Any]:
        """Give the items and do the same at their end; most plans need no end."""
        return self._watching(items) if self._has_an_end else items

    def _watching(self, items: Iterator[Any]) -> Iterator[Any]:
        with self.ending():
            yield from items

    def peeking(self, op: Op) -> Callable[[Any], object]:
        return op.fn

    def counting(self, op: Op) -> ItemCount:
        counter = ItemCount()
        self.at_end(lambda: op.fn(counter.total()))
        return counter

    def waiting(self) -> AbstractContextManager[None]:
        """Show how far the task is, meanwhile."""
        return self.operation or nullcontext()

    def check(self) -> None:
        """Go on only if nobody has cancelled the run.

        Raises:
            CancelledError: somebody has.
        """
        self._cancellation.check()

    def counted(self, items: Iterable[Any]) -> Iterable[Any]:
        """Give items as they are read: counted if anybody wants to see the number, until the run is cancelled."""
        if self.operation is None and not self._cancellation.is_watched:
            return items
        return self._counted(items)

    def _counted(self, items: Iterable[Any]) -> Iterator[Any]:
        # `item` is the name by which a failure finds the item of a loop, and this loop does not look at it.
        for each in items:
            self._cancellation.check()
            self._read += 1
            yield each

    def _facts(self) -> Facts:
        return Facts(self._call.title(), self._read)
