"""Tools for tests of pipelines, collectors and functions.

`same_everywhere` runs a pipeline on both engines with its items divided in many ways, `on_both_engines` does that
to a test function, `check_collector` and `check_operation` try the laws of a collector and of an aggregate
operation, `verify_processor` drives a processor of the Core API wherever it is saved and restored; for one driven
by hand there are `TestInbox`, `TestOutbox` and `TestProcessorContext`. `Parts` is a source with exact partitions,
`items` one of the items that you write, and `epochs` cuts the epochs of a pipeline without an end by hand. `watch`
remembers the calls of a function, and the assertions show what differs: those with a stream or a call at once, the
others as sinks, which end a stream or a pipeline and let the run fail.

It needs no Spark until a test runs on it. With pytest, the fixtures `both_engines` and
`same_everywhere` are there without any set-up.
"""

from __future__ import annotations

from dstream.sources import items
from dstream.testing.assertions import (
    assert_any_order,
    assert_collected,
    assert_collected_eventually,
    assert_contains,
    assert_fails,
    assert_items,
    assert_items_in_any_order,
    assert_ordered,
)
from dstream.testing.engines import on_both_engines
from dstream.testing.equivalence import same_everywhere
from dstream.testing.functions import watch
from dstream.testing.laws import check_collector, check_operation
from dstream.testing.partitions import Parts
from dstream.testing.processors import TestInbox, TestOutbox, TestProcessorContext
from dstream.testing.unbounded import Epochs, epochs
from dstream.testing.verification import VerifiedProcessor, same_items_in_any_order, verify_processor

__all__ = [
    "Epochs",
    "Parts",
    "TestInbox",
    "TestOutbox",
    "TestProcessorContext",
    "VerifiedProcessor",
    "assert_any_order",
    "assert_collected",
    "assert_collected_eventually",
    "assert_contains",
    "assert_fails",
    "assert_items",
    "assert_items_in_any_order",
    "assert_ordered",
    "check_collector",
    "check_operation",
    "epochs",
    "items",
    "on_both_engines",
    "same_everywhere",
    "same_items_in_any_order",
    "verify_processor",
    "watch",
]


def __dir__() -> list[str]:
    return sorted(__all__)
