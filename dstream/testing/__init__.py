"""For tests of your own pipelines, collectors and functions.

`same_everywhere` runs a pipeline on both engines with its items divided in many ways, `on_both_engines`
does that to a test function, `check_collector` tries the laws of a collector. `Parts` is a source with
exact partitions, `watch` remembers the calls of a function, and the assertions show what differs.

It needs no Spark until a test runs on it. With pytest, the fixtures `both_engines` and
`same_everywhere` are there without any set-up.
"""

from dstream.testing.assertions import assert_fails, assert_items, assert_items_in_any_order
from dstream.testing.everywhere import same_everywhere
from dstream.testing.laws import check_collector
from dstream.testing.marking import on_both_engines
from dstream.testing.parts import Parts
from dstream.testing.watching import watch

__all__ = [
    "Parts",
    "assert_fails",
    "assert_items",
    "assert_items_in_any_order",
    "check_collector",
    "on_both_engines",
    "same_everywhere",
    "watch",
]


def __dir__() -> list[str]:
    return sorted(__all__)
