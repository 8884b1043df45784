"""What a type checker must refuse. Each line that is accepted one day fails the check, as an ignore that is not needed.

mypy reads `type: ignore[...]`, pyright reads `pyright: ignore[...]`; nothing runs this file.
"""

from __future__ import annotations

from collectors import averaging, grouping_by, joining, mapping, summing_int, to_list, to_map
from dstream import DoubleStream, IntStream, IStreamList, IStreamMap, Optional, Stream, connect
from dstream.core import AbstractProcessor, FlatMapper
from dstream.pipeline import BatchStage, KeyedStage, KeyedStreamStage, StreamStage
from dstream.plan import Limit
from dstream.testing import Parts, assert_fails, check_collector, watch
from dstream.windows import tumbling
from reducers import to_imap


def wrong_functions(words: Stream[str], numbers: IntStream) -> None:
    """A function that takes or gives something else."""
    words.map_to_int(lambda word: word)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType]
    words.map_to_double(str.upper)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    words.map(abs)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    words.map(lambda word: word + 1)  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue]
    words.map(lambda word: word.bit_length())  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    words.filter(lambda word: word.no_such_method())  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    words.flat_map(len)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    words.sorted(len)(1)  # type: ignore[operator]  # pyright: ignore[reportCallIssue]
    numbers.map(str)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    numbers.map(lambda n: n / 2)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType]


def wrong_arguments(words: Stream[str], numbers: IntStream, doubles: DoubleStream) -> None:
    """A value of another type."""
    words.limit("3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    words.parallel(2.5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    words.map()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    words.no_such_operation()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    words + numbers  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue]
    IntStream.concat(numbers, doubles)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    connect(durability="perhaps")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    connect(storage=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def wrong_collectors(words: Stream[str], numbers: Stream[int]) -> None:
    """A collector for other items."""
    words.collect(summing_int(lambda x: x))  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType]
    words.collect(averaging(str.upper))  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    numbers.collect(joining(", "))  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    numbers.collect(grouping_by(str.upper))  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    words.collect(mapping(len, summing_int(str.upper)))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    words.collect(to_map(len))  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    words.collect(len)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]


def wrong_results(words: Stream[str], ages: IStreamMap[str, int], names: IStreamList[str]) -> None:
    """A result taken for something else."""
    first: str = words.find_first()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    total: int = words.reduce(lambda a, b: a + b)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    listed: list[int] = words.to_list()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    counted: dict[str, int] = words.collect(grouping_by(len))  # type: ignore[arg-type]  # pyright: ignore[reportAssignmentType]
    empty: int = Optional.of("a").get()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    kept: IStreamMap[str, str] = words.collect(to_imap("m", str.upper, len))  # type: ignore[arg-type]  # pyright: ignore[reportAssignmentType]
    print(first, total, listed, counted, empty, kept)
    ages["Ada"] = "old"  # type: ignore[assignment]  # pyright: ignore[reportArgumentType]
    ages[3]  # type: ignore[index]  # pyright: ignore[reportArgumentType]
    names.append(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def wrong_tests(words: Stream[str]) -> None:
    """The kit is typed too."""
    Parts.cut("abc", "1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_fails(words, "ValueError")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_fails(len, ValueError)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    watch(len)(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    check_collector(to_list, ["a"])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def wrong_processors(processor: AbstractProcessor) -> None:
    """What a lambda is given has the type of its mapper."""
    lines: FlatMapper[str] = processor.flat_mapper(lambda line: [line.bit_length()])  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    lines.try_process(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def of_the_other_kind(
    batch: BatchStage[str], stream: StreamStage[str], keyed: KeyedStage[int, str], late: KeyedStreamStage[int, str]
) -> None:
    """Operations on all items of a stream without an end, and on the time of items that end, are refused."""
    stream.sorted()  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    stream.limit(3)  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    stream.zip(batch)  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    stream.aggregate(to_list())  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    stream.rebalance(len)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    late.top(3)  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    batch.window(tumbling(10))  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    batch.ingestion_timestamps()  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    batch.map_stateful(list[str], lambda seen, word: word, ttl=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    batch.hash_join(batch, on=(len, len), refresh_every=5)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    keyed.window(tumbling(10))  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    keyed.distinct(within=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    late.distinct(within="5s")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    batch.merge(stream)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    batch.join(stream, on=len)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    stream.hash_join(stream, on=(len, len))  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    mapped: BatchStage[int] = stream.map(len)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    print(mapped)


def changed_plans(plan: Limit, operation: Limit) -> None:
    """Plans are values: nodes and operations that are there do not change."""
    plan.count = 4  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    operation.count = 4  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
