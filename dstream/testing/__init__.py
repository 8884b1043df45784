"""Tools for tests of pipelines, collectors and functions.

- `equivalence`: `same_everywhere`, one pipeline on both engines with its items divided in many ways.
- `engines`: contexts for tests on both engines, and `on_both_engines`, which does that to a test function.
- `laws`: `check_collector` and `check_operation`, the laws of collectors and of aggregate operations.
- `verification`: `verify_processor`, a processor of the Core API saved and restored at any point.
- `protocol`: one processor driven by the protocol.
- `processors`: `TestInbox`, `TestOutbox` and `TestProcessorContext`, for a processor driven by hand.
- `partitions`: `Parts`, a source with exact partitions.
- `unbounded`: `epochs`, which cuts the epochs of an unbounded pipeline by hand, and `items`, its source.
- `functions`: `watch`, which remembers the calls of a function.
- `assertions`: assertions about items, at once on a stream, or as sinks that let the run fail.
- `comparison`: exact equality of values.
- `pytest_dstream`: the fixtures `both_engines` and `same_everywhere`, without any set-up.

It needs no Spark until a test runs on it.
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
