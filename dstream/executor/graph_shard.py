"""`GraphShard`: the processors of one number of a part of a graph, from one epoch to the next."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from typing import Any

from dstream.errors import IllegalStateError
from dstream.executor.arrivals_of_graphs import GraphArrival
from dstream.executor.graph_run import GraphRun, Place, Saved
from dstream.executor.processor_tasklet import TaskletState
from dstream.pickling import dumps
from dstream.plan.vertex_graph import GraphEdge, VertexGraph
from dstream.spi.processor import Watermark
from dstream.spi.state_operator import Applied, EdgeCounts, Moment
from dstream.values.event_time import END_OF_TIME, NO_WATERMARK, Timed

__all__ = ["BlocksOfShard", "GraphShard"]

BlocksOfShard = list[tuple[int, list[Any]]]
"""What one task has for a shard: blocks with the numbers of their senders."""

Entry = tuple[Place, Any]
"""A processor, and a key under which it saved something."""

_TICK = 0.2
"""Seconds after which processors that do something without items are called again."""


class GraphShard:
    """The state of processors, and as long as this process has them, the processors themselves.

    At the end of each epoch they save, and what differs from the last time is the delta.

    Args:
        graph: their part of the graph.
        parallelism: how many processors each vertex has.
        senders: how many send by each inlet.
        guarantee: what they are told.
    """

    def __init__(self, graph: VertexGraph, parallelism: int, senders: Sequence[int], guarantee: str) -> None:
        self._graph = graph
        self._parallelism = parallelism
        self._senders = senders
        self._guarantee = guarantee
        self._deadline: int | None = None
        self._clock_deadline: float | None = None
        self._counted: EdgeCounts = {}
        self._passed: EdgeCounts = {}
        self._run: GraphRun | None = None
        self._values: dict[Entry, Any] = {}
        self._states: dict[Place, tuple[Any, ...]] = {}
        self._digests: dict[Entry, bytes] = {}
        self._changed: set[Entry] = set()
        self._removed: set[Entry] = set()
        self._has_moved = False

    def apply(self, partials: Sequence[tuple[int, BlocksOfShard]], moment: Moment) -> Applied:
        """Let the processors take what came, and save; they run while the outputs are consumed.

        Raises:
            IllegalStateError: something came, and the processors have completed.
        """
        if self._states and all(TaskletState(*each).has_ended for each in self._states.values()):
            self._refuse(partials)
            self._passed = {}
            return Applied(())
        return Applied(self._outputs(partials, moment))

    def _refuse(self, partials: Sequence[tuple[int, BlocksOfShard]]) -> None:
        if any(items for _, blocks in partials for _, items in blocks):
            raise IllegalStateError(
                f"an item came to the vertex {self._graph.vertices[0].name!r}, whose processors have completed, since "
                "all that they read had ended: give the vertex, or its stage, another name to begin anew"
            )

    def _outputs(self, partials: Sequence[tuple[int, BlocksOfShard]], moment: Moment) -> Iterator[Timed]:
        run = self._opened(moment.shard)
        arrivals = chain(_arrivals(partials, moment.shard), self._of_time(moment))
        try:
            for block in chain(run.epoch(arrivals, self._ended(moment)), run.save()):
                yield None, block
        except GeneratorExit:  # What reads the outputs has failed, and who knows with what calls `close_processors`.
            raise
        except BaseException as error:
            run.close(error)
            raise
        self._take(run.saved)
        counts = run.counts()
        self._passed, self._counted = _difference(counts, self._counted), counts
        self._clock_deadline = None if not run.has_own_work else 0.0 if run.has_sources else moment.now + _TICK
        is_over = moment.new == END_OF_TIME or not (run.hears_time or self._hands_time_on)
        self._deadline = None if is_over else moment.new + 1
        if run.has_ended:
            self._clock_deadline = self._deadline = None
            run.close()

    @property
    def _hands_time_on(self) -> bool:
        return any(each.carries_blocks for each in self._graph.outlets)

    def _ended(self, moment: Moment) -> list[int]:
        """Return the inlets that have ended; by those between parts, processors say it themselves."""
        return [number for number, each in enumerate(self._graph.inlets) if self._is_told(number, each, moment)]

    def _is_told(self, number: int, edge: GraphEdge, moment: Moment) -> bool:
        return number in moment.ended and not edge.carries_blocks

    def _of_time(self, moment: Moment) -> Iterator[GraphArrival]:
        """Give the watermark of the step, behind the items, by the inlets by which no processor sends its own."""
        if not NO_WATERMARK < moment.new < END_OF_TIME:
            return
        for number, each in enumerate(self._graph.inlets):
            if not each.carries_blocks:
                yield GraphArrival(number, 0, moment.shard, [Watermark(moment.new)])

    def _opened(self, number: int) -> GraphRun:
        """Return the processors, made and restored if they are not there."""
        if self._run is None:
            parallelism = {each.name: self._parallelism for each in self._graph.vertices}
            self._run = GraphRun(self._graph, parallelism, number, self._guarantee, self._senders)
            weakref.finalize(self, self._run.close)
            self._run.restore(self._saved())
            self._counted = {}
        return self._run

    def _saved(self) -> Saved:
        saved: Saved = {place: ({}, TaskletState(*state)) for place, state in self._states.items()}
        for (place, key), value in self._values.items():
            saved[place][0][key] = value
        return saved

    def _take(self, saved: Saved) -> None:
        """Find out what differs from what was saved before."""
        values = {(place, key): value for place, (entries, _) in saved.items() for key, value in entries.items()}
        digests = {entry: hashlib.blake2b(dumps(value), digest_size=16).digest() for entry, value in values.items()}
        states = {place: tuple(state) for place, (_, state) in saved.items()}
        self._changed |= {entry for entry, digest in digests.items() if self._digests.get(entry) != digest}
        self._removed = (self._removed | (self._values.keys() - digests.keys())) - digests.keys()
        self._has_moved = self._has_moved or states != self._states
        self._values, self._digests, self._states = values, digests, states

    def delta(self) -> Any | None:
        """Return (states of tasklets, changed values by entry, entries that are gone)."""
        if not (self._changed or self._removed or self._has_moved):
            return None
        changed = {entry: self._values[entry] for entry in self._changed if entry in self._values}
        delta = self._states, changed, sorted(self._removed, key=repr)
        self._changed, self._removed, self._has_moved = set(), set(), False
        return delta

    def dump(self) -> Any:
        """Return (states of tasklets, values by entry)."""
        return self._states, self._values

    def load(self, dumped: Any) -> None:
        """Become the state that was dumped."""
        self._states, self._values = dict(dumped[0]), dict(dumped[1])
        self._digests = {}

    def patch(self, delta: Any) -> None:
        """Become the state after an epoch, of which this is the delta; processors that are here did not see it."""
        self.close_processors(None)
        states, changed, removed = delta
        self._states = dict(states)
        self._values.update(changed)
        for entry in removed:
            self._values.pop(entry, None)
        for entry in (*changed, *removed):  # What it was before says nothing of what stands in the files now.
            self._digests.pop(entry, None)

    def close_processors(self, error: BaseException | None) -> None:
        """Close the processors that are in this process; they would be made again of what they saved."""
        run, self._run = self._run, None
        if run is not None:
            run.close(error)

    def edge_counts(self) -> EdgeCounts:
        """Return what passed the edges of the processors in the last epoch."""
        return self._passed

    def deadline(self) -> int | None:
        """Return the next watermark, if a processor does something when it hears of it."""
        return self._deadline

    def clock_deadline(self) -> float | None:
        """Return when the processors have something to do though nothing comes: at once if there is a source."""
        return self._clock_deadline

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Give ((vertex, key), value) of all that was saved."""
        return (((place[0], key), value) for (place, key), value in self._values.items())

    def __len__(self) -> int:
        return len(self._values)


def _difference(counts: EdgeCounts, before: EdgeCounts) -> EdgeCounts:
    """Return by how much counts differ from those before, of which there may be none."""

    def more(vertex: str, way: int) -> list[int]:
        known = before[vertex][way] if vertex in before else ()
        return [now - then for now, then in zip_longest(counts[vertex][way], known, fillvalue=0)]

    return {vertex: (more(vertex, 0), more(vertex, 1)) for vertex in counts}


def _arrivals(partials: Sequence[tuple[int, BlocksOfShard]], number: int) -> Iterator[GraphArrival]:
    return (GraphArrival(inlet, sender, number, items) for inlet, blocks in partials for sender, items in blocks)
