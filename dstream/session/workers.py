"""Whether this process is a Spark worker, where no context may be opened or used."""

from __future__ import annotations

import sys

from dstream.errors import IllegalStateError

__all__ = ["inside_a_worker", "refuse_on_a_worker"]


def inside_a_worker() -> bool:
    """Say whether this process runs a Spark task: streams made there without a context run on the spot."""
    context = getattr(sys.modules.get("pyspark.taskcontext"), "TaskContext", None)  # It may be half imported.
    return context is not None and context.get() is not None


def refuse_on_a_worker(what: str) -> None:
    """Refuse what needs the driver; a worker never starts a Java process.

    Raises:
        IllegalStateError: this process runs a Spark task.
    """
    if inside_a_worker():
        raise IllegalStateError(
            f"{what} was called on a Spark worker, by a function that runs there or by a module that it imports: "
            "connect and read in the driver only (in a function, or behind `if __name__ == '__main__':`), and give the "
            "function the plain values that it needs"
        )
