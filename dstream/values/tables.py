"""Tables of items: text for terminals and files, HTML for notebooks."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import io
import sys
import uuid
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from dstream.failures import shown
from dstream.values.bad_records import BadRecord, DeadLetter

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

__all__ = [
    "Rows",
    "Verbatim",
    "brief",
    "caption",
    "html_of_tables",
    "html_table",
    "print_brief",
    "print_whole",
    "rows_of_items",
    "rows_under",
]


_NARROWEST = 10


class Rows(NamedTuple):
    """The contents of a table.

    Attributes:
        columns: their names.
        cells: one sequence of values for each row; `ABSENT` where a row has no such value.
        brief: how many columns a table with one line for each row shows at most; None: all that fit.
    """

    columns: Sequence[str]
    cells: Sequence[Sequence[object]]
    brief: int | None = None


class _Absent:
    """The cell of an item that has no value for a column."""

    def __repr__(self) -> str:
        return ""


ABSENT = _Absent()


def rows_of_items(items: Sequence[object]) -> Rows:
    """Divide items into columns if all have the same shape; otherwise put them in a single column `item`.

    Fields of a dataclass or a namedtuple, the keys of dicts, and the positions of tuples are columns.

    Example:
        >>> rows_of_items([{"a": 1}, {"b": 2}]).columns
        ['a', 'b']
        >>> rows_of_items([1, "one"]).columns
        ['item']
    """
    kinds = {type(item) for item in items}
    if kinds == {DeadLetter}:
        return _letters(items)
    if len(kinds) == 1:
        (kind,) = kinds
        names = _fields(kind)
        if names:
            return Rows(names, [[_field(item, name) for name in names] for item in items])
    if all(isinstance(item, dict) for item in items):
        return _dicts(items)
    if all(type(item) is tuple for item in items) and len({len(item) for item in items}) == 1:  # type: ignore[arg-type]
        return _tuples(items)
    return _one_column(items)


def rows_under(columns: Sequence[str], cells: Sequence[Sequence[object]]) -> Rows:
    """Return rows of a collection under its columns; dead letters in the last one are divided into their parts."""
    if not cells or {type(row[-1]) for row in cells} != {DeadLetter}:
        return Rows(columns, cells)
    before, letters = len(columns) - 1, _letters([row[-1] for row in cells])
    divided = [[*row[:-1], *parts] for row, parts in zip(cells, letters.cells, strict=True)]
    return Rows([*columns[:-1], *letters.columns], divided, before + (letters.brief or 0))


def _letters(letters: Sequence[Any]) -> Rows:
    """Return dead letters, the most informative columns first: for files the location of the record and its text."""
    if {type(letter.item) for letter in letters} == {BadRecord}:
        records: list[tuple[object, ...]] = [
            (_Place(letter.item.path), letter.item.line, letter.item.text) for letter in letters
        ]
        names = ["path", "line", "text"]
    else:
        records = [(letter.item,) for letter in letters]
        names = ["item"]
    about = [[*map(Verbatim, (_message(letter), letter.error, letter.step, letter.where))] for letter in letters]
    cells = [[*record, *words] for record, words in zip(records, about, strict=True)]
    return Rows([*names, "message", "error", "step", "where"], cells, len(names) + 1)


def _message(letter: DeadLetter) -> str:
    """Return the message of the exception, without the location, which has separate columns."""
    match letter.item:
        case BadRecord(path=path, line=line):
            return letter.message.removeprefix(f"{path}, line {line}: ")
    return letter.message


def _fields(kind: type) -> list[str]:
    """Return the fields that the `repr` of `kind` would show."""
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind) if field.repr]
    return list(getattr(kind, "_fields", ())) if issubclass(kind, tuple) else []


def _field(item: object, name: str) -> object:
    try:
        return getattr(item, name)
    except Exception:
        return ABSENT  # A field that was never set, as `__slots__` allow.


def _dicts(items: Sequence[Any]) -> Rows:
    keys = list(dict.fromkeys(key for item in items for key in item))
    if not keys:
        return _one_column(items)
    names = [key if isinstance(key, str) else shown(key) for key in keys]
    # Keys such as 1 and "1" would have the same name.
    if len(set(names)) < len(names):
        names = [shown(key) for key in keys]
    return Rows(names, [[item.get(key, ABSENT) for key in keys] for item in items])


def _tuples(items: Sequence[Any]) -> Rows:
    return Rows([str(place) for place in range(len(items[0]))], items) if items[0] else _one_column(items)


def _one_column(items: Sequence[object]) -> Rows:
    return Rows(["item"], [[item] for item in items])


def caption(count: int, unit: tuple[str, str], *, more: bool) -> str:
    """Return the number of rows that are shown, in words, and whether there are more.

    Example:
        >>> caption(2, ("item", "items"), more=True)
        'the first 2 items; there are more'
    """
    counted = f"{count} {unit[count != 1]}"
    return f"the first {counted}; there are more" if more else counted if count else f"no {unit[1]}"


def brief(value: object) -> str:
    """Return the `repr` of `value` in one line, cut at 60 characters; never raises."""
    return _brief_text(shown(value))


_WIDEST = 60


def _brief_text(text: str) -> str:
    line = _printable(" ".join(text.split("\n")))
    return line if len(line) <= _WIDEST else line[: _WIDEST - 3] + "..."


def _cell(value: object) -> str:
    """Return a value for a table: its `repr`, or its `str` where that reads better."""
    if not isinstance(value, _BY_STR):
        return shown(value)
    try:
        return str(value)
    except Exception:  # A class of the user's may raise anything.
        return shown(value)


_BY_STR = (datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, uuid.UUID)


def _brief_cell(value: object) -> str:
    """Return a value in one line, cut at its end, and a path at its beginning."""
    text = _cell(value)
    if isinstance(value, _Place) and len(text) > _LONGEST_PATH:
        text = f"...{text[3 - _LONGEST_PATH :]}"
    return _brief_text(text)


_LONGEST_PATH = 30


def _divided(rows: Rows) -> Rows:
    """Return rows with columns of pairs and similar tuples divided into several columns, as both sides of a join."""
    columns: list[str] = []
    cells: list[list[object]] = [[] for _ in rows.cells]
    for place, name in enumerate(rows.columns):
        values = [row[place] for row in rows.cells]
        sizes = {len(value) if type(value) is tuple else 0 for value in values}
        parts = sizes.pop() if len(sizes) == 1 else 0
        if not 2 <= parts <= _MOST_PARTS:
            columns.append(name)
            for row, value in zip(cells, values, strict=True):
                row.append(value)
            continue
        columns += [f"{name}.{part}" for part in range(parts)]
        for row, value in zip(cells, values, strict=True):
            row.extend(value)  # type: ignore[arg-type]  # They are tuples.
    return rows._replace(columns=columns, cells=cells)


_MOST_PARTS = 4
"""Maximal number of sides of a join that become separate columns."""


def print_brief(title: str, rows: Rows, note: str) -> None:
    """Print rows with one line for each; cells wider than the window are cut, columns are left out from the end.

    Args:
        title: the line above.
        rows: what is shown.
        note: the line below.
    """
    width = _width()
    rows = _divided(rows)
    fitting = min(max(1, width // _NARROWEST), rows.brief or len(rows.columns))
    if len(rows.columns) > fitting:
        hidden = rows.columns[fitting:]
        note += f"; {len(hidden)} more column{'s' if len(hidden) > 1 else ''}: {_brief_text(', '.join(hidden))}"
    table = _table(rows.columns[:fitting], lines=False)
    for row in rows.cells:
        table.add_row(*(_line(_brief_cell(value)) for value in row[:fitting]))
    _show(_printed(title, table, note, width), html_table(title, rows, note))


def print_whole(title: str, rows: Rows, note: str) -> None:
    """Print rows with whole values, folded over lines; with many columns, one line for each value."""
    width = _width()
    if len(rows.columns) > max(1, width // (2 * _NARROWEST)):
        rows = _one_line_for_each_value(rows)
    table = _table(rows.columns, lines=True)
    for row in rows.cells:
        table.add_row(*(_text(_printable(_whole(value), "\n")) for value in row))
    print(_printed(title, table, note, width), end="")


def _show(text: str, table: str) -> None:
    """Print text, or show it as a table of HTML if printed output is shown in a notebook."""
    if not type(sys.stdout).__module__.startswith("ipykernel."):
        print(text, end="")
        return
    from IPython.display import display

    display({"text/plain": text, "text/html": table}, raw=True)  # type: ignore[no-untyped-call]


def _one_line_for_each_value(rows: Rows) -> Rows:
    cells = [
        [Verbatim(str(number)), Verbatim(name), value]
        for number, row in enumerate(rows.cells)
        for name, value in zip(rows.columns, row, strict=True)
        if value is not ABSENT
    ]
    return Rows(["", "column", "value"], cells)


class Verbatim(str):
    """A text that is shown verbatim."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class _Place(Verbatim):
    """A path, which is truncated at its start."""

    __slots__ = ()


def _whole(value: object) -> str:
    try:
        return str(value) if isinstance(value, _BY_STR) else repr(value)
    except Exception:
        return shown(value)


def _printable(text: str, kept: str = "") -> str:
    """Escape characters that would move the cursor or change colours."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in kept else repr(char)[1:-1] for char in text)


def _table(columns: Sequence[str], *, lines: bool) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.HORIZONTALS if lines else box.SIMPLE_HEAD, show_edge=False, show_lines=lines, pad_edge=False)
    for name in columns:
        table.add_column(_line(_brief_text(name)), overflow="fold")
    return table


def _line(plain: str) -> Text:
    """Return text that does not wrap. A column without wrapping could drop its neighbours (rich 15)."""
    text = _text(plain)
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _text(plain: str) -> Text:
    """Return text in which `[red]` and `:smile:` are literal."""
    from rich.text import Text

    return Text(plain)


def _printed(title: str, table: Table, note: str, width: int) -> str:
    """Return plain text: the same in a terminal, in a notebook and in a file."""
    from rich.console import Console

    page = _Page(sys.stdout)
    # Without an environment: rich (15) reads variables such as COLUMNS and NO_COLOR.
    console = Console(file=page, width=width, color_system=None, force_terminal=False, force_jupyter=False, _environ={})
    console.print(_text(title), overflow="fold")
    if table.row_count:
        console.print(table)
    console.print(_text(f"({note})"), overflow="fold")
    lines = "".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines())
    # A stream of another encoding would raise on characters that it lacks.
    return lines.encode(page.encoding, "backslashreplace").decode(page.encoding)


class _Page(io.StringIO):
    """Text buffer with the encoding of its destination: rich draws with ASCII if needed."""

    encoding = "utf-8"

    def __init__(self, stream: IO[str]) -> None:
        super().__init__()
        self.encoding = getattr(stream, "encoding", None) or "utf-8"


_WIDTH = 100
"""The width of a table without a terminal, so that logs are the same everywhere."""


def _width() -> int:
    try:
        is_terminal = sys.stdout.isatty()
    except (AttributeError, ValueError):  # `sys.stdout` may be None, or closed.
        is_terminal = False
    if not is_terminal:
        return _WIDTH
    from shutil import get_terminal_size  # imported on use: few programs print tables

    return max(get_terminal_size().columns, 2 * _NARROWEST)


def html_table(title: str, rows: Rows, rest: str = "") -> str:
    """Write rows as HTML, with a caption above and, below, a word about the rows that are not shown."""
    from html import escape  # imported on use: few programs show tables in notebooks

    rows = _divided(rows)
    head = "".join(f"<th>{escape(column)}</th>" for column in rows.columns)
    lines = "".join(
        f"<tr>{''.join(f'<td>{escape(_brief_cell(value))}</td>' for value in row)}</tr>" for row in rows.cells
    )
    foot = f'<tfoot><tr><td colspan="{len(rows.columns)}">{escape(rest)}</td></tr></tfoot>' if rest else ""
    title = escape(title)
    return f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{lines}</tbody>{foot}</table>"


def html_of_tables(title: str, tables: Iterable[Table]) -> str:
    """Write tables of `rich` as HTML, one below the other; the caption is above the first one."""
    captions = chain([title], repeat(""))
    return "".join(html_table(title, _rows_of(table)) for title, table in zip(captions, tables, strict=False))


def _rows_of(table: Table) -> Rows:
    columns = [[Verbatim(cell) for cell in column.cells] for column in table.columns]
    return Rows([str(column.header) for column in table.columns], list(zip(*columns, strict=True)))
