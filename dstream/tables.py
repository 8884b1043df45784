"""Small tables of items: as text for terminals and files, as HTML for notebooks."""

from __future__ import annotations

import dataclasses
import io
import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from dstream.failures import shown

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

__all__ = ["Rows", "brief", "caption", "html_table", "print_brief", "print_whole", "rows_of_items"]

_WIDEST = 60
_NARROWEST = 10
_WIDTH = 100
"""How wide a table may be where there is no terminal, so that a log looks the same everywhere."""


class Rows(NamedTuple):
    """What a table holds.

    Attributes:
        columns: their names.
        cells: one sequence of values for each row; `ABSENT` where a row has no such value.
    """

    columns: Sequence[str]
    cells: Sequence[Sequence[object]]


class _Absent:
    """Stands where an item has no value for a column."""

    def __repr__(self) -> str:
        return ""


ABSENT = _Absent()


def rows_of_items(items: Sequence[object]) -> Rows:
    """Divide items into columns if all are of one shape; otherwise they stand in the one column `item`.

    Fields of a dataclass or a namedtuple, the keys of dicts, and the places of tuples are columns.

    Example:
        >>> rows_of_items([{"a": 1}, {"b": 2}]).columns
        ['a', 'b']
        >>> rows_of_items([1, "one"]).columns
        ['item']
    """
    kinds = {type(item) for item in items}
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
    if len(set(names)) < len(names):
        names = [shown(key) for key in keys]
    return Rows(names, [[item.get(key, ABSENT) for key in keys] for item in items])


def _tuples(items: Sequence[Any]) -> Rows:
    return Rows([str(place) for place in range(len(items[0]))], items) if items[0] else _one_column(items)


def _one_column(items: Sequence[object]) -> Rows:
    return Rows(["item"], [[item] for item in items])


def caption(count: int, unit: tuple[str, str], *, more: bool) -> str:
    """Say how many are shown, and whether there are more.

    Example:
        >>> caption(2, ("item", "items"), more=True)
        'the first 2 items; there are more'
    """
    counted = f"{count} {unit[count != 1]}"
    return f"the first {counted}; there are more" if more else counted if count else f"no {unit[1]}"


def brief(value: object) -> str:
    """Return the `repr` of `value` in one line, cut at 60 characters; never raises."""
    return _brief_text(shown(value))


def _brief_text(text: str) -> str:
    line = _printable(" ".join(text.split("\n")))
    return line if len(line) <= _WIDEST else line[: _WIDEST - 3] + "..."


def print_brief(title: str, rows: Rows, note: str) -> None:
    """Print rows with one line for each; what does not fit the width is cut, columns are left out from the end.

    Args:
        title: stands above.
        rows: what is shown.
        note: stands below.
    """
    width = _width()
    fitting = max(1, width // _NARROWEST)
    if len(rows.columns) > fitting:
        hidden = rows.columns[fitting:]
        note += f"; {len(hidden)} more column{'s' if len(hidden) > 1 else ''}: {_brief_text(', '.join(hidden))}"
    table = _table(rows.columns[:fitting], lines=False)
    for row in rows.cells:
        table.add_row(*(_line(brief(value)) for value in row[:fitting]))
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
    """Print text, or show it as a table of HTML if what is printed goes into a notebook."""
    if not type(sys.stdout).__module__.startswith("ipykernel."):
        print(text, end="")
        return
    from IPython.display import display

    display({"text/plain": text, "text/html": table}, raw=True)  # type: ignore[no-untyped-call]


def _one_line_for_each_value(rows: Rows) -> Rows:
    cells = [
        [_Written(str(number)), _Written(name), value]
        for number, row in enumerate(rows.cells)
        for name, value in zip(rows.columns, row, strict=True)
        if value is not ABSENT
    ]
    return Rows(["", "column", "value"], cells)


class _Written(str):
    """A text that is shown as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _whole(value: object) -> str:
    try:
        return repr(value)
    except Exception:
        return shown(value)


def _printable(text: str, kept: str = "") -> str:
    """Escape what would move the cursor or change colours."""
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
    """Return text that stays in one line. A column that may not wrap could lose its neighbours (rich 15)."""
    text = _text(plain)
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _text(plain: str) -> Text:
    """Return text in which `[red]` and `:smile:` are what they are."""
    from rich.text import Text

    return Text(plain)


def _printed(title: str, table: Table, note: str, width: int) -> str:
    """Return plain text: the same in a terminal, in a notebook and in a file."""
    from rich.console import Console

    page = _Page(sys.stdout)
    console = Console(file=page, width=width, color_system=None, force_terminal=False, force_jupyter=False, _environ={})
    console.print(_text(title), overflow="fold")
    if table.row_count:
        console.print(table)
    console.print(_text(f"({note})"), overflow="fold")
    lines = "".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines())
    return lines.encode(page.encoding, "backslashreplace").decode(page.encoding)


class _Page(io.StringIO):
    """Text that will go to a stream, in its encoding: rich draws with ASCII if it must."""

    encoding = "utf-8"

    def __init__(self, stream: IO[str]) -> None:
        super().__init__()
        self.encoding = getattr(stream, "encoding", None) or "utf-8"


def _width() -> int:
    try:
        is_terminal = sys.stdout.isatty()
    except (AttributeError, ValueError):
        is_terminal = False
    if not is_terminal:
        return _WIDTH
    from shutil import get_terminal_size  # here: few programs print tables

    return max(get_terminal_size().columns, 2 * _NARROWEST)


def html_table(title: str, rows: Rows, rest: str = "") -> str:
    """Write rows as HTML, with a caption above and, below, a word about what is not shown."""
    from html import escape  # here: few programs show tables in notebooks

    head = "".join(f"<th>{escape(column)}</th>" for column in rows.columns)
    lines = "".join(f"<tr>{''.join(f'<td>{escape(brief(value))}</td>' for value in row)}</tr>" for row in rows.cells)
    foot = f'<tfoot><tr><td colspan="{len(rows.columns)}">{escape(rest)}</td></tr></tfoot>' if rest else ""
    title = escape(title)
    return f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{lines}</tbody>{foot}</table>"
