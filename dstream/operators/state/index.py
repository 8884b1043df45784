"""`ShardIndex`: the parts of files that shards consist of, and the rules of their compaction.

A change is a new part. Sixteen parts of one size are merged, like the digits of a counter with the base 16 are carried:
each change is copied once for each power of 16, and a shard has at most some dozens of parts. Merging reads no
state. A snapshot is written when the changes outweigh the last snapshot, or are thousands: a lower limit would rewrite
millions of idle keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from dstream.errors import IllegalStateError
from dstream.keys.hashing import SHARDING_VERSION
from dstream.spi.epochs import OfFixedShards, ShardChange, StateOperator

__all__ = ["NO_PARTS", "Part", "Shard", "ShardIndex", "is_outweighed", "parts_to_merge"]


class Part(NamedTuple):
    """A piece of a file with a snapshot of a shard, or with changes of it.

    Attributes:
        file: its name; each file has at most one part of a shard, so the name identifies the state after this part.
        offset: the offset of the part in the file, in bytes.
        length: the length of the part in bytes.
        changes: the number of epochs whose changes it contains; 1 for a snapshot.
    """

    file: str
    offset: int
    length: int
    changes: int


class Shard(NamedTuple):
    """The index entry of a shard.

    Attributes:
        parts: a snapshot, then changes, in their order; none if no item ever reached it.
        keys: how many keys have a state in it.
        deadline: when the watermark next does something in it.
        clock_deadline: when the clock does.
    """

    parts: tuple[Part, ...] = ()
    keys: int = 0
    deadline: int | None = None
    clock_deadline: float | None = None

    @property
    def token(self) -> str:
        """Return the name of this state of the shard: no other state ends with a part of that file."""
        return self.parts[-1].file if self.parts else ""

    def is_due(self, watermark: int, now: float) -> bool:
        """Return whether time alone does something in it."""
        by_time = self.deadline is not None and self.deadline <= watermark
        return by_time or (self.clock_deadline is not None and self.clock_deadline <= now)

    def changed(self, change: ShardChange) -> Shard:
        """Return the entry after an epoch."""
        return Shard(self._parts_after(change), change.keys, change.deadline, change.clock_deadline)

    def _parts_after(self, change: ShardChange) -> tuple[Part, ...]:
        if not change.length:
            return self.parts
        if change.is_snapshot:
            return (Part(change.file, change.offset, change.length, 1),)
        kept = len(self.parts) - change.merges
        # A change needs a snapshot before it, which it does not replace.
        if kept < 1:
            raise IllegalStateError(f"shard {change.shard}: a change has come that stands on a state that is not there")
        changes = 1 + sum(part.changes for part in self.parts[kept:])
        return (*self.parts[:kept], Part(change.file, change.offset, change.length, changes))


NO_PARTS = Shard()


@dataclass(frozen=True, slots=True)
class ShardIndex:
    """Immutable index of the state of a step: each committed epoch creates a new index.

    Attributes:
        stage: the name of the step.
        kind: the kind of its operator.
        signature: the signature of its operator.
        shards: the shards by number.
        sharding: the version of the function from keys to shards with which they were written.
    """

    stage: str
    kind: str
    signature: tuple[Any, ...]
    shards: tuple[Shard, ...]
    sharding: int = SHARDING_VERSION

    @staticmethod
    def new(stage: str, operator: StateOperator, shards: int) -> ShardIndex:
        """Return the index of a new step, with `shards` shards unless its operator has a number of its own."""
        first = NO_PARTS
        if isinstance(operator, OfFixedShards):
            # 0.0 has passed in any epoch: processors that tick are opened in the first epoch, with or without items.
            shards, first = operator.shards, Shard(clock_deadline=0.0 if operator.ticks else None)
        return ShardIndex(stage, operator.kind, tuple(operator.signature), (first,) * shards)

    def applied(self, changes: Iterable[ShardChange]) -> ShardIndex:
        """Return the index after an epoch that was committed with these changes, of all its tasks.

        Raises:
            IllegalStateError: they do not belong to the state after the epoch before.
        """
        shards = list(self.shards)
        for change in changes:
            if not 0 <= change.shard < len(shards):
                raise IllegalStateError(f"step {self.stage!r} has {len(shards)} shards, and none with {change.shard}")
            shards[change.shard] = shards[change.shard].changed(change)
        return replace(self, shards=tuple(shards))

    def check_fits(self, operator: StateOperator) -> None:
        """Refuse an operator that made nothing of this.

        Raises:
            IllegalStateError: it is of another kind, or its state depends on something else; or this version of
                `dstream` would look for keys in other shards.
        """
        if self.sharding != SHARDING_VERSION:
            raise IllegalStateError(
                f"the state of step {self.stage!r} was written by another version of dstream: it divides keys among "
                f"shards by version {self.sharding} of that function, and this dstream by version {SHARDING_VERSION}, "
                "so keys would not be found: continue the job with the dstream that wrote it, or give the step another "
                "name to start it without state"
            )
        theirs = (operator.kind, tuple(operator.signature))
        if (self.kind, self.signature) != theirs:
            raise IllegalStateError(
                f"the state of step {self.stage!r} is that of a {_shown(self.kind, self.signature)}, and the step is "
                f"now a {_shown(*theirs)}: give the step another name to start it without state"
            )

    @property
    def keys(self) -> int:
        """Return the number of keys with a state."""
        return sum(shard.keys for shard in self.shards)

    @property
    def size_in_bytes(self) -> int:
        """Return the bytes of all parts."""
        return sum(part.length for shard in self.shards for part in shard.parts)

    @property
    def deadline(self) -> int | None:
        """Return the least watermark at which a shard is due without items; None if there is none."""
        return _least(shard.deadline for shard in self.shards)

    @property
    def clock_deadline(self) -> float | None:
        """Return the earliest time of the clock at which a shard is due without items; None if there is none."""
        return _least(shard.clock_deadline for shard in self.shards)

    def files(self) -> set[str]:
        """Return the names of the files of which it consists."""
        return {part.file for shard in self.shards for part in shard.parts}


N = TypeVar("N", int, float)


def _least(deadlines: Iterable[N | None]) -> N | None:
    return min((each for each in deadlines if each is not None), default=None)


def _shown(kind: str, signature: tuple[Any, ...]) -> str:
    return f"{kind} of {', '.join(map(repr, signature))}" if signature else kind


_BASE = 16
_SPREAD = 8
_GOLDEN = 0.6180339887498949
_MOST_CHANGES = 1000
"""Each is applied when a shard is loaded, however small; after this number, a snapshot costs little for each."""


def is_outweighed(parts: Sequence[Part], added: int, shard: int, patience: int = 1) -> bool:
    """Return whether the changes of a shard outweigh its snapshot.

    Shards grow alike, so each has its own limit, from one to two times the snapshot: not all are written in one epoch.

    Args:
        parts: the snapshot and the changes after it.
        added: the number of bytes of the new change.
        shard: its number.
        patience: a factor of the limit, for a task that has already written a snapshot in this epoch.
    """
    if not parts:
        return True
    # The fractions of multiples of the golden ratio are spread evenly between 0 and 1, for any number of shards.
    limit = (1.0 + shard * _GOLDEN % 1.0) * patience
    added += sum([part.length for part in parts]) - parts[0].length
    return added > limit * parts[0].length or sum([part.changes for part in parts]) > limit * _MOST_CHANGES


def parts_to_merge(parts: Sequence[Part], shard: int) -> int:
    """Return the number of last parts to merge with the new change; usually 0.

    Args:
        parts: the snapshot, which is not merged, and the changes after it.
        shard: its number; shards are merged in different epochs, as their snapshots are written.
    """
    taken, most = 0, _BASE
    # As digits are carried: merged parts may complete a run of the next power.
    while (run := _run(parts, len(parts) - taken, most)) >= _BASE - 1 + shard % _SPREAD:
        taken += run
        most *= _BASE
    return taken


def _run(parts: Sequence[Part], end: int, most: int) -> int:
    """Count the parts before an end that have less than `most` changes; the first part does not count."""
    start = end
    while start > 1 and parts[start - 1].changes < most:
        start -= 1
    return end - start
