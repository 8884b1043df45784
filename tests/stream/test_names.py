"""A name that a stream does not have is answered with the one that is meant."""

from __future__ import annotations

import re

import pytest

import collectors as c
import dstream as ds
import reducers
from dstream import IntStream, Stream
from dstream.suggestions.libraries import ELSEWHERE, OF_NUMBERS
from dstream.suggestions.streams import no_such_name, plain
from tests.stream.foreign_names import FOREIGN_NAMES


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("flatMap", "flat_map"),
        ("anyMatch", "any_match"),
        ("mapp", "map"),
        ("fliter", "filter"),
        ("takeWhile", "take_while"),
    ],
)
def test_a_name_that_is_nearly_right_is_mended(name, meant):
    """Names as in Java, and typing errors."""
    with pytest.raises(AttributeError, match=f"^a Stream has no '{name}'; use {meant}$"):
        getattr(Stream.of(1), name)


@pytest.mark.parametrize(
    ("kind", "name", "instead"),
    [
        (Stream, "concat", "Stream.concat(a, b), or a + b"),
        (Stream, "empty", "Stream.empty(), or first().is_empty() to ask whether this one is"),
        (Stream, "iterate", "Stream.iterate(...)"),
        (IntStream, "concat", "IntStream.concat(a, b), or a + b"),
        (IntStream, "range", "IntStream.range(...)"),
    ],
)
def test_a_stream_has_no_factories(kind, name, instead):
    """As in Java: `a.concat(b)` would be `b` alone."""
    stream = kind.of(1)

    with pytest.raises(AttributeError) as caught:
        getattr(stream, name)
    assert str(caught.value) == f"{name}() makes a stream without this one: write {instead}"
    assert not hasattr(stream, name)


KNOWN = {*c.__all__, *ds.gatherers.__all__, *reducers.__all__, "isinstance", "iter", "len"}
MEANT = {
    "persist": "cache(), or a reducer such as to_ilist(name)",
    "combine_by_key": "aggregate_by_key(collector)",
    "reduceByKey": "reduce_by_key",
    "batched": "chunked(n), gather(window_fixed(n))",
    "tap": "peek(action)",
    "crossJoin": "cross(other)",
    "merge_asof": "asof_join(other, on, by)",
    "difference": "subtract(other)",
    "partition": "collect(partitioning_by(predicate))",
    "scan": "gather(scan(start, fn))",
    "window": "aggregate_by_window(window, collector, timestamp=fn); gather(window_sliding(n)), chunked(n)",
    "sliding": "gather(window_sliding(n))",
    "counting": "collect(counting(...))",
    "groupingByConcurrent": "collect(grouping_by_concurrent(...))",
    "mapConcurrent": "gather(map_concurrent(n, fn))",
    "partitioner": "",
    "lookup": "",
    "nlargest": "top(n, key)",
    "tail": "to_list()[-n:]",
    "first_true": "filter(predicate).find_first()",
    "unzip": "pluck(place) once for each place",
    "randomSplit": "filter(predicate) once for each part",
    "saveAsTextFile": "collect(to_files(folder))",
    "unique_justseen": "",
    "coalesce": "parallel(n)",
}


@pytest.mark.parametrize("name", MEANT)
def test_a_name_leads_to_the_right_place(name):
    """As it is written in Java, in PySpark, in Python; what has no counterpart leads nowhere."""
    with pytest.raises(AttributeError) as caught:
        getattr(Stream.of(1), name)

    assert str(caught.value).partition("; use ")[2] == MEANT[name]


@pytest.mark.parametrize("table", [ELSEWHERE, OF_NUMBERS], ids=["objects", "numbers"])
def test_what_is_offered_is_there(table):
    """Every method that a message names is one of a stream, every function one of a package."""
    kind = Stream if table is ELSEWHERE else IntStream
    for name, offered in table.items():
        called = re.findall(r"(?<![\w.])(\w+)\(", offered) + re.findall(r"\.(\w+)\(", offered)
        assert name == plain(name), "names are found by their plain form"
        assert not hasattr(kind, name), "a name that exists needs no translation"
        assert all(hasattr(kind, each) or each in METHODS_ELSEWHERE or each in KNOWN for each in called), offered


METHODS_ELSEWHERE = {
    "fn",
    "average",
    "sum",
    "is_empty",
    "createTempView",
    "createOrReplaceTempView",
    "random",
    "mul",
    "from_df",
}
METHODS_ELSEWHERE |= {"range", "range_closed", "of_nullable"}


def test_a_reducer_is_collected_into():
    """All of the package are known, and their names say what to call."""
    for name in reducers.__all__:
        with pytest.raises(AttributeError, match=rf"^a Stream has no '{name}'; use collect\({name}\("):
            getattr(Stream.of(1), name)


@pytest.mark.parametrize("stream", [Stream.of(1), IntStream.of(1)], ids=["objects", "numbers"])
def test_no_foreign_name_is_taken_for_a_typing_error(stream):
    """What PySpark, Java, Kotlin, itertools, toolz and streamable have is translated, or nothing is guessed."""
    for name in FOREIGN_NAMES:
        if hasattr(stream, name):
            continue
        offered = no_such_name(type(stream), name, Stream).partition("; use ")[2]
        is_known = plain(name) in {**ELSEWHERE, **OF_NUMBERS} or plain(name) in map(plain, KNOWN)
        written_otherwise = plain(offered.removeprefix("boxed().")) == plain(name)
        without_a_letter = name.startswith("a") and hasattr(stream, offered)  # The async twins of streamable.
        assert not offered or is_known or written_otherwise or without_a_letter, (name, offered)


@pytest.mark.parametrize("name", ["__wrapped__", "_repr_pretty_", "xyzzy"])
def test_a_name_like_no_other_is_refused(name):
    """Nothing is guessed, and nothing is said about names that tools probe for."""
    with pytest.raises(AttributeError, match=f"^an? IntStream has no '{name}'$"):
        getattr(IntStream.of(1), name)


@pytest.mark.parametrize(
    ("package", "name", "meant"),
    [
        ("sources", "csv_files", "csv_rows"),
        ("sources", "json_files", "json_lines"),
        ("sources", "read_parquet", "parquet_rows"),
        ("reducers", "to_dict", "to_imap"),
        ("reducers", "to_parquet", 'to_files(folder, format="parquet")'),
        ("collectors", "count", "counting"),
        ("collectors", "to_dict", "to_map"),
    ],
)
def test_a_name_that_a_package_might_have_leads_to_its_own(package, name, meant):
    """Where one is guessed from another of ours, or known from another library."""
    with pytest.raises(
        ImportError, match=f"^{re.escape(f'cannot import name {name!r} from {package!r}; write {meant}')}$"
    ):
        exec(f"from {package} import {name}")
