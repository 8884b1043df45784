"""Every public name has its place in the reference, and the reference names nothing else.

A page of `docs/reference/` takes a module with `::: dstream.collectors` and a single name with `::: dstream.Stream`.
"""

from __future__ import annotations

import pydoc
import re
import types
from pathlib import Path

import pytest

import dstream as ds
from dstream import collectors, core, reducers, sources, spi, testing, windows

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
_ENTRY = re.compile(r"^::: (\S+)\n(?P<options>(?: .*\n)*)", re.MULTILINE)
ENTRIES = {match[1]: match["options"] for page in PAGES for match in _ENTRY.finditer(page.read_text() + "\n")}
CONTRACTS = (spi.collector, spi.source, spi.sink, spi.store, spi.runtime)
MODULES = (ds, collectors, reducers, sources, ds.errors, ds.gatherers, core, testing, windows, *CONTRACTS)
NAMES = [f"{module.__name__}.{name}" for module in MODULES for name in module.__all__]


def homes_of(name):
    """Return the ways to name a thing of a module: `dstream.spi.collector.Keyed` is offered by `dstream.spi` too."""
    parts = name.split(".")
    return {".".join([*parts[:depth], parts[-1]]) for depth in range(1, len(parts))}


@pytest.mark.parametrize("name", NAMES)
def test_reference_has_every_public_name(name):
    """The name stands on a page, alone or with its whole module."""
    assert (homes_of(name) | {name.rpartition(".")[0]}) & set(ENTRIES)


@pytest.mark.parametrize("name", NAMES)
def test_reference_entries_have_something_to_show(name):
    """What is public has a docstring of its own."""
    found = pydoc.locate(name)

    assert found.__doc__ if isinstance(found, type | types.FunctionType) else found is not None


@pytest.mark.parametrize("entry", sorted(ENTRIES))
def test_reference_entries_exist(entry):
    """A page names nothing that was renamed or removed."""
    assert pydoc.locate(entry) is not None


@pytest.mark.parametrize("stream", ["Stream", "IntStream", "LongStream", "DoubleStream"])
def test_reference_shows_what_streams_share(stream):
    """`filter` and its like stand in a base class, and are shown for each type of stream."""
    assert "inherited_members: true" in ENTRIES[f"dstream.{stream}"]
