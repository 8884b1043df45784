"""A name that a collection does not have is answered with what is meant by it."""

from __future__ import annotations

import re

import pytest

from dstream import IStreamCounter, IStreamList, IStreamMap, IStreamQueue, IStreamSet, Stream
from dstream.suggestions import collections as names
from dstream.suggestions.streams import plain

JAVA_MAP = """
addIndex computeIfAbsent computeIfPresent compute containsKey containsValue entrySet equals forEach getOrDefault isEmpty
keySet merge putAll putIfAbsent removeAll replaceAll mappingCount reduce search addEntryListener aggregate delete
evict evictAll executeOnEntries executeOnKey executeOnKeys getAll getAllAsync getAsync getEntryView getName iterator
localKeySet lock project putAllAsync putAsync putTransient removeAsync set setAll setAsync submitToKey tryLock
tryPut tryRemove unlock getAndPut getAndRemove getAndReplace invoke invokeAll
"""
JAVA_LIST = """
addAll addFirst addLast contains containsAll copyOf equals forEach getFirst getLast indexOf isEmpty iterator
lastIndexOf listIterator parallelStream removeAll removeFirst removeIf removeLast replaceAll retainAll reversed
spliterator subList toArray getName
"""
WITHOUT = [
    "hashCode",
    "of",
    "ofEntries",
    "addInterceptor",
    "flush",
    "isLocked",
    "getServiceName",
    "close",
    "xyzzy",
]
CALLS = {
    "ctx",
    "get_cache",
    "key",
    "len",
    "iter",
    "reversed",
    "all",
    "copy",
    "fn",
    "str",
    "set_value",
    "to_imap",
    "action",
}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("containsKey", "key in collection"),
        ("computeIfAbsent", "compute_if_absent"),
        ("put_All", "put_all"),
        ("map", "stream().map(...)"),
        ("first", "stream().first(...)"),
        ("udpate", "update"),
        ("toPandas", "to_pandas"),
    ],
)
def test_a_name_leads_to_the_right_place(make, name, meant):
    """Names of Java, of dicts, of streams, and typing errors."""
    with pytest.raises(AttributeError, match=re.escape(f"an IStreamMap has no {name!r}; use {meant}") + "$"):
        getattr(make.map(), name)


@pytest.mark.parametrize("names_there", [JAVA_MAP, JAVA_LIST], ids=["map", "list"])
def test_every_name_of_java_is_there_or_translated(make, names_there):
    """Of `java.util.Map`, `ConcurrentMap`, `List`, of Hazelcast's `IMap`, and of JCache."""
    collection = make.map() if names_there is JAVA_MAP else make.list()
    for name in names_there.split():
        if not hasattr(collection, name):
            with pytest.raises(AttributeError, match="; use "):
                getattr(collection, name)


@pytest.mark.parametrize("name", [*WITHOUT, "_repr_mimebundle_", "__wrapped__"])
def test_a_name_without_a_counterpart_is_refused_plainly(make, name):
    """Nothing is guessed."""
    for collection in (make.map(), make.list()):
        with pytest.raises(AttributeError, match=f"has no {name!r}$"):
            getattr(collection, name)


TABLES = [
    (IStreamMap, {**names._COLLECTION, **names._MAP}),
    (IStreamList, {**names._COLLECTION, **names._LIST}),
    (IStreamSet, {**names._COLLECTION, **names._SET}),
    (IStreamQueue, names._QUEUE),
    (IStreamCounter, names._COUNTER),
]


@pytest.mark.parametrize(("kind", "table"), TABLES)
def test_what_is_offered_is_there(kind, table):
    """Every method that a message names exists."""
    for name, offered in table.items():
        assert name == plain(name)
        for called in re.findall(r"(\w+)\(", offered):
            assert called in CALLS or any(hasattr(each, called) for each in (kind, Stream))
