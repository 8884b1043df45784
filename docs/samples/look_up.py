"""Read the map `counts` that wordcount.py wrote, in another process: the top ten, and single words.

python docs/samples/look_up.py
python docs/samples/look_up.py whale sea
"""

from __future__ import annotations

import sys
import time

import dstream as ds

USUAL = ["the", "self", "stream", "whale"]


def main(words: list[str]) -> None:
    """Print the ten most frequent words, and how often each of `words` was counted."""
    with ds.connect(engine="local") as ctx:
        counts = ctx.get_map("counts", key_type=str, value_type=int)
        print(f"a second process opens the map {counts.name!r}: {len(counts):,} words")
        for word, count in counts.stream().sorted(key=lambda entry: (-entry.value, entry.key)).limit(10):
            print(f"{count:>9,}  {word}")
        print()
        for word in words or USUAL:
            first, again = microseconds(counts, word), microseconds(counts, word)
            print(f"{counts.get(word, 0):>9,}  {word}  (read in {first:,.0f} microseconds, again in {again:,.0f})")


def microseconds(counts: ds.IStreamMap[str, int], word: str) -> float:
    """Return how long one read takes."""
    started = time.perf_counter()
    counts.get(word)
    return (time.perf_counter() - started) * 1e6


if __name__ == "__main__":
    main(sys.argv[1:])
