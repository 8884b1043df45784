"""Parts of the caller's items that run code of the program when a function looks at them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from typing import Any

import pytest

import dstream as ds

SIZE = 1_100
"""Enough to read functions."""


@pytest.fixture(scope="module")
def context() -> Iterator[ds.Context]:
    """Return a context whose plans run in this process."""
    with ds.connect(storage="memory:", local_limit=1000) as ctx:
        yield ctx


class Asked:
    """Has a function of its own by a name that dictionaries have a method by."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.get = self._count

    def _count(self, name: str) -> int:
        self.n += 1
        return self.n


class Key(str):
    """Counts how often it is compared."""

    __slots__ = ("compared",)
    compared: int

    def __eq__(self, other: object) -> bool:
        self.compared += 1
        return str(self) == other

    __hash__ = str.__hash__


class Zone(tzinfo):
    """Counts how often it is asked."""

    asked = 0

    def utcoffset(self, instant: datetime | None) -> timedelta:
        self.asked += 1
        return timedelta(0)

    def __reduce__(self) -> Any:
        return Zone, ()


def test_parts_that_run_code_of_the_program_are_copied(context):
    """A function in an attribute, a key of a dictionary, and a time zone: the caller's own are left alone."""
    objects = [Asked(n) for n in range(SIZE)]
    assert context.stream(objects).filter(lambda item: item.get("n") > 5).count() == SIZE - 5
    assert [each.n for each in objects] == [*range(SIZE)]

    key = Key("n")
    key.compared = 0
    rows = [{key: n} for n in range(SIZE)]
    key.compared = 0
    assert context.stream(rows).filter(lambda item: item["n"] > 5).count() == SIZE - 6
    assert key.compared == 0

    zone = Zone()
    times = [{"at": datetime(2024, 1, 1, tzinfo=zone)} for _ in range(SIZE)]
    found = context.stream(times).filter(lambda item: item["at"].isoformat() != "").to_list()
    assert (len(found), zone.asked) == (SIZE, 0)
    assert found[0]["at"].tzinfo is not zone
    assert context.stream([each["at"] for each in times]).first().get().tzinfo is not zone
