"""The page for those who come from Java names only what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import collectors
import dstream as ds
import reducers
from dstream.spi import Collector
from dstream.stream import StreamBuilder
from dstream.values import IntSummaryStatistics

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from-java.md").read_text()
CALL = re.compile(r"`(?:\w+\.)*(\w+)\(")
NAMED = sorted(
    {name for line in PAGE.splitlines() if line.startswith("| `") for name in CALL.findall(line.split("|")[2])}
)
HOMES = [
    ds,
    ds.Stream,
    ds.IntStream,
    ds.Optional,
    ds.Context,
    StreamBuilder,
    IntSummaryStatistics(),
    Collector,
    ds.IStreamMap,
    ds.IStreamList,
    collectors,
    reducers,
]


def test_docs_java_page_has_a_table():
    """The names below are really found, so that the next test cannot pass for lack of cases."""
    assert {"map_multi", "grouping_by", "or_else_throw", "range_closed"} <= set(NAMED)


@pytest.mark.parametrize("name", sorted({*NAMED} - {"iter", "hash", "repr"}))
def test_docs_java_page_names_what_exists(name):
    """Each call in the second column of a table is a method or a collector; the three left out are built-ins."""
    assert any(hasattr(home, name) for home in HOMES)
