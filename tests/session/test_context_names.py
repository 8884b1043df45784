"""Names that a context does not have, and what is offered instead."""

import pytest

import sources
from collectors import to_list
from dstream.gatherers import window_fixed

NAMES = {
    "getMap": r"get_map",
    "parallelize": r"stream\(items\)",
    "textFile": r"read\(text_files\(path\)\)",
    "read_csv": r"read\(csv_rows\(path\)\)",
    "from_pandas": r"from_df\(df\)",
    "stop": r"close\(\)",
    "get_mop": r"get_map",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_context_says_what_is_meant(local_context, name):
    """Names of Spark, pandas and Java lead to the right place."""
    with pytest.raises(AttributeError, match=f"a Context has no '{name}'; use {NAMES[name]}"):
        getattr(local_context, name)


def test_each_source_is_read_by_a_context(local_context):
    """By its name, those of streams without an end apart, which pipelines read."""
    endless = {"icache_journal", "imap_journal", "item_stream", "long_stream", "sql_changes", "stream_from_processor"}
    endless |= {"stream_of", "stream_source_from", "watch_files"}
    for name in {name for name in sources.__all__ if name.islower()} - endless:
        with pytest.raises(AttributeError, match=rf"a Context has no '{name}'; use read\({name}\(\.\.\.\)\)"):
            getattr(local_context, name)


def test_collectors_and_gatherers_are_told_apart(local_context):
    """Each one says where it belongs."""
    stream = local_context.stream([1])
    for wrong, message in [
        (lambda: stream.gather(to_list()), r"use collect\(\.\.\.\)"),
        (lambda: stream.gather(window_fixed), r"call it: window_fixed\("),
        (lambda: stream.collect(window_fixed(2)), r"use gather\(\.\.\.\)"),
        (lambda: stream.collect(window_fixed), r"stream\.gather\(window_fixed\("),
    ]:
        with pytest.raises(TypeError, match=message):
            wrong()


def test_what_streams_ask_of_a_context_is_not_offered(local_context):
    """Tab shows what users call, each of which a page or its docstring explains."""
    offered = [name for name in dir(local_context) if not name.startswith("_")]

    assert not {"check_open", "running_engine", "renew_engine", "engine_here", "running_storage", "stages"} & {*offered}
    assert {"stream", "read", "get_map", "jobs", "elsewhere", "existing", "close"} <= {*offered}
    assert all(getattr(type(local_context), name).__doc__ for name in offered)
