"""What processors of the library emit, the same in all runs of `verify_processor`."""

from __future__ import annotations

from typing import Any

from dstream.testing import same_items_in_any_order, verify_processor
from dstream.testing.protocol import ProcessorRun


def emitted_in_four_runs(supplier: Any, *inputs: Any) -> list[Any]:
    """Return what a processor emits for inputs, one edge after another; the same in all runs, whatever its order."""
    first = ProcessorRun(supplier)
    for ordinal, items in enumerate(inputs):
        for item in items:
            first.process(ordinal, item)
        first.complete_edge(ordinal)
    first.complete()
    first.close()
    verified = verify_processor(supplier).inputs(inputs, priorities=range(len(inputs))).cooperative_timeout(0)
    verified.output_checker(same_items_in_any_order).expect_output(first.emitted)
    return first.emitted
