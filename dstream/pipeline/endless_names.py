"""What stages that end can do and those without an end cannot: refused by name, with what there is instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from dstream.errors import UnsupportedError

__all__ = ["not_of_streams"]

_WINDOW = "window(...).aggregate(op)"
_BY_KEY = "grouping_key(fn).window(...).aggregate(op), grouping_key(fn).rolling_aggregate(op)"
_STATE = "map_stateful(create, fn)"
_NEAR = "join_within(other, on=..., before=..., after=...)"
_BESIDE = "inner_hash_join(right, on=...) with a side that ends"

_INSTEAD = {
    **dict.fromkeys(("aggregate", "aggregate_by_window", "chunked", "limit", "top"), _WINDOW),
    **dict.fromkeys(("aggregate_by_key", "count_by_key", "group_by_key", "reduce_by_key", "top_by_key"), _BY_KEY),
    **dict.fromkeys(("enumerate", "pairwise", "skip", "drop_while", "take_while", "zip_with_index"), _STATE),
    **dict.fromkeys(("asof_join", "cogroup", "interleave", "join", "zip", "zip_longest"), _NEAR),
    **dict.fromkeys(("anti_join", "cross", "intersection", "semi_join", "subtract"), _BESIDE),
    "cache": "write_to(sink), and a job that reads what was written",
    "co_aggregate": "window(...).co_aggregate(*others, op=...)",
    "distinct": "grouping_key(fn).distinct(within=...)",
    "partition_by": "grouping_key(fn)",
    "sample": "filter(fn)",
    "sorted": "window(...).aggregate(sorting(key))",
    "shuffle": "rebalance()",
    "to_stream_stage": "this stage, which is one",
    "unordered": "this stage, whose items have no order",
}
"""What to do in place of a method of a stage that ends."""


def not_of_streams(cls: type[Any], name: str) -> Callable[..., NoReturn]:
    """Return what a call of a method does that stages have whose items end, and other ones have not.

    Raises:
        AttributeError: there is no such method at all.
    """
    if name not in _INSTEAD:
        from dstream.pipeline.stage_names import no_such_name  # here: only who mistakes a name needs it

        raise AttributeError(no_such_name(cls, name))

    def refuse(*args: Any, **named: Any) -> NoReturn:
        raise UnsupportedError(f"{name}() needs all items, and a {cls.__name__} has no end: use {_INSTEAD[name]}")

    return refuse
