"""When a shard is written as a whole, and when its changes are put together: the rules by which its parts stay few.

A change is a new part. Sixteen parts of one size become one, as in a counter with the base 16, so that each change is
copied once for each power of 16, and a shard has some dozens of parts at most. No state is read for that. A snapshot is
written when the changes outweigh the last one, or are thousands: a lower limit would write millions of idle keys again.
"""

from __future__ import annotations

from collections.abc import Sequence

from dstream.state.shard_index import Part

__all__ = ["is_outweighed", "parts_to_merge"]

_BASE = 16
_SPREAD = 8
_GOLDEN = 0.6180339887498949
_MOST_CHANGES = 1000
"""Each is applied when a shard is loaded, however small; after so many, a snapshot costs little for each."""


def is_outweighed(parts: Sequence[Part], added: int, shard: int, patience: int = 1) -> bool:
    """Say whether the changes of a shard outweigh its snapshot.

    Shards grow alike, so each has a limit of its own, from one to two times the snapshot: they are not written at once.

    Args:
        parts: the snapshot and what came after it.
        added: how many bytes come now.
        shard: its number.
        patience: multiplies the limit, for a task that has written a snapshot in this epoch already.
    """
    if not parts:
        return True
    limit = (1.0 + shard * _GOLDEN % 1.0) * patience
    added += sum([part.length for part in parts]) - parts[0].length
    return added > limit * parts[0].length or sum([part.changes for part in parts]) > limit * _MOST_CHANGES


def parts_to_merge(parts: Sequence[Part], shard: int) -> int:
    """Return how many of the last parts become one with the change that comes now; 0 as a rule.

    Args:
        parts: the snapshot, which is no part to merge, and what came after it.
        shard: its number; shards differ in when they are merged as they do in when they are written.
    """
    taken, most = 0, _BASE
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
