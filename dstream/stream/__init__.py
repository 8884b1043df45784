"""The fluent API: each method validates, makes one node of the plan, and returns a new stream.

`base` holds what all streams share, `stream` the stream of objects, `numeric` those of numbers,
`terminals` the reductions behind `min`, `reduce`, `sum`, `runtime` which context a stream runs on.
"""

from dstream.stream.builder import StreamBuilder
from dstream.stream.numeric import DoubleStream, IntStream, LongStream
from dstream.stream.stream import Stream

__all__ = ["DoubleStream", "IntStream", "LongStream", "Stream", "StreamBuilder"]
