"""How the values of each type return from each format: one table, which the documentation shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.values.types_in_formats import FORMATS, ROWS, answer

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "types.md"

TABLE = r"""
type               csv       json  json.read  parquet   avro      delta     sql  arrow  pandas  map  table  sqlite
int                =         =     =          =         =         =         =    =      =       =    =      =
int of 65 bits     =         =     =          run       run       run       run  run    run     =    run    =
float              =         =     =          =         =         =         =    =      =       =    =      =
float inf          =         =     -          =         =         =         =    =      =       =    =      =
float nan          =         =     -          =         =         =         run  =      read    =    =      =
bool               =         =     =          =         =         =         =    =      =       =    =      =
str                =         =     =          =         =         =         =    =      =       =    =      =
str with \0        run       =     =          =         =         =         =    =      =       =    =      =
str, surrogate     run       =     -          run       run       run       run  run    run     =    run    =
bytes              =         =     -          =         =         =         =    =      =       =    =      =
Decimal            =         =     =          =*        =*        =*        =*   =*     =*      =    =      =
Decimal 39 digits  =         =     =          run       run       run       =*   =      =       =    =      =
Decimal NaN        =         =     -          run       run       run       run  run    run     =    =      =
Fraction           =         =     =          =         =         =         =    =      =       =    =      =
date               =         =     =          =         =         =         =    =      =       =    =      =
time               =         =     =          =         =         run       =    =      =       =    =      =
time, zone         =         =     =          run       run       run       =    run    run     =    run    =
datetime           =         =     =          =         =         =         =    =      =       =    =      =
datetime, UTC      =         =     =          =*        =         =*        =    =*     =*      =    =*     =
datetime, zone     =*        =*    =*         =*        =*        =*        =*   =      =       =    =      =
timedelta          =         =     =          =         run       run       =    =      =       =    =      =
timedelta.max      =         =     =          run       run       run       =    run    run     =    run    =
UUID               =         =     =          =         =         run       =    =      =       =    =      =
Enum               =         =     =          =         =         =         =    =      =       =    =      =
IntEnum            =         =     =          =         =         =         =    =      =       =    =      =
StrEnum            =         =     =          =         =         =         =    =      =       =    =      =
Literal            =         =     =          =         =         =         =    =      =       =    =      =
Path               =         =     =          =         =         =         =    =      =       =    =      =
IPv4Address        =         =     =          =         =         =         =    =      =       =    =      =
IPv6Address        =         =     =          =         =         =         =    =      =       =    =      =
list[int]          run/call  =     =          =         =         =         =    =      =       =    =      =
list[date]         run/call  =     =          =         =         =         =    =      =       =    =      =
list[Enum]         run/call  =     =          =         =         =         =    =      =       =    =      =
list[dataclass]    run/call  =     =          =         =         =         =    =      =       =    =      =
tuple[int, ...]    run/call  =     =          =         =         =         =    =      =       =    =      =
tuple[int, str]    run/call  =     =          run/call  run/call  run/call  =    run    run     =    run    =
tuple[int, int]    run/call  =     =          =         =         =         =    =      =       =    =      =
set[str]           run/call  =     =          =         =         =         =    =      =       =    =      =
frozenset[int]     run/call  =     =          =         =         =         =    =      =       =    =      =
dict[str, int]     run/call  =     =          =         =         =         =    =      =       =    =      =
dict[int, str]     run/call  =     =          =         run       =         =    =      =       =    =      =
dict[str, date]    run/call  =     =          =         =         =         =    =      =       =    =      =
dict to None       run/call  =     =          =         =         =         =    =      =       =    =      =
int or None        =         =     =          =         =         =         =    =      =       =    =      =
int or None, big   =         =     =          =         =         =         =    =      =       =    =      =
bool or None       =         =     =          =         =         =         =    =      =       =    =      =
str or None        =         =     =          =         =         =         =    =      =       =    =      =
date or None       =         =     =          =         =         =         =    =      =       =    =      =
float or None      =         =     -          =         =         =         run  =      =       =    =      =
Enum or None       =         =     =          =         =         =         =    =      =       =    =      =
list or None       run/call  =     =          =         =         =         =    =      =       =    =      =
dataclass or None  run/call  =     =          =         =         =         =    =      =       =    =      =
int or str         run       =     =          run/call  run/call  run/call  run  run    run     =    run    =
int or float       =         =     =          run/call  run/call  run/call  run  run    run     =    run    =
bool or int        =         =     =          run/call  run/call  run/call  run  run    run     =    run    =
date or str        run       run   -          run/call  run/call  run/call  run  run    run     =    run    =
dataclass          run/call  =     =          =         =         =         =    =      =       =    =      =
NamedTuple         run/call  =     =          =         =         =         =    =      =       =    =      =
TypedDict          run/call  =     =          =         =         =         =    =      =       =    =      =
pydantic           run/call  =     =          =         =         =         =    =      =       =    =      =
attrs              run/call  =     -          =         =         =         =    =      =       =    =      =
record NamedTuple  =         =     =          =         =         =         =    =      =       =    =      =
record TypedDict   =         =     =          =         =         =         =    =      =       =    =      =
record pydantic    =         =     =          =         =         =         =    =      =       =    =      =
record attrs       =         =     -          =         =         =         =    =      =       =    =      =
"""
"""The codes of `answer`, which the page explains. A change of a cell is made here and on the page."""

HEAD, *LINES = [re.split(r"\s{2,}", line) for line in TABLE.strip().splitlines()]
CELLS = {name: dict(zip(HEAD[1:], codes, strict=True)) for name, *codes in LINES}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_types_return_from_formats_as_the_table_has_it(row, tmp_path):
    """Each format returns the values of the type, or refuses them, as the table has it."""
    assert {name: answer(row, name, tmp_path / name) for name in FORMATS} == CELLS[row.name]


def test_table_of_types_has_each_type_and_each_format():
    """Each type has one line, and each format one column."""
    assert [name for name, *_ in LINES] == [row.name for row in ROWS]
    assert HEAD[1:] == list(FORMATS)


def test_page_of_types_has_the_table():
    """The page has the cells of the table, with `yes` for `=`."""
    cells = [[f"`{name}`", *("yes" if code == "=" else f"`{code}`" for code in codes)] for name, *codes in LINES]
    head = [HEAD[0], *(f"`{name}`" for name in HEAD[1:])]
    shown = [f"| {' | '.join(line)} |" for line in [head, ["---"] * len(HEAD), *cells]]

    assert PAGE.read_text().partition("## The table\n\n")[2].splitlines() == shown
