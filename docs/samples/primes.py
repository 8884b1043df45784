"""Look for primes with streams of ints.

python docs/samples/primes.py
python docs/samples/primes.py 1000000
"""

from __future__ import annotations

import math
import os
import sys

import dstream as ds
from collectors import counting, grouping_by
from dstream import IntStream


def is_prime(n: int) -> bool:
    """Say whether no smaller number divides `n`; a plain range, since this runs on the workers."""
    return n > 1 and all(n % divisor for divisor in range(2, math.isqrt(n) + 1))


def main(up_to: int) -> None:
    """Print statistics of the primes up to `up_to`, how they end, and the first one behind them."""
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")):
        primes = IntStream.range_closed(1, up_to).filter(is_prime)

        statistics = primes.summary_statistics()
        print(f"{statistics.count:,} primes up to {up_to:,}, the greatest is {statistics.max}")
        print(f"the first ten: {primes.limit(10).to_list()}")

        endings = primes.boxed().collect(grouping_by(lambda prime: prime % 10, counting()))
        for digit, count in sorted(endings.items()):
            print(f"{count:>7,} end with {digit}")

        following = IntStream.iterate(up_to + 1, lambda n: n + 1).filter(is_prime).find_first()
        print(f"the next one is {following.get()}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
