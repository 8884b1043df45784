"""The fluent API: methods that validate, make one node of the plan, and return a new stream.

`base` contains the operations that all streams share, `objects` the stream of objects, `numeric` those of numbers;
`entries`, `keyed`, `neighbours`, `pairs`, `error_handling`, `shorthands` and `ends` contain groups of their operations.
`reductions` has the collectors behind `min`, `reduce` and `sum`, `runtime` the choice of the context, `arguments` the
checks at the call.
"""

from __future__ import annotations

from dstream.stream.numeric import DoubleStream, IntStream, LongStream
from dstream.stream.objects import Stream, StreamBuilder

__all__ = ["DoubleStream", "IntStream", "LongStream", "Stream", "StreamBuilder"]
