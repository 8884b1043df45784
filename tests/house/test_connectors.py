"""The table of connectors says what the code does, and has every source and every sink."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import reducers
import sources
from dstream.spi import ProcessorSource, ProcessorStreamSource, Sink, Source, StreamSource
from reducers import to_ilist

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "connectors.md").read_text()
SOURCES, SINKS = (
    {
        cells[0].strip("`"): cells[1:]
        for line in part.splitlines()
        if (cells := [cell.strip() for cell in line.strip("|").split("|")])[0].startswith("`") and len(cells) > 1
    }
    for part in TEXT.partition("## Sinks")[::2]
)
KAFKA = ("t", {"bootstrap.servers": "h:1"})
GIVEN = {
    "imap": ("m",), "icache": ("m",), "ilist": ("m",), "imap_journal": ("m",), "icache_journal": ("m",), "items": (1,),
    "item_stream": (1,), "kafka": KAFKA, "long_stream": (1,), "socket_lines": ("h", 1), "source_from": ([1], range),
    "sql_rows": ("sqlite:///x.db", "SELECT 1"), "stream_of": ([1],), "stream_source_from": (dict, dict, list),
    "grouping_by_to_imap": ("m", len), "grouping_by_to_icache": ("m", len), "replacing": (to_ilist("l"),),
    "sink_from": (list, list.append), "to_icache": ("m",), "to_iset": ("s",), "to_ilist": ("l",), "to_imap": ("m",),
    "updating_imap": ("m", len, max), "processing_imap": ("m", len, max),
    "to_kafka": KAFKA, "to_file": ("f.txt",),
    "to_logger": (), "to_nothing": (), "to_socket": ("h", 1), "to_sql": ("sqlite:///x.db", "t"),
    "from_processor": ("p", list), "stream_from_processor": ("p", list), "to_processor": ("p", list),
}  # fmt: skip
"""What makes one of each that does not take a path."""
OF_PROCESSORS = frozenset({"from_processor", "stream_from_processor", "to_processor"})
"""They have neither splits nor writers; `tests/pipeline/test_processor_ends.py` proves what the table says of them."""


def factories(module):
    """Return the names of the functions that make a source or a sink."""
    return {name for name in module.__all__ if name[0].islower()}


def said(module, name, heading):
    """Return what the docstring of a factory says under a heading, or that of the one that it refers to."""
    text = inspect.getdoc(getattr(module, name))
    found = re.search(rf"\*\*{heading}\*\*[^:]*: (.*?)(?=\n\n|\n\*\*|\Z)", text, re.DOTALL)
    words = " ".join(found[1].split())
    elsewhere = re.match(r"(?:those of|as for) `(\w+)`", words)
    return said(module, elsewhere[1], heading) if elsewhere and hasattr(module, elsewhere[1]) else words


def made(module, name):
    """Make one."""
    order = {"order_by": "id"} if name == "sql_changes" else {}
    return getattr(module, name)(*GIVEN.get(name, ("sqlite:///x.db", "t") if order else ("a",)), **order)


def test_the_table_has_every_connector():
    """And nothing else."""
    assert set(SOURCES) == factories(sources)
    assert set(SINKS) == factories(reducers)


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_a_source_is_what_the_table_says(name):
    """Bounded sources have splits, the others offsets; the docstring says what cannot be seen."""
    bounded, replayable, checkpointed, distributed, _ = SOURCES[name]
    source = made(sources, name)
    parallelism = said(sources, name, "Parallelism")
    is_one_task = parallelism.startswith("one task") and not parallelism.startswith("one task for each")

    is_bounded = source.bounded if isinstance(source, Source) else isinstance(source, ProcessorSource)
    assert (bounded == "yes") == is_bounded
    is_read_in_epochs = isinstance(source, StreamSource | ProcessorStreamSource)
    assert (checkpointed == "yes") == (bounded == "no") == is_read_in_epochs
    assert (replayable == "no") == said(sources, name, "Guarantee").startswith("none")
    assert (distributed == "yes") == (not is_one_task)
    assert said(sources, name, "On re-run")


@pytest.mark.parametrize("name", sorted(SINKS))
def test_a_sink_is_what_the_table_says(name):
    """Exactly once unless its docstring says otherwise; once for a job that has a name, if it can have one."""
    distributed, guarantee, again = SINKS[name]
    factory = getattr(reducers, name)
    is_weak = said(reducers, name, "Guarantee").startswith(("at least once", "every item has passed"))

    assert isinstance(made(reducers, name), Sink)
    assert guarantee == ("at least once" if is_weak else "exactly once")
    assert ("once with `job=`" in again) == ("job" in inspect.signature(factory).parameters)
    assert (distributed == "yes") == ("the caller logs" not in said(reducers, name, "Parallelism"))
    assert said(reducers, name, "On re-run")
