"""`StateOperator`: a step whose state outlives an epoch, such as a window; and `ShardState`, a part of its state.

An operator knows nothing of jobs, files or engines. An epoch goes like this, whoever runs it:

1. Where the items are, each task makes `partial(...)` of those of one input: one partial for each shard they touch.
2. Where a shard is, `apply(...)` takes all partials of the epoch at once, then lets the watermark move, and gives what
   goes on. What it returns as the delta holds the values that changed, not the items.
3. The state is `dump`ed now and then; a later process makes it again with `load` and one `patch` for each delta since.

So no function of the user's has to be deterministic: what it made of an item is kept, and not computed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from dstream.values.event_time import Timed

__all__ = [
    "Applied",
    "ClosesProcessors",
    "CountsEdges",
    "EdgeCounts",
    "Moment",
    "MovesToDisk",
    "OfFixedShards",
    "Partials",
    "ShardState",
    "StateOperator",
]


@dataclass(frozen=True, slots=True)
class Moment:
    """When an epoch runs.

    Attributes:
        epoch: its number, from 1.
        now: the one reading of the clock of this epoch, in seconds since 1970.
        old: the watermark of the step at the start of the epoch, in milliseconds; what comes behind it is late.
        new: the watermark at its end, not below `old`; before all items are read it is not known, and is `old`.
        is_resumed: this is the first epoch of a driver, after a pause of unknown length.
        clock_deadline: the least one that a shard of the step had before the epoch: all shards judge by it alike.
        shard: the number of the shard that is told.
        ended: the numbers of the inputs behind which nothing comes after this epoch; told to operators of fixed shards.
    """

    epoch: int
    now: float
    old: int
    new: int
    is_resumed: bool = False
    clock_deadline: float | None = None
    shard: int = 0
    ended: frozenset[int] = frozenset()


class Partials(NamedTuple):
    """What one task has for a step.

    Attributes:
        of_shards: by the number of the shard, in the order of items inside each; plain data that pickle takes.
        items: how many items the task saw.
        late: how many of them were dropped as late, whether or not they travel on to where late items go.
    """

    of_shards: Mapping[int, Any]
    items: int
    late: int


class Applied(NamedTuple):
    """What one shard gives in an epoch.

    Attributes:
        outputs: pairs `(timestamp, item)`, or `(timestamp, Late(item))` for items that the user wants to see elsewhere;
            consumed once, before the delta is asked for.
        late: how many items were found to be late here, which `Partials` did not count.
    """

    outputs: Iterable[Timed]
    late: int = 0


class ShardState(Protocol):
    """The state of the keys of one shard, in the memory of one process."""

    def apply(self, partials: Sequence[tuple[int, Any]], moment: Moment) -> Applied:
        """Take what came for this shard, let the watermark move from `old` to `new`, and give what goes on.

        Args:
            partials: (number of the input, partial), in the order of (input, partition of the source, offset). Empty if
                only time passes.
            moment: `new` is known now.
        """
        ...

    def delta(self) -> Any | None:
        """Return what changed since the state was made or this was last called, for `patch`; None: nothing."""
        ...

    def dump(self) -> Any:
        """Return the whole state as a value that pickle takes; it shares nothing with the state that would change."""
        ...

    def load(self, dumped: Any) -> None:
        """Become the state that was dumped; called on an empty one."""
        ...

    def patch(self, delta: Any) -> None:
        """Become the state after an epoch, of which this is the delta."""
        ...

    def deadline(self) -> int | None:
        """Return the least watermark at which something happens here without an item; None: nothing waits for it."""
        ...

    def clock_deadline(self) -> float | None:
        """Return the reading of the clock at which something happens here without an item, as for early results."""
        ...

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Give the keys with their states, for whoever looks into a running job."""
        ...

    def __len__(self) -> int:
        """Return how many keys have a state."""
        ...


@runtime_checkable
class MovesToDisk(Protocol):
    """A `ShardState` that can do with less memory. Others stay in it, however large they are."""

    def to_disk(self) -> bool:
        """Move what is held to a file that goes with this process, and say whether that was done now."""
        ...


@runtime_checkable
class OfFixedShards(Protocol):
    """An operator that says itself how many shards its state has, as one whose shards are processors.

    Attributes:
        shards: how many.
        ticks: each of them has something to do in the first epoch, whatever comes.
    """

    @property
    def shards(self) -> int: ...

    @property
    def ticks(self) -> bool: ...


EdgeCounts = Mapping[str, tuple[Sequence[int], Sequence[int]]]
"""How many items came by each inbound edge of a vertex, and went by each outbound one, by the name of the vertex."""


@runtime_checkable
class CountsEdges(Protocol):
    """A `ShardState` of processors, between which items pass edges."""

    def edge_counts(self) -> EdgeCounts:
        """Return what passed in the last `apply`, once its outputs were consumed."""
        ...


@runtime_checkable
class ClosesProcessors(Protocol):
    """A `ShardState` of processors, which have to know why they are used no more."""

    def close_processors(self, error: BaseException | None) -> None:
        """Close the processors that are in this process, if there are any.

        Args:
            error: why the job fails; None if it does not, or goes on elsewhere.
        """
        ...


class StateOperator(Protocol):
    """A step over epochs, as a value that travels pickled.

    Attributes:
        kind: what it is, such as `"window"`; state is not given to an operator of another kind.
        signature: plain data of which state depends, such as the size of a window: state of another one is refused.
        inputs: how many inputs it has.
    """

    @property
    def kind(self) -> str: ...

    @property
    def signature(self) -> tuple[Any, ...]: ...

    @property
    def inputs(self) -> int: ...

    def partial(self, number: int, items: Iterator[Timed], moment: Moment, shards: int) -> Partials:
        """Reduce items of one input where they are, in order.

        The shard of a key is that of `dstream.keys.shards.shard_numbers`; without keys, 0. A failure finds
        its item by the name of a local variable: a loop over items that calls the user's functions names it `item`.

        Args:
            number: of the input, from 0.
            items: of one task; timestamps may be None for operators that need none.
            moment: only `epoch`, `now` and `old` are known here.
            shards: how many there are.

        Raises:
            Exception: what a function of the user's raised.
        """
        ...

    def new(self) -> ShardState:
        """Return the state of a shard that has seen nothing."""
        ...
