"""Every public name has its place in the reference, and the reference names nothing else.

A page of `docs/reference/` takes a module with `::: collectors` and a single name with `::: dstream.Stream`.
"""

from __future__ import annotations

import pydoc
import re
from pathlib import Path

import pytest

import collectors
import dstream as ds
import reducers
import sources

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
_ENTRY = re.compile(r"^::: (\S+)\n(?P<options>(?: .*\n)*)", re.MULTILINE)
ENTRIES = {match[1]: match["options"] for page in PAGES for match in _ENTRY.finditer(page.read_text() + "\n")}
NAMES = [f"{module.__name__}.{name}" for module in (ds, collectors, reducers, sources) for name in module.__all__]


@pytest.mark.parametrize("name", NAMES)
def test_reference_has_every_public_name(name):
    """The name stands on a page, alone or with its whole module."""
    assert name in ENTRIES or name.rpartition(".")[0] in ENTRIES


@pytest.mark.parametrize("name", NAMES)
def test_reference_entries_have_something_to_show(name):
    """What is public has a docstring of its own."""
    assert pydoc.locate(name).__doc__


@pytest.mark.parametrize("entry", sorted(ENTRIES))
def test_reference_entries_exist(entry):
    """A page names nothing that was renamed or removed."""
    assert pydoc.locate(entry) is not None


@pytest.mark.parametrize("stream", ["Stream", "IntStream", "LongStream", "DoubleStream"])
def test_reference_shows_what_streams_share(stream):
    """`filter` and its like stand in a base class, and are shown for each type of stream."""
    assert "inherited_members: true" in ENTRIES[f"dstream.{stream}"]
