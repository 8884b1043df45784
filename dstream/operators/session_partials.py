"""Sessions where the items are: accumulated by key as far as the items of one task tell, then cut into shards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from dstream.operators.arrivals import Arrivals, Batch, LateItems, by_shard
from dstream.operators.open_sessions import EMPTY, Session, joined
from dstream.spi import Collector
from dstream.spi.state_operator import Partials

__all__ = ["SessionPartial", "Sessions", "partial_sessions"]

Sessions: TypeAlias = dict[Any, list[Session]]
"""Sessions by canonical key."""

SessionPartial: TypeAlias = tuple[Sessions, LateItems]
"""What comes to one shard: sessions, and late items that travel on."""


def partial_sessions(
    arrivals: Arrivals, timeout: int, collector: Collector[Any, Any, Any], shards: int, is_keyed: bool
) -> Partials:
    """Accumulate items in sessions that end `timeout` milliseconds after their last item."""
    of_shards = by_shard(_accumulated(arrivals, timeout, collector), shards, is_keyed)
    late = arrivals.late_by_shard(shards)
    found = {shard: (of_shards.get(shard, {}), late.get(shard, [])) for shard in {**of_shards, **late}}
    return Partials(found, arrivals.items, arrivals.late)


def _accumulated(batches: Iterable[Batch], timeout: int, collector: Collector[Any, Any, Any]) -> Sessions:
    create, accumulate, combined = collector.create, collector.accumulates[0], collector.combined
    of_key: Sessions = {}
    for timestamps, keys, items in batches:
        # A failure finds `item` by its name.
        for timestamp, key, item in zip(timestamps, keys, items):  # noqa: B905  # Without keys, they have no end.
            sessions = of_key.get(key)
            if sessions is None:
                session = [timestamp, timestamp + timeout, create()]
                of_key[key] = [session]
            elif sessions[-1][0] <= timestamp <= sessions[-1][1]:  # The usual case, without a call.
                session = sessions[-1]
                session[1] = max(session[1], timestamp + timeout)
            else:
                session = joined(sessions, timestamp, timestamp + timeout, combined)
                if session[2] is EMPTY:
                    session[2] = create()
            following = accumulate(session[2], item)
            if following is not None:
                session[2] = following
    return of_key
