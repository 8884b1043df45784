"""A wrong argument is refused by the call that made it, on the user's line, by its name."""

from __future__ import annotations

import inspect
import traceback

import pytest

import collectors
import dstream as ds
import reducers
import sources
from collectors import counting
from dstream import Collector, DoubleStream, IntStream, LongStream, Optional, Stream

WORDS, INTS, FLOATS = Stream.of("a"), IntStream.of(1), DoubleStream.of(1.0)
STEPS = [
    "filter",
    "map",
    "map_to_obj",
    "map_to_int",
    "map_to_long",
    "map_to_double",
    "flat_map",
    "flat_map_to_int",
    "flat_map_to_long",
    "flat_map_to_double",
    "map_multi",
    "map_multi_to_int",
    "map_multi_to_long",
    "map_multi_to_double",
    "peek",
    "take_while",
    "drop_while",
    "map_values",
    "filter_values",
    "flat_map_values",
    "reduce_by_key",
    "for_each",
    "for_each_ordered",
    "for_each_partition",
    "any_match",
    "all_match",
    "none_match",
    "to_array",
    "on_close",
]
KEYED = ["distinct", "sorted", "min", "max"]


def on_streams():
    """Give (name, call, what the message says) for the methods that many streams share."""
    for name in STEPS:
        for wrong in (5, None):
            yield f"{name}({wrong})", lambda name=name, wrong=wrong: getattr(WORDS, name)(wrong), "must be a function"
    for name in KEYED:
        yield f"{name}(5)", lambda name=name: getattr(WORDS, name)(5), "key must be a function, not int"
    for name in ("limit", "skip"):
        for wrong in ("x", None, 1.5, True, -1):
            yield f"{name}({wrong!r})", lambda name=name, wrong=wrong: getattr(WORDS, name)(wrong), "n must "


OTHERS = {
    "sorted reverse": (lambda: WORDS.sorted(reverse="yes"), "reverse must be True or False"),
    "parallel text": (lambda: WORDS.parallel("x"), "partitions must be an int"),
    "parallel 0": (lambda: WORDS.parallel(0), "partitions must be at least 1"),
    "configure": (lambda: WORDS.configure(5), "config must be a mapping"),
    "configure name": (lambda: WORDS.configure({1: "x"}), "config must have names that are str"),
    "configure value": (lambda: WORDS.configure({"a": None}), "config.'a'. must be a text or a number, not None"),
    "reduce nothing": (lambda: WORDS.reduce(), "reduce.. takes 1 to 3 arguments"),
    "reduce": (lambda: WORDS.reduce(5), "op must be a function"),
    "reduce combiner": (lambda: WORDS.reduce(0, max, 5), "combiner must be a function"),
    "collect": (lambda: WORDS.collect(counting), "collect.. takes a Collector"),
    "collect accumulator": (lambda: WORDS.collect(list, 5, max), "accumulator must be a function"),
    "aggregate_by_key": (lambda: WORDS.aggregate_by_key(counting), "collector must be a Collector"),
    "top_by_key": (lambda: WORDS.top_by_key("x"), "n must be an int"),
    "top_by_key key": (lambda: WORDS.top_by_key(1, 5), "key must be a function"),
    "zip": (
        lambda: WORDS.zip(5),
        r"zip\(\) takes two streams: other must be a stream, a map, a dict or a list, not int",
    ),
    "zip text": (lambda: WORDS.zip("ab"), "takes two streams.*not str; Stream.from_iterable"),
    "zip strict": (lambda: WORDS.zip(WORDS, 1), "strict must be True or False"),
    "join text": (lambda: WORDS.join("ab"), "takes two streams"),
    "semi_join on": (lambda: WORDS.semi_join(WORDS, 5), "on must be a function"),
    "anti_join on": (lambda: WORDS.anti_join(WORDS, on=(len, 5)), r"on\[1\] must be a function"),
    "cross": (lambda: WORDS.cross(WORDS, broadcast_limit=-1), "broadcast_limit must not be negative"),
    "concat": (lambda: Stream.concat(5, WORDS), "takes streams"),
    "concat second": (lambda: Stream.concat(WORDS, None), "takes streams"),
    "concat kinds": (lambda: Stream.concat(WORDS, INTS), "takes streams of one type"),
    "concat ints": (lambda: IntStream.concat(WORDS, WORDS), "takes streams of type IntStream"),
    "from_iterable": (lambda: Stream.from_iterable(5), "'int' object is not iterable"),
    "from_iterable parts": (lambda: Stream.from_iterable([], 0), "partitions must be at least 1"),
    "iterate": (lambda: Stream.iterate(1, 5), "next must be a function"),
    "iterate has_next": (lambda: Stream.iterate(1, 5, abs), "has_next must be a function"),
    "generate": (lambda: Stream.generate(5), "supplier must be a function"),
    "ints": (lambda: IntStream.of("x"), "an int is needed here"),
    "floats": (lambda: DoubleStream.of(None), "a real number is needed here"),
    "int map": (lambda: INTS.map(5), "fn must be a function"),
    "float map": (lambda: FLOATS.map_to_int(5), "fn must be a function"),
    "long range": (lambda: LongStream.range("a", 2), "must be an int"),
    "int range": (lambda: IntStream.range_closed(1, None), "must be an int"),
    "set_default_context": (lambda: ds.set_default_context(5), "takes a context or None, not int"),
    "failure": (lambda: ds.failure(5), "error must be an exception, not int"),
    "Collector": (lambda: Collector.of(5, len, len), "supplier must be a function"),
    "characteristics": (lambda: Collector.of(list, len, len, len, "x"), "characteristics must be"),
    **{
        f"Optional.{name}": (lambda name=name: getattr(Optional.empty(), name)(5), "must be a function, not int")
        for name in ["filter", "map", "flat_map", "if_present", "or_else_get", "or_else_throw", "or_"]
    },
}
STREAMS = {**{label: (call, words) for label, call, words in on_streams()}, **OTHERS}


@pytest.mark.parametrize("label", STREAMS)
def test_a_wrong_argument_of_a_stream_is_refused_at_its_call(label):
    """With a message that names it; nothing runs, and the last line of the user's is the call."""
    call, words = STREAMS[label]
    with pytest.raises((TypeError, ValueError), match=words) as caught:
        call()

    assert "__notes__" not in vars(caught.value)
    users = [frame for frame in traceback.extract_tb(caught.value.__traceback__) if frame.filename == __file__]
    assert users


GOOD = {
    "supplier": list,
    "x": len,
    "y": len,
    "fractions": [0.5],
    "config": {"bootstrap.servers": "host:9092"}, "topic": "orders", "topics": "orders",
    "classifier": len, "create": list, "downstream": counting(), "factory": list, "first": counting(), "fn": len,
    "begin": dict, "host": "h", "order_by": "id", "port": 9999, "reach": dict, "read": list, "splits": [1],
    "folder": "out", "path": "out.csv",
    "query": "SELECT 1", "table": "t", "url": "sqlite:///x.db", "key": len, "receive": list.append,
    "map_factory": dict, "merge": max, "n": 3, "name": "m", "op": max, "predicate": bool,
    "ps": [0.5], "second": counting(), "value": len, "update": max, "processor": max, "per_second": 1, "items": [1],
}  # fmt: skip
NUMBERS = {"max_record", "n", "partitions", "per_second", "port", "start"}
"""Parameters that a number may be given for."""
FREE = {"columns", "delimiter", "quotechar", "job", "merge"}
"""Parameters that may be None, whatever their default says."""


def of_factories():
    """Give (factory, arguments, the wrong one) for every parameter of every factory of the three plug-in packages."""
    for package in (collectors, reducers, sources):
        for name in package.__all__:
            factory = getattr(package, name)
            if name[0].islower():
                yield from ((f"{name}({wrong}={value!r})", factory, wrong, value) for wrong, value in _wrong(factory))


def _wrong(factory):
    for name, parameter in inspect.signature(factory).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            continue
        yield name, "x" if name in NUMBERS else 5
        if parameter.default is not None and name not in FREE:
            yield name, None


FACTORIES = {label: case for label, *case in of_factories()}


@pytest.mark.parametrize("label", FACTORIES)
def test_a_wrong_argument_of_a_factory_is_refused_at_its_call(label):
    """Collectors, reducers and sources: every parameter, with a message that names it."""
    factory, wrong, value = FACTORIES[label]
    parameters = inspect.signature(factory).parameters
    needed = {name: GOOD[name] for name, each in parameters.items() if each.default is each.empty and name in GOOD}
    if wrong in ("key", "value"):
        needed |= {name: len for name in ("key", "value") if name in parameters}
    paths = ["a.txt"] if "paths" in parameters else []
    with pytest.raises((TypeError, ValueError)) as caught:
        factory(*paths, **{**needed, wrong: value})

    assert wrong in str(caught.value)


OF_FILES = [
    sources.text_files,
    sources.csv_rows,
    sources.json_lines,
    sources.parquet_rows,
    sources.avro_records,
    sources.files,
]


@pytest.mark.parametrize("factory", OF_FILES)
def test_what_is_no_path_is_refused_by_a_source_of_files(factory):
    """At the call, also behind a good one."""
    for paths in [(5,), ("a.txt", None), ("a.txt", ["b.txt", 5])]:
        with pytest.raises(TypeError, match="path"):
            factory(*paths)


CONTEXT = {
    "stream": (lambda ctx: ctx.stream(5), "not iterable"),
    "stream parts": (lambda ctx: ctx.stream([], -1), "partitions"),
    "read": (lambda ctx: ctx.read(sources.text_files), "takes a source"),
    "get_map": (lambda ctx: ctx.get_map(5), "name of a collection must be a str"),
    "get_list": (lambda ctx: ctx.get_list(""), "name of a collection must not be empty"),
    "get_set": (lambda ctx: ctx.get_set(5), "name of a collection must be a str"),
    "get_set buckets": (lambda ctx: ctx.get_set("a", buckets="x"), "buckets must be a number"),
    "get_counter": (lambda ctx: ctx.get_counter(None), "name of a collection must be a str"),
    "get_queue": (lambda ctx: ctx.get_queue(""), "name of a collection must not be empty"),
    "existing": (lambda ctx: ctx.existing("bag", "a"), "kind must be one of 'map', 'list', 'cache', 'set', 'counter'"),
    "buckets": (lambda ctx: ctx.get_map("a", buckets="x"), "buckets must be a number"),
    "journal": (lambda ctx: ctx.get_map("a", journal="x"), "journal must be True or False"),
    "ttl": (lambda ctx: ctx.get_cache("a", ttl="x"), "ttl must be a number of seconds"),
    "engine": (lambda ctx: ds.connect(engine="x"), "engine must be one of"),
    "storage": (lambda ctx: ds.connect(engine="local", storage=5), "storage must be"),
    "pickle": (lambda ctx: ds.connect(engine="local", pickle="x"), "pickle must be"),
    "allowed": (lambda ctx: ds.connect(engine="local", allowed=[5]), "allowed must hold classes"),
    "durability": (lambda ctx: ds.connect(engine="local", durability="x"), "durability must be"),
    "worker_memory": (lambda ctx: ds.connect(engine="local", worker_memory="x"), "worker_memory must be"),
}


@pytest.mark.parametrize("name", CONTEXT)
def test_a_wrong_argument_of_a_context_is_refused_at_its_call(local_context, name):
    """Of `connect()` too."""
    call, words = CONTEXT[name]
    with pytest.raises((TypeError, ValueError), match=words):
        call(local_context)
