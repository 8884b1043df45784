"""Find primes with a graph whose source is a processor of its own: each one emits its share of the numbers.

python docs/samples/core_primes.py
python docs/samples/core_primes.py 1000000
"""

from __future__ import annotations

import math
import os
import sys

import dstream as ds
from dstream.core import DAG, AbstractProcessor, Edge, ProcessorContext, processors, traverse
from reducers import replacing, to_ilist


class Numbers(AbstractProcessor):
    """Emits every n-th number up to a limit, where n is how many such processors there are."""

    def __init__(self, up_to: int) -> None:
        self.up_to = up_to

    def start(self, context: ProcessorContext) -> None:
        """Settle which numbers are those of this processor: of three, the second one has 2, 5, 8 and so on."""
        self.share = traverse(range(context.index + 1, self.up_to + 1, context.total_parallelism))

    def complete(self) -> bool:
        """Emit as many as the outbox takes; called again, with the place kept, until all are out."""
        return self.emit_from_traverser(self.share)


def is_prime(n: int) -> bool:
    """Say whether no smaller number divides `n`."""
    return n > 1 and all(n % divisor for divisor in range(2, math.isqrt(n) + 1))


def prime_finder(up_to: int) -> DAG:
    """Return a graph that writes the primes up to a number into the list `primes`, in no order."""
    dag = DAG()
    numbers = dag.new_vertex("numbers", lambda: Numbers(up_to)).local_parallelism(3)
    checker = dag.new_vertex("checker", processors.filter(is_prime)).local_parallelism(3)
    sink = dag.new_vertex("sink", processors.write(replacing(to_ilist("primes"))))
    dag.edge(Edge.between(numbers, checker).isolated())
    return dag.edge(Edge.between(checker, sink))


def main(up_to: int) -> None:
    """Print how many primes there are, the first ones, and how many items each vertex gave."""
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        job = ctx.new_job(prime_finder(up_to), name="core-primes")
        job.join()
        primes = sorted(ctx.get_list("primes"))
        print(f"{len(primes):,} primes up to {up_to:,}, the greatest is {primes[-1]:,}")
        print(f"the first ten: {primes[:10]}")
        for name, metrics in job.metrics().stages.items():
            print(f"{name:>8}: {metrics.items_out:>8,} items out")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
