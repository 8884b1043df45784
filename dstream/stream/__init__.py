"""The fluent API: methods that validate, make one node of the plan, and return a new stream.

- `base`: the operations that all streams share.
- `objects`: the stream of objects.
- `numeric`: the streams of numbers.
- `entries`: operations on entries.
- `keyed`: operations by key.
- `neighbours`: operations on neighbouring items.
- `pairs`: operations on two streams.
- `error_handling`: recovery from failed items.
- `shorthands`: short forms of common operations.
- `ends`: terminal operations.
- `reductions`: the collectors of `min`, `reduce` and `sum`.
- `summaries`: `Description` and `Histogram`.
- `services`: look-ups of maps by functions on workers.
- `processors`: nodes whose items processors emit or take.
- `runtime`: the context of a stream, its lifetime, and its writes into sinks.
"""

from __future__ import annotations

from dstream.stream.numeric import DoubleStream, IntStream, LongStream
from dstream.stream.objects import Stream, StreamBuilder

__all__ = ["DoubleStream", "IntStream", "LongStream", "Stream", "StreamBuilder"]
