"""Mistakes in the arguments of a call: refused there, before anything runs."""

from __future__ import annotations

import threading

import dstream as ds
from collectors import grouping_by, joining, to_list
from dstream.errors import IllegalStateError
from reducers import to_imap
from sources import csv_rows, sql_rows, text_files
from tests.mistakes.mistake import LOCAL, mistake


@mistake(TypeError, r"fn must be a function, not str", r"function")
def no_function(desk):
    """`map` is given a name instead of a function."""
    desk.ctx.stream(["a"]).map("upper")  # here


@mistake(TypeError, r"predicate must be a function, not None", r"function")
def a_none_for_a_function(desk):
    """`filter(None)` works in Python, where it means `filter(bool)`."""
    desk.ctx.stream([0, 1]).filter(None)  # here


@mistake(TypeError, r"fn must be a function, not int", r"function")
def the_result_instead_of_the_function(desk):
    """`map(len(x))` calls the function at once."""
    desk.ctx.stream(["a"]).map(len("a"))  # here


@mistake(ValueError, r"n must not be negative: -1", r"must not be negative")
def a_negative_limit(desk):
    """A count below zero."""
    desk.ctx.stream([1, 2]).limit(-1)  # here


@mistake(TypeError, r"n must be an int, not str", r"must be an int")
def a_text_for_a_number(desk):
    """A count as it comes from a command line."""
    desk.ctx.stream([1, 2]).skip("1")  # here


@mistake(ValueError, r"partitions must be at least 1: 0", r"at least 1")
def no_partitions(desk):
    """A stream in no partitions."""
    desk.ctx.stream([1, 2]).parallel(0)  # here


@mistake(TypeError, r"to_list is a function", r"call it: to_list\(")
def a_collector_that_was_not_called(desk):
    """The parentheses of a collector are forgotten."""
    desk.ctx.stream([1, 2]).collect(to_list)  # here


@mistake(TypeError, r"collect\(\)", r"to_list\(\)")
def a_collect_as_in_pyspark(desk):
    """PySpark's `collect()` takes nothing."""
    desk.ctx.stream([1, 2]).collect()  # here


@mistake(TypeError, r"downstream must be a Collector, not type", r"to_list\(\)|counting\(\)|Collector")
def a_class_as_a_downstream(desk):
    """A type instead of a collector below a grouping."""
    desk.ctx.stream(["a"]).collect(grouping_by(len, list))  # here


@mistake(TypeError, r"int", r"iterable")
def a_stream_of_a_number(desk):
    """Something that holds no items."""
    desk.ctx.stream(5)  # here


@mistake(TypeError, r"read\(\) takes a source", r"text_files\(\.\.\.\)")
def a_path_for_a_source(desk):
    """A path where a source is wanted."""
    desk.ctx.read("sea.txt")  # here


@mistake(TypeError, r"delimiter must be", r"str")
def a_delimiter_that_is_no_text(desk):
    """`joining(1)`."""
    desk.ctx.stream(["a"]).collect(joining(1))  # here


@mistake(TypeError, r"name", r"str")
def a_name_that_is_no_text(desk):
    """A map is called 5."""
    desk.ctx.stream(["a"]).collect(to_imap(5))  # here


@mistake(ValueError, r"must not be empty", r"name")
def an_empty_name(desk):
    """A collection without a name."""
    desk.ctx.get_list("")  # here


@mistake(LookupError, r"unknown encoding: utf-88", r"encoding")
def an_encoding_that_does_not_exist(desk):
    """A misspelt encoding."""
    desk.ctx.read(text_files("sea.txt", encoding="utf-88"))  # here


@mistake(ValueError, r"engine must be one of .*not 'sprak'", r"spark, local", engines=LOCAL)
def an_engine_that_does_not_exist(desk):
    """A misspelt engine."""
    ds.connect(engine="sprak")  # here


@mistake(ValueError, r"worker_memory must be .*not 'lots'", r"'512m'", engines=LOCAL)
def a_size_without_a_number(desk):
    """A memory size that is no size."""
    ds.connect(engine="local", worker_memory="lots")  # here


@mistake(ValueError, r"s4://", r"folder|s3://|redis://|memory:", engines=LOCAL)
def a_storage_that_does_not_exist(desk):
    """A misspelt scheme of a storage."""
    with ds.connect(engine="local", storage="s4://bucket") as ctx:
        ctx.get_map("m")  # here


@mistake(IllegalStateError, r"two streams of different contexts", r"one context", engines=LOCAL)
def streams_of_two_contexts(desk):
    """What lives in two contexts is put together."""
    with ds.connect(engine="local") as other:
        desk.ctx.stream([1]) + other.stream([2])  # here


@mistake(AttributeError, r"has no 'flatMap'", r"use flat_map", engines=LOCAL)
def a_name_as_in_java(desk):
    """A method is called as in Java."""
    desk.ctx.stream(["a"]).flatMap(list)  # here


@mistake(AttributeError, r"has no 'take'", r"use limit\(n\)", engines=LOCAL)
def a_name_as_in_pyspark(desk):
    """A method is called as in PySpark."""
    desk.ctx.stream(["a"]).take(1)  # here


@mistake(AttributeError, r"has no 'mapp'", r"use map", engines=LOCAL)
def a_misspelt_name(desk):
    """A method is misspelt."""
    desk.ctx.stream(["a"]).mapp(len)  # here


@mistake(AttributeError, r"an IStreamMap has no 'containsKey'", r"use key in collection", engines=LOCAL)
def a_name_as_in_javas_maps(desk):
    """A method of a map is called as in Java."""
    desk.ctx.get_map("m").containsKey("a")  # here


@mistake(AttributeError, r"has no 'combine_by_key'", r"use aggregate_by_key\(collector\)", engines=LOCAL)
def a_name_as_in_pyspark_with_underscores(desk):
    """A method of PySpark is called as Python would write it."""
    desk.ctx.stream(["a"]).combine_by_key(list, list.append, list.extend)  # here


@mistake(TypeError, r"not type", r"collector for list is to_list\(\)", engines=LOCAL)
def a_class_for_a_collector(desk):
    """`collect(list)` is meant to make a list."""
    desk.ctx.stream(["a"]).collect(list)  # here


@mistake(TypeError, r"not type", r"collector for set is to_set\(\)", engines=LOCAL)
def another_class_for_a_collector(desk):
    """`collect(set)` is meant to make a set."""
    desk.ctx.stream(["a"]).collect(set)  # here


@mistake(TypeError, r"not type", r"collector for dict is to_map\(key, value\)", engines=LOCAL)
def a_dict_for_a_collector(desk):
    """`collect(dict)` is meant to make a dict."""
    desk.ctx.stream([("a", 1)]).collect(dict)  # here


@mistake(TypeError, r"classifier must be a function, not str", r"operator.itemgetter\('host'\)", engines=LOCAL)
def a_field_for_a_classifier(desk):
    """`grouping_by("host")` names a column, as in SQL."""
    desk.ctx.stream([{"host": "a"}]).collect(grouping_by("host"))  # here


@mistake(TypeError, r"key must be a function, not str", r"operator.itemgetter\('host'\)", engines=LOCAL)
def a_field_for_a_key(desk):
    """So does `sorted(key="host")`."""
    desk.ctx.stream([{"host": "a"}]).sorted(key="host")  # here


@mistake(TypeError, r"grouping_by\(\) takes no three arguments", r"map_factory=", engines=LOCAL)
def a_grouping_as_in_java(desk):
    """Java's `groupingBy(classifier, mapFactory, downstream)`."""
    desk.ctx.stream(["a"]).collect(grouping_by(len, dict, to_list()))  # here


@mistake(TypeError, r"a _thread.lock cannot be stored", r"store plain values", engines=LOCAL)
def a_lock_as_a_value(desk):
    """A lock is put into a map."""
    desk.ctx.get_map("m").put("a", threading.Lock())  # here


@mistake(TypeError, r"'two' of type str, no int", r"\.jsonl", engines=LOCAL)
def a_table_of_mixed_values(desk):
    """A map of numbers and texts is no table."""
    mixed = desk.ctx.get_map("mixed")
    mixed.update({"a": 1, "b": "two"})
    mixed.to_arrow()  # here


@mistake(IllegalStateError, r"context that this stream belongs to was closed", r"connect\(\) again", engines=LOCAL)
def a_closed_context(desk):
    """A stream outlives the `with` block that made it."""
    with ds.connect(engine="local") as ctx:
        words = ctx.stream(["a"])
    words.to_list()  # here


@mistake(AttributeError, r"'TextFiles' has no attribute 'map'", r"ctx\.read\(source\) makes a stream", engines=LOCAL)
def a_source_as_a_stream(desk):
    """What `text_files` returns is not read yet."""
    text_files("a.txt").map(len)  # here


@mistake(TypeError, r"ignore\(\) takes 2 positional arguments", r"ignore\(\(ValueError, TypeError\)\)", engines=LOCAL)
def several_exceptions_without_a_tuple(desk):
    """Several exceptions where one argument is wanted."""
    desk.ctx.stream(["1"]).map(int).ignore(ValueError, TypeError)  # here


@mistake(TypeError, r"sorted\(\) got an unexpected .*'descending'", r"write reverse=True", engines=LOCAL)
def an_order_as_in_polars(desk):
    """The argument that Polars and others have."""
    desk.ctx.stream([1, 2]).sorted(descending=True)  # here


@mistake(TypeError, r"csv_rows\(\) got an unexpected .*'sep'", r"write delimiter=", engines=LOCAL)
def a_separator_as_in_pandas(desk):
    """The argument that pandas has."""
    csv_rows("a.csv", sep=";")  # here


@mistake(TypeError, r"unexpected .*'header'", r"fieldnames=\[\.\.\.\] for files without a header", engines=LOCAL)
def a_header_as_in_pyspark(desk):
    """The first line is one unless it is said otherwise."""
    csv_rows("a.csv", header=True)  # here


@mistake(TypeError, r"unexpected .*'encodng'", r"write encoding=", engines=LOCAL)
def a_misspelt_argument(desk):
    """A typing error in the name of an argument."""
    csv_rows("a.csv", encodng="utf-8")  # here


@mistake(TypeError, r"connect\(\) got an unexpected .*'cores'", r'write connect\("local\[4\]"\)', engines=LOCAL)
def cores_as_an_argument(desk):
    """The number of cores belongs to the master."""
    ds.connect(cores=4)  # here


@mistake(ValueError, r"query must be a SELECT", r"'SELECT \* FROM sales'", engines=LOCAL)
def a_table_for_a_query(desk):
    """The name of a table."""
    sql_rows("sqlite:///shop.db", "sales")  # here


@mistake(ImportError, r"cannot import name 'to_imap' from 'collectors'", r"from reducers import to_imap", engines=LOCAL)
def a_reducer_among_the_collectors(desk):
    """It is in another package."""
    from collectors import to_imap  # noqa: F401  # here


@mistake(ImportError, r"cannot import name 'groupingBy'", r"write grouping_by", engines=LOCAL)
def a_collector_as_in_java(desk):
    """The name that Java has."""
    from collectors import groupingBy  # noqa: F401  # here


@mistake(ImportError, r"cannot import name 'mapJournal'", r"write imap_journal", engines=LOCAL)
def a_source_as_in_jet(desk):
    """The name that Jet has."""
    from sources import mapJournal  # noqa: F401  # here


@mistake(TypeError, r"no items by number or key", r"limit\(n\)\.to_list\(\)")
def an_item_by_its_number(desk):
    """Lists have places, streams have not."""
    desk.ctx.stream([1, 2])[0]  # here


@mistake(TypeError, r"no items by number or key", r"dict\(iter\(stream\)\)")
def a_dict_of_a_stream_of_pairs(desk):
    """Python asks whatever has `keys` for its items by key."""
    dict(desk.ctx.stream([("a", 1)]))  # here
