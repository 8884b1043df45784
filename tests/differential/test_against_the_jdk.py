"""The JDK as the judge: the same random pipelines through `java.util.stream`, in one JVM, and through dstream.

A pipeline is a line of text, `source|steps|terminal`; `Judge.java` knows the same words.
"""

from __future__ import annotations

import itertools
import operator
import random
import shutil
import struct
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import dstream as ds
from collectors import (
    averaging_int,
    counting,
    filtering,
    flat_mapping,
    grouping_by,
    joining,
    mapping,
    max_by,
    partitioning_by,
    summarizing_int,
    summing_int,
    summing_long,
    teeing,
    to_list,
    to_map,
    to_set,
)
from dstream.values import IntSummaryStatistics

PIPELINES = 600
ON_SPARK = 15
ERRORS = {"IllegalStateError": "!IllegalStateException"}


def _rest3(n: int) -> int:
    return n % 3


def _above7(n: int) -> bool:
    return n > 7


def _multi(n: int, emit: Callable[[int], None]) -> None:
    for i in range(n % 3):
        emit(n + i)


def _last(earlier: Any, later: Any) -> Any:
    return later


def _walked(stream: Any) -> list[Any]:
    items: list[Any] = []
    stream.for_each_ordered(items.append)
    return items


def _by_rest(downstream: Any) -> Callable[[Any], Any]:
    return lambda s: s.collect(grouping_by(_rest3, downstream))


def _by_length(downstream: Any) -> Callable[[Any], Any]:
    return lambda s: s.collect(grouping_by(len, downstream))


Words = Mapping[str, Callable[[Any], Any]]

STEPS: Words = {
    "distinct": lambda s: s.distinct(),
    "sorted": lambda s: s.sorted(),
    "reversed": lambda s: s.sorted(reverse=True),
    "parallel": lambda s: s.parallel(),
    "twice": lambda s: s.flat_map(lambda item: (item, item)),
}
STEPS_WITH_NUMBER: Mapping[str, Callable[[Any, int], Any]] = {
    "limit": lambda s, n: s.limit(n),
    "skip": lambda s, n: s.skip(n),
}
NUMBER_STEPS: Words = {
    "triple": lambda s: s.map(lambda n: n * 3 + 1),
    "rest5": lambda s: s.map(lambda n: n % 5),
    "half": lambda s: s.map_to_int(lambda n: n // 2).boxed(),
    "long": lambda s: s.map_to_long(lambda n: n).map(lambda n: n - 1).map_to_obj(lambda n: n),
    "above7": lambda s: s.filter(_above7),
    "even": lambda s: s.filter(lambda n: n % 2 == 0),
    "upto": lambda s: s.flat_map(lambda n: range(n % 4) if n % 4 else None),
    "multi": lambda s: s.map_multi(_multi),
    "byrest3": lambda s: s.sorted(key=_rest3),
    "byrest3down": lambda s: s.sorted(key=_rest3, reverse=True),
    "takebelow20": lambda s: s.take_while(lambda n: n < 20),
    "dropbelow20": lambda s: s.drop_while(lambda n: n < 20),
    "text": lambda s: s.map(str),
}
WORD_STEPS: Words = {
    "double": lambda s: s.map(lambda word: word + word),
    "head": lambda s: s.map(lambda word: word[:1]),
    "letters": lambda s: s.flat_map(lambda word: word),
    "short": lambda s: s.filter(lambda word: len(word) < 3),
    "bylength": lambda s: s.sorted(key=len),
    "bylengthdown": lambda s: s.sorted(key=len, reverse=True),
    "takeshort": lambda s: s.take_while(lambda word: len(word) < 4),
    "dropshort": lambda s: s.drop_while(lambda word: len(word) < 4),
    "length": lambda s: s.map(len),
}
ENDS: Words = {
    "list": lambda s: s.to_list(),
    "count": lambda s: s.count(),
    "first": lambda s: s.find_first(),
    "collect": lambda s: s.collect(list, list.append, list.extend),
    "break": lambda s: list(itertools.islice(s, 3)),
    "ordered": _walked,
}
NUMBER_ENDS: Words = {
    "sum": lambda s: s.map_to_int(lambda n: n).sum(),
    "average": lambda s: s.map_to_int(lambda n: n).average(),
    "statistics": lambda s: s.map_to_int(lambda n: n).summary_statistics(),
    "least": lambda s: s.map_to_int(lambda n: n).min(),
    "min": lambda s: s.min(key=_rest3),
    "max": lambda s: s.max(key=_rest3),
    "any": lambda s: s.any_match(lambda n: n > 50),
    "all": lambda s: s.all_match(lambda n: n > -40),
    "none": lambda s: s.none_match(lambda n: n == 4),
    "reduce": lambda s: s.reduce(0, operator.add),
    "reduce1": lambda s: s.reduce(max),
    "group": _by_rest(to_list()),
    "groupcount": _by_rest(counting()),
    "groupsum": _by_rest(summing_int(lambda n: n)),
    "groupaverage": _by_rest(averaging_int(lambda n: n)),
    "groupmax": _by_rest(max_by(_rest3)),
    "groupfilter": _by_rest(filtering(_above7, to_list())),
    "groupflat": _by_rest(flat_mapping(lambda n: [n, 0], to_list())),
    "partition": lambda s: s.collect(partitioning_by(_above7)),
    "tomap": lambda s: s.collect(to_map(lambda n: n % 5, lambda n: n, _last)),
    "tomaponce": lambda s: s.collect(to_map(lambda n: n, lambda n: n + 1)),
    "averaging": lambda s: s.collect(averaging_int(lambda n: n)),
    "summing": lambda s: s.collect(summing_long(lambda n: n)),
    "summarizing": lambda s: s.collect(summarizing_int(lambda n: n)),
    "teeing": lambda s: s.collect(teeing(counting(), to_list(), lambda n, items: [n, items])),
    "join": lambda s: s.map(str).collect(joining(", ", "[", "]")),
}
WORD_ENDS: Words = {
    "min": lambda s: s.min(key=len),
    "max": lambda s: s.max(key=len),
    "any": lambda s: s.any_match(lambda word: word.startswith("b")),
    "all": lambda s: s.all_match(lambda word: len(word) < 6),
    "none": lambda s: s.none_match(lambda word: word == ""),
    "reduce": lambda s: s.reduce("", operator.add),
    "reduce1": lambda s: s.reduce(operator.add),
    "reduce3": lambda s: s.reduce(0, lambda n, word: n + len(word), operator.add),
    "group": _by_length(to_list()),
    "groupjoin": _by_length(joining("-")),
    "groupset": _by_length(mapping(len, to_set())),
    "groupmap": _by_length(mapping(lambda word: word + "!", to_list())),
    "partition": lambda s: s.collect(partitioning_by(lambda word: len(word) > 1)),
    "tomap": lambda s: s.collect(to_map(len, lambda word: word, operator.add)),
    "tomaponce": lambda s: s.collect(to_map(lambda word: word, len)),
    "summing": lambda s: s.collect(summing_int(len)),
    "join": lambda s: s.collect(joining(", ", "[", "]")),
}


def random_line(choose: random.Random) -> str:
    """Write a pipeline: any source, up to eight steps that fit each other, and a terminal operation."""
    source, numbers = _random_source(choose)
    steps: list[str] = []
    for _ in range(choose.randrange(9)):
        fitting = [*(NUMBER_STEPS if numbers else WORD_STEPS), *STEPS, *STEPS_WITH_NUMBER, "limit", "skip"]
        word = choose.choice(fitting)
        if word == "twice" and steps.count("twice") == 3:
            continue
        steps.append(f"{word}:{choose.choice([0, 1, 2, 5, 9])}" if word in STEPS_WITH_NUMBER else word)
        numbers = word != "text" if numbers else word == "length"
    ends = [*(NUMBER_ENDS if numbers else WORD_ENDS), *ENDS]
    return f"{source}|{' '.join(steps)}|{choose.choice(ends)}"


def _random_source(choose: random.Random) -> tuple[str, bool]:
    kind = choose.choice(["numbers", "numbers", "words", "words", "range", "iterate", "while"])
    size = choose.choice([0, 1, 3, 8, 30])
    if kind == "numbers":
        return f"numbers:{' '.join(str(choose.randint(-9, 60)) for _ in range(size))}", True
    if kind == "words":
        return (
            f"words:{' '.join(choose.choice(['-', 'a', 'b', 'ab', 'bab', 'abba', 'babab']) for _ in range(size))}",
            False,
        )
    ends = {"range": choose.randint(-5, 40), "iterate": size, "while": 0}
    return f"{kind}:{choose.randint(0, 12)}:{ends[kind]}", True


def run(line: str, context: ds.Context, partitions: int) -> Any:
    """Run a pipeline that is written as text on a context."""
    source, steps, end = line.split("|")
    stream, numbers = _source(source.split(":"), context, partitions)
    for step in steps.split():
        word, _, number = step.partition(":")
        if word in STEPS_WITH_NUMBER:
            stream = STEPS_WITH_NUMBER[word](stream, int(number))
        else:
            stream = {**STEPS, **(NUMBER_STEPS if numbers else WORD_STEPS)}[word](stream)
            numbers = word != "text" if numbers else word == "length"
    return {**ENDS, **(NUMBER_ENDS if numbers else WORD_ENDS)}[end](stream)


def _source(parts: list[str], context: ds.Context, partitions: int) -> tuple[Any, bool]:
    ds.set_default_context(context)
    match parts:
        case ["numbers", items]:
            return context.stream(list(map(int, items.split())), partitions), True
        case ["words", items]:
            return context.stream([item.strip("-") for item in items.split()], partitions), False
        case ["range", start, stop]:
            return ds.IntStream.range(int(start), int(stop)).boxed(), True
        case ["iterate", seed, size]:
            return ds.Stream.iterate(int(seed), lambda n: n * 3 % 101).limit(int(size)), True
        case ["while", seed, _]:
            return ds.Stream.iterate(int(seed), lambda n: n < 60, lambda n: n * 2 + 1), True
    raise AssertionError(parts)


def show(value: Any) -> str:
    """Write a result as `Judge.show` does."""
    match value:
        case str():
            return f"'{value}'"
        case bool() | None:
            return {None: "null", True: "true", False: "false"}[value]
        case float():
            return f"double {struct.unpack('>q', struct.pack('>d', value))[0]}"
        case list() | set():
            return f"[{', '.join(map(show, value))}]"
        case dict():
            return f"{{{', '.join(f'{show(key)}: {show(value[key])}' for key in sorted(value))}}}"
        case ds.Optional():
            return show(value.get()) if value else "empty"
        case IntSummaryStatistics():
            ends = f" {value.min} {value.max}" if value.count else ""
            return f"{value.count} {value.sum}{ends} {show(value.average)}"
    return str(value)


def answer(line: str, context: ds.Context, partitions: int) -> str:
    """Run a pipeline and write its result, or its exception, as the judge does."""
    try:
        return show(run(line, context, partitions))
    except Exception as error:
        return ERRORS.get(type(error).__name__, repr(error))


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """Random pipelines, each with what the JDK makes of it."""
    if not (shutil.which("java") and shutil.which("javac")):
        pytest.skip("the JDK is the judge here, and this machine has no java or no javac")
    classes = tmp_path_factory.mktemp("judge")
    subprocess.run(["javac", "-d", classes, Path(__file__).with_name("Judge.java")], check=True)
    choose = random.Random(17)
    lines = [random_line(choose) for _ in range(PIPELINES)]
    judge = subprocess.run(
        ["java", "-cp", classes, "Judge"], input="\n".join(lines), capture_output=True, text=True, check=True
    )
    return list(zip(lines, judge.stdout.splitlines(), strict=True))


@pytest.fixture(autouse=True)
def _default_context_is_restored() -> Any:
    yield
    ds.set_default_context(None)


def test_local_gives_what_the_jdk_gives(judged: list[tuple[str, str]], local_context: ds.Context) -> None:
    """Each of several hundred pipelines gives on the local engine what it gives in Java."""
    answers = [(line, answer(line, local_context, 2)) for line, _ in judged]

    assert answers == judged


def test_graphs_in_this_process_give_what_the_jdk_gives(
    judged: list[tuple[str, str]], moving_context: ds.Context
) -> None:
    """Each of the pipelines gives, in one to eight partitions, what it gives in Java."""
    answers = [(line, answer(line, moving_context, 1 + number % 8)) for number, (line, _) in enumerate(judged)]

    assert answers == judged


def test_spark_gives_what_the_jdk_gives(judged: list[tuple[str, str]], spark_context: ds.Context) -> None:
    """A sample of the pipelines gives on Spark, in one to eight partitions, what it gives in Java."""
    sample = random.Random(3).sample(judged, ON_SPARK)
    answers = [(line, answer(line, spark_context, 1 + number % 8)) for number, (line, _) in enumerate(sample)]

    assert answers == sample


def test_the_pipelines_use_every_word(judged: list[tuple[str, str]]) -> None:
    """No step and no terminal operation is left out by the draw."""
    used = {word.partition(":")[0] for line, _ in judged for part in line.split("|")[1:] for word in part.split()}

    assert used == {*STEPS, *STEPS_WITH_NUMBER, *NUMBER_STEPS, *WORD_STEPS, *ENDS, *NUMBER_ENDS, *WORD_ENDS}
