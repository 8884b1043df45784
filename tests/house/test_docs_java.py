"""The page for those who come from Java has every name of the JDK, and names only what is there."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import collectors
import dstream as ds
import reducers
from dstream.spi import Collector
from dstream.stream import StreamBuilder
from dstream.values import IntSummaryStatistics

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from-java.md").read_text()
CALL = re.compile(r"`(?:\w+\.)*(\w+)\(")
NAMED = sorted(
    {name for line in PAGE.splitlines() if line.startswith("| `") for name in CALL.findall(line.split("|")[2])}
)
HOMES = [
    ds,
    ds.Stream,
    ds.IntStream,
    ds.Optional,
    ds.Context,
    StreamBuilder,
    IntSummaryStatistics(),
    Collector,
    ds.gatherers,
    ds.gatherers.Gatherer,
    ds.gatherers.Downstream,
    ds.IStreamMap,
    ds.IStreamList,
    collectors,
    reducers,
]


def test_docs_java_page_has_a_table():
    """The names below are really found, so that the next test cannot pass for lack of cases."""
    assert {"map_multi", "grouping_by", "or_else_throw", "range_closed"} <= set(NAMED)


@pytest.mark.parametrize("name", sorted({*NAMED} - {"iter", "hash", "repr"}))
def test_docs_java_page_names_what_exists(name):
    """Each call in the second column of a table is a method or a collector; the three left out are built-ins."""
    assert any(hasattr(home, name) for home in HOMES)


JDK_17 = {
    "stream.BaseStream": """
        close isParallel iterator onClose parallel sequential spliterator unordered
    """,
    "stream.Stream": """
        allMatch anyMatch builder collect concat count distinct dropWhile empty filter findAny
        findFirst flatMap flatMapToDouble flatMapToInt flatMapToLong forEach forEachOrdered generate
        iterate limit map mapMulti mapMultiToDouble mapMultiToInt mapMultiToLong mapToDouble
        mapToInt mapToLong max min noneMatch of ofNullable peek reduce skip sorted takeWhile toArray
        toList
    """,
    "stream.IntStream": """
        allMatch anyMatch asDoubleStream asLongStream average boxed builder collect concat count
        distinct dropWhile empty filter findAny findFirst flatMap forEach forEachOrdered generate
        iterate iterator limit map mapMulti mapToDouble mapToLong mapToObj max min noneMatch of
        parallel peek range rangeClosed reduce sequential skip sorted spliterator sum
        summaryStatistics takeWhile toArray
    """,
    "stream.LongStream": """
        allMatch anyMatch asDoubleStream average boxed builder collect concat count distinct
        dropWhile empty filter findAny findFirst flatMap forEach forEachOrdered generate iterate
        iterator limit map mapMulti mapToDouble mapToInt mapToObj max min noneMatch of parallel peek
        range rangeClosed reduce sequential skip sorted spliterator sum summaryStatistics takeWhile
        toArray
    """,
    "stream.DoubleStream": """
        allMatch anyMatch average boxed builder collect concat count distinct dropWhile empty filter
        findAny findFirst flatMap forEach forEachOrdered generate iterate iterator limit map
        mapMulti mapToInt mapToLong mapToObj max min noneMatch of parallel peek reduce sequential
        skip sorted spliterator sum summaryStatistics takeWhile toArray
    """,
    "stream.Stream$Builder": """
        accept add build
    """,
    "stream.Collector": """
        accumulator characteristics combiner finisher of supplier
    """,
    "stream.Collectors": """
        averagingDouble averagingInt averagingLong collectingAndThen counting filtering flatMapping
        groupingBy groupingByConcurrent joining mapping maxBy minBy partitioningBy reducing
        summarizingDouble summarizingInt summarizingLong summingDouble summingInt summingLong teeing
        toCollection toConcurrentMap toList toMap toSet toUnmodifiableList toUnmodifiableMap
        toUnmodifiableSet
    """,
    "stream.StreamSupport": """
        doubleStream intStream longStream stream
    """,
    "Optional": """
        empty equals filter flatMap get hashCode ifPresent ifPresentOrElse isEmpty isPresent map of
        ofNullable or orElse orElseGet orElseThrow stream toString
    """,
    "OptionalInt": """
        empty equals getAsInt hashCode ifPresent ifPresentOrElse isEmpty isPresent of orElse
        orElseGet orElseThrow stream toString
    """,
    "OptionalLong": """
        empty equals getAsLong hashCode ifPresent ifPresentOrElse isEmpty isPresent of orElse
        orElseGet orElseThrow stream toString
    """,
    "OptionalDouble": """
        empty equals getAsDouble hashCode ifPresent ifPresentOrElse isEmpty isPresent of orElse
        orElseGet orElseThrow stream toString
    """,
    "IntSummaryStatistics": """
        accept combine getAverage getCount getMax getMin getSum toString
    """,
    "LongSummaryStatistics": """
        accept combine getAverage getCount getMax getMin getSum toString
    """,
    "DoubleSummaryStatistics": """
        accept combine getAverage getCount getMax getMin getSum toString
    """,
}
"""The public methods of `java.util` that the page must name, as `javap -public` of JDK 17 gives them."""

IN_JAVA = re.compile(r"`(?:\w+\.)*(\w+)(?:\(|`)")
JAVA_NAMES = {
    name for line in PAGE.splitlines() if line.startswith("| ") for name in IN_JAVA.findall(line.split("|")[1])
}


@pytest.mark.parametrize("cls", JDK_17)
def test_docs_java_page_has_every_name_of_the_jdk(cls):
    """Each public method of the JDK's streams stands in the first column of a table."""
    assert sorted(set(JDK_17[cls].split()) - JAVA_NAMES) == []


@pytest.fixture(scope="module")
def in_jdk():
    """Return the public members of each class, as one call of `javap` prints them."""
    if shutil.which("javap") is None:
        pytest.skip("the JDK is the judge here, and this machine has no javap")
    command = ["javap", "-public", *(f"java.util.{cls}" for cls in JDK_17)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return dict(zip(JDK_17, printed.split("Compiled from ")[1:], strict=True))


@pytest.mark.parametrize("cls", JDK_17)
def test_docs_java_names_are_those_of_the_jdk(in_jdk, cls):
    """The recorded names are those of the JDK, if one of that release or a later one is installed."""
    assert f'"{cls.rpartition(".")[2].partition("$")[0]}.java"' in in_jdk[cls]
    assert set(JDK_17[cls].split()) <= set(re.findall(r"(\w+)\(", in_jdk[cls]))
