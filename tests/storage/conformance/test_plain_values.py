"""The library's own values, and plain classes of the user, where pickles are restricted: no class needs a word."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import importlib
import pickle
from collections import Counter, deque

import pytest

from collectors import summarizing, teeing, to_list
from dstream import BadRecord, DeadLetter, Entry, JobStatus, JournalEvent, Optional
from dstream.jobs.metrics import JobMetrics, SourceMetrics, StageMetrics
from dstream.session.context import CollectionName
from dstream.spi.store import Options
from dstream.values import DoubleSummaryStatistics, ExactSum, IntSummaryStatistics
from dstream.windows import KeyedWindowResult, WindowResult
from sources import KafkaRecord, SimpleEvent
from tests.storage.codec.samples import Color, Order, Place, Spot

VALUES = [
    BadRecord("/data/orders.csv", 7, "12,x"),
    CollectionName("map", "counts"),
    DeadLetter({"item": BadRecord("a", 1, "b")}, "ValueError", "no number", ".map(parse)", "orders.py:7"),
    DoubleSummaryStatistics().accept_all([0.1, 0.2, 1e300]),
    Entry("whale", 3),
    ExactSum(),
    IntSummaryStatistics().accept_all([1, 2]),
    JobMetrics(
        "1",
        "words",
        "RUNNING",
        1.5,
        {"RUNNING": 1.0},
        3,
        1,
        {"map": StageMetrics(1, 2)},
        {"lines": SourceMetrics(1)},
        {},
        5,
        {},
        0.5,
    ),
    JobStatus.RUNNING,
    JournalEvent("ADDED", "a", None, Entry(1, 2), 1, 2),
    KafkaRecord("t", 0, 1, 2, b"k", b"v", (("h", b"1"),)),
    KeyedWindowResult(0, 1, "a", IntSummaryStatistics().accept_all([1])),
    Optional.of_item(None),
    SimpleEvent(1, 2),
    SourceMetrics(2, {"0": 7}, 1),
    StageMetrics(1, 2, keys=3),
    WindowResult(0, 1, DoubleSummaryStatistics().accept_all([0.5])),
]
"""One of each public class whose instances a user gets as results, and may store."""

NO_VALUES = {
    *("Characteristics", "Collector", "JobConfig", "JoinClause", "Pipeline", "Predicate", "Service", "Routing"),
    *("EdgeConfig", "ProcessorContext", "MetaSupplierContext", "SupplierContext", "TestProcessorContext"),
    *("FrameWindow", "SessionWindow", "Gatherer", "Retry", "VerifiedProcessor"),
    *("Generate", "Iterate", "Items", "ItemsSplit", "Range", "SummaryStatistics"),
    *("BroadcastKey", "Watermark"),  # they go through graphs of processors, and are no items
}
"""Other public dataclasses, named tuples and enums: definitions, settings, and what holds functions."""

PUBLIC = ("dstream", "collectors", "reducers", "sources", "dstream.core", "dstream.gatherers", "dstream.jobs")
WRAPPED = [lambda value: value, lambda value: [value, 1], lambda value: deque([Counter({"a": 1}), value])]


def public_values():
    """Return the public classes that look like values, by their names."""
    for name in (*PUBLIC, "dstream.testing", "dstream.values", "dstream.windows"):
        module = importlib.import_module(name)
        for found in (getattr(module, public) for public in module.__all__):
            if isinstance(found, type) and not issubclass(found, BaseException):
                is_value = dataclasses.is_dataclass(found) or issubclass(found, tuple | enum.Enum)
                if is_value or found.__module__.startswith("dstream.values."):
                    yield found.__name__


def test_plain_values_are_all_in_the_table():
    """A new public class is a value, and is stored below, or is none, and named above."""
    known = {type(value).__name__ for value in VALUES} | NO_VALUES

    assert set(public_values()) - known == set()


def test_plain_values_of_the_library_need_no_word(backend):
    """Each is stored and read in every storage: as the type of a collection, within others, and in a pickle."""
    with contextlib.closing(backend.open(pickle="restricted")) as storage:
        mixed = storage.create("list", "mixed", Options())
        for number, value in enumerate(VALUES):
            alone = storage.create("map", f"m{number}", Options())
            alone.update(["a"], lambda old, value=value: [value])
            mixed.extend([wrap(value) for wrap in WRAPPED])
            split = pickle.loads(pickle.dumps(storage.open("map", f"m{number}", Options()).splits(1)[0]))
            assert repr(list(split.read())) == repr([("a", value)])
        items = [item for split in mixed.splits(1) for item in split.read()]
    assert list(map(repr, items)) == [repr(wrap(value)) for value in VALUES for wrap in WRAPPED]


def test_plain_classes_of_users_need_no_word(backend):
    """Dataclasses, named tuples and enums are stored by their fields, as values, within others, and as keys."""
    keys = [Spot(1.0, 2.0), Color.RED, "a", "b"]
    values = [Order(1, 2, ["a"]), Place(Spot(1.0, 2.0)), [Color.RED], deque([Order(2, 3), Color.GREEN])]
    with contextlib.closing(backend.open(pickle="restricted")) as storage:
        store = storage.create("map", "m", Options())
        store.update(keys, lambda old: values)
        found = [pair for split in pickle.loads(pickle.dumps(store.splits(1))) for pair in split.read()]

    assert sorted(map(repr, found)) == sorted(map(repr, zip(keys, values, strict=True)))


@pytest.mark.parametrize("collector", [summarizing(), teeing(summarizing(), to_list(), Entry)], ids=repr)
def test_results_of_collectors_need_no_word(backend, collector):
    """A result that is a class of the library is stored as its values are."""
    result = collector.finisher(collector.accumulated(collector.supplier(), [1, 2]))
    with contextlib.closing(backend.open(pickle="restricted")) as storage:
        store = storage.create("list", "l", Options())
        store.extend([result])

        assert [item for split in store.splits(1) for item in split.read()] == [result]
