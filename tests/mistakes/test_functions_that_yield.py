"""Functions of sources, reducers and collections that yield: refused at the call, before anything runs."""

from __future__ import annotations

import pytest

from dstream.testing import assert_collected_eventually
from reducers import (
    grouping_by_to_icache,
    grouping_by_to_imap,
    processing_imap,
    sink_from,
    to_file,
    to_files,
    to_icache,
    to_imap,
    to_kafka,
    to_logger,
    to_socket,
    updating_imap,
)
from sources import icache, icache_journal, imap, imap_journal, item_stream, kafka, long_stream, stream_source_from

SERVERS = {"bootstrap.servers": "localhost:1"}

OF_CALLS = {
    "imap predicate": lambda fn: imap("m", fn),
    "imap projection": lambda fn: imap("m", projection=fn),
    "icache predicate": lambda fn: icache("c", fn),
    "icache projection": lambda fn: icache("c", projection=fn),
    "imap_journal predicate": lambda fn: imap_journal("m", predicate=fn),
    "imap_journal projection": lambda fn: imap_journal("m", projection=fn),
    "icache_journal predicate": lambda fn: icache_journal("c", predicate=fn),
    "icache_journal projection": lambda fn: icache_journal("c", projection=fn),
    "item_stream fn": lambda fn: item_stream(1, fn),
    "item_stream clock": lambda fn: item_stream(1, clock=fn),
    "long_stream clock": lambda fn: long_stream(1, clock=fn),
    "kafka key": lambda fn: kafka("t", SERVERS, key=fn),
    "kafka value": lambda fn: kafka("t", SERVERS, value=fn),
    "kafka projection": lambda fn: kafka("t", SERVERS, projection=fn),
    "stream_source_from begin": lambda fn: stream_source_from(fn, print, print),
    "stream_source_from reach": lambda fn: stream_source_from(print, fn, print),
    "stream_source_from timestamp": lambda fn: stream_source_from(print, print, print, fn),
    "to_imap key": lambda fn: to_imap("m", fn, str),
    "to_imap value": lambda fn: to_imap("m", str, fn),
    "to_imap merge": lambda fn: to_imap("m", str, str, fn),
    "to_icache key": lambda fn: to_icache("c", fn, str),
    "to_icache value": lambda fn: to_icache("c", str, fn),
    "to_icache merge": lambda fn: to_icache("c", merge=fn),
    "grouping_by_to_imap classifier": lambda fn: grouping_by_to_imap("m", fn),
    "grouping_by_to_icache classifier": lambda fn: grouping_by_to_icache("c", fn),
    "updating_imap key": lambda fn: updating_imap("m", fn, max),
    "updating_imap update": lambda fn: updating_imap("m", str, fn),
    "processing_imap key": lambda fn: processing_imap("m", fn, max),
    "processing_imap processor": lambda fn: processing_imap("m", str, fn),
    "to_files to_string": lambda fn: to_files("folder", to_string=fn),
    "to_files partition_by": lambda fn: to_files("folder", partition_by={"day": fn}),
    "to_file to_string": lambda fn: to_file("a.txt", to_string=fn),
    "to_logger to_string": lambda fn: to_logger(fn),
    "to_socket to_string": lambda fn: to_socket("localhost", 1, fn),
    "to_kafka key": lambda fn: to_kafka("t", SERVERS, key=fn),
    "to_kafka value": lambda fn: to_kafka("t", SERVERS, value=fn),
    "to_kafka headers": lambda fn: to_kafka("t", SERVERS, headers=fn),
    "sink_from create": lambda fn: sink_from(fn, print),
    "sink_from receive": lambda fn: sink_from(print, fn),
    "sink_from flush": lambda fn: sink_from(print, print, fn),
    "sink_from destroy": lambda fn: sink_from(print, print, destroy=fn),
    "sink_from prepare": lambda fn: sink_from(print, print, prepare=fn, commit=print),
    "sink_from commit": lambda fn: sink_from(print, print, prepare=print, commit=fn),
    "assert_collected_eventually fn": lambda fn: assert_collected_eventually(1, fn),
}

OF_MAPS = {
    "stream predicate": lambda m, fn: m.stream(fn),
    "stream projection": lambda m, fn: m.stream(projection=fn),
    "select predicate": lambda m, fn: m.select(fn),
    "select projection": lambda m, fn: m.select(bool, fn),
    "execute_on_key fn": lambda m, fn: m.execute_on_key("a", fn),
    "execute_on_entries fn": lambda m, fn: m.execute_on_entries(fn),
    "execute_on_entries predicate": lambda m, fn: m.execute_on_entries(bool, fn),
    "replace_all fn": lambda m, fn: m.replace_all(fn),
    "compute fn": lambda m, fn: m.compute("a", fn),
    "compute_if_absent fn": lambda m, fn: m.compute_if_absent("a", fn),
    "compute_if_present fn": lambda m, fn: m.compute_if_present("a", fn),
    "merge fn": lambda m, fn: m.merge("a", 1, fn),
}


def _yielding(*args):
    yield False


async def _awaited(*args):
    return False


@pytest.mark.parametrize("fn", [_yielding, _awaited], ids=["yield", "async"])
@pytest.mark.parametrize("call", OF_CALLS)
def test_functions_that_yield_are_refused_by_sources_and_reducers(call, fn):
    """A generator is true, and no item, key or text: its lines would never run."""
    with pytest.raises(TypeError, match=call.split()[1] + r".* must give a result"):
        OF_CALLS[call](fn)


@pytest.mark.parametrize("fn", [_yielding, _awaited], ids=["yield", "async"])
@pytest.mark.parametrize("call", OF_MAPS)
def test_functions_that_yield_are_refused_by_maps(local_context, call, fn):
    """As by sources, also where the map has no entry on which they would run."""
    with pytest.raises(TypeError, match=call.split()[1] + r" must give a result"):
        OF_MAPS[call](local_context.get_map("functions that yield"), fn)
