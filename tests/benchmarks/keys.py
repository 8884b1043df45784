"""B13: tuples, dataclasses and words as keys of a hundred thousand items and more, beside loops of plain Python.

Last, TF-IDF as one writes it with streams: every word of every document is a pair of the document and the word.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dstream as ds
from collectors import counting, frequencies, grouping_by, to_list
from tests.benchmarks.harness import Bench, Case, Contestant

__all__ = ["cases"]

_GOAL = 2.5
_WORDS = [f"word{number}" for number in range(5000)]
_Scores = dict[tuple[int, str], float]


@dataclass(frozen=True)
class Place:
    """A key with two fields."""

    ship: str
    deck: int


def cases(bench: Bench) -> list[Case]:
    """Return each kind of key in each reduction, on the local engine and in one job of Spark, and TF-IDF."""
    count, chance = bench.size(300_000, 5000), random.Random(11)
    many = [(chance.choice(_WORDS), chance.randrange(20)) for _ in range(count)]
    few = [(chance.choice(_WORDS[:50]), chance.randrange(4)) for _ in range(count)]
    kinds: dict[str, list[Any]] = {
        "tuples, 100,000 different": many,
        "tuples, 200 different": few,
        "dataclasses, 200 different": [Place(*key) for key in few],
        "words, 5,000 different": [word for word, _ in many],
    }
    found = [case for kind, items in kinds.items() for case in _of_one_kind(bench, kind, items)]
    return [*found, _tf_idf(bench, bench.size(3000, 50), chance)]


def _of_one_kind(bench: Bench, kind: str, items: list[Any]) -> list[Case]:
    def local() -> ds.Stream[Any]:
        return bench.local.stream(items)

    def on_spark() -> tuple[Any, Any]:
        stream = bench.ctx.stream(items)
        return stream.collect(frequencies()), stream.collect(grouping_by(_itself, counting()))

    def plain_twice() -> tuple[Any, Any]:
        return Counter(items), _counted(items)

    return [
        _case(f"frequencies, {kind}", lambda: local().collect(frequencies()), lambda: Counter(items)),
        _case(
            f"grouping_by(counting()), {kind}",
            lambda: local().collect(grouping_by(_itself, counting())),
            lambda: _counted(items),
        ),
        _case(
            f"grouping_by(to_list()), {kind}",
            lambda: local().collect(grouping_by(_itself, to_list())),
            lambda: _listed(items),
        ),
        _case(f"distinct, {kind}", lambda: local().distinct().to_list(), lambda: list(dict.fromkeys(items))),
        Case(
            "B13",
            f"frequencies and grouping_by(counting()) on Spark, {kind}",
            Contestant("dstream", on_spark),
            [Contestant("plain Python", plain_twice, uses_spark=False)],
        ),
    ]


def _case(title: str, ours: Callable[[], Any], theirs: Callable[[], Any], goal: float = _GOAL) -> Case:
    return Case(
        "B13",
        title,
        Contestant("dstream, local engine", ours, uses_spark=False),
        [Contestant("plain Python", theirs, goal=goal, uses_spark=False)],
    )


def _itself(item: Any) -> Any:
    return item


def _counted(items: list[Any]) -> dict[Any, int]:
    counts: dict[Any, int] = {}
    for item in items:
        key = _itself(item)
        counts[key] = counts.get(key, 0) + 1
    return counts


def _listed(items: list[Any]) -> dict[Any, list[Any]]:
    groups: defaultdict[Any, list[Any]] = defaultdict(list)
    for item in items:
        groups[_itself(item)].append(item)
    return dict(groups)


def _tf_idf(bench: Bench, count: int, chance: random.Random) -> Case:
    documents = [(number, " ".join(chance.choices(_WORDS, k=100))) for number in range(count)]

    def ours() -> _Scores:
        pairs = bench.local.stream(documents).flat_map(_words)
        occurrences = pairs.collect(frequencies())
        holding = bench.local.stream(list(occurrences)).collect(grouping_by(_word, counting()))
        weighed = bench.local.stream(occurrences.items()).map(
            lambda entry: (entry[0], entry[1] * math.log(count / holding[entry[0][1]]))
        )
        return dict(weighed.to_list())

    def plain() -> _Scores:
        occurrences = Counter((number, word) for number, text in documents for word in text.split())
        holding = Counter(word for _, word in occurrences)
        return {key: times * math.log(count / holding[key[1]]) for key, times in occurrences.items()}

    return _case(f"TF-IDF, {count:,} documents of 100 words", ours, plain)


def _words(document: tuple[int, str]) -> list[tuple[int, str]]:
    number, text = document
    return [(number, word) for word in text.split()]


def _word(key: tuple[int, str]) -> str:
    return key[1]
