"""The samples of the Core API find what plain Python finds in the same data."""

from __future__ import annotations

import re
from collections import Counter

from tests.house.test_samples import sample, stored


def test_samples_core_word_count_counts_as_plain_python_does(output_of, tmp_path):
    """The map has what a `Counter` has; what was counted first is less than the words."""
    texts = ["The whale and the sea.", "The sea; and a ship, a ship!"]
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.txt").write_text(text)
    output = output_of("core_word_count.py", "*.txt", folder=tmp_path)

    counts = Counter(re.findall(r"\w+", " ".join(texts).lower()))
    with stored(tmp_path) as ctx:
        assert ctx.get_map("counts").copy() == counts
    words, counted, different = map(int, re.findall(r"\d+", output.splitlines()[-1]))
    assert (words, different) == (counts.total(), len(counts))
    assert different <= counted < words


def test_samples_core_primes_finds_all_of_them(output_of, tmp_path):
    """Three processors of the source leave no number out, and share none."""
    output = output_of("core_primes.py", "1000", folder=tmp_path)

    with stored(tmp_path) as ctx:
        primes = [n for n in range(2, 1001) if all(n % smaller for smaller in range(2, n))]
        assert sorted(ctx.get_list("primes")) == primes
    assert "numbers:    1,000 items out" in output


def test_samples_core_stock_exchange_sums_each_second(output_of, tmp_path):
    """A trade counts for the five windows that hold its time, also those that are half over when the trades end."""
    volumes = Counter()
    for time, ticker, shares in sample("core_stock_exchange.py")["generated"]():
        first = time // 200 * 200 + 200
        for end in range(first, first + 1000, 200):
            volumes[ticker, end] += shares
    output_of("core_stock_exchange.py", folder=tmp_path)

    with stored(tmp_path) as ctx:
        assert ctx.get_map("volumes").copy() == volumes
