"""Small tables of a collection, for terminals and for notebooks."""

from __future__ import annotations

import html
from collections.abc import Sequence

from dstream.failures import shown

__all__ = ["brief", "html_table", "text_table"]

_WIDEST = 60


def brief(value: object) -> str:
    """Return the `repr` of `value` in one line, cut at 60 characters; never raises."""
    text = " ".join(shown(value).split("\n"))
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."


def text_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Write rows below their columns, each as wide as it needs to be.

    Example:
        >>> print(text_table(["key", "value"], [("whale", 3), ("sea", 12)]))
        key      value
        -------  -----
        'whale'  3
        'sea'    12
    """
    cells = [list(columns), *([brief(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in cells)


def html_table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[object]], rest: str = "") -> str:
    """Write the same as HTML, with a caption above and, below, a word about what is not shown."""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    lines = "".join(f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in rows)
    foot = f'<tfoot><tr><td colspan="{len(columns)}">{html.escape(rest)}</td></tr></tfoot>' if rest else ""
    return (
        f"<table><caption>{html.escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{lines}</tbody>{foot}</table>"
    )


def _cell(value: object) -> str:
    return f"<td>{html.escape(brief(value))}</td>"
