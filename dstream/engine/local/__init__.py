"""The local engine: the readable definition of every operation, in the caller's process.

It is bounded by one process and reads one item at a time; users' unit tests run on it, and every
differential test compares Spark with it.

- `execution`: `LocalEngine`, which runs plans.
- `operations`: operations as iterators, and `LocalTask`, the only task.
- `joins`: operations on two streams.
- `processors`: graphs of processors and steps over epochs.
"""

from dstream.engine.local.execution import LocalEngine

__all__ = ["LocalEngine"]
