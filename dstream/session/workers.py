"""Whether this process is a Spark worker, where no context may be opened or used."""

from __future__ import annotations

from dstream.errors import IllegalStateError
from dstream.values.spark_tasks import inside_a_worker

__all__ = ["inside_a_worker", "refuse_on_a_worker"]


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
