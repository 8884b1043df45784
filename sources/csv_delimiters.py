"""Other delimiters than the one with which a CSV file is read, as far as its lines show that one of them is meant."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from typing import Any

from dstream.errors import SourceError
from sources.forms import FormOfItem
from sources.kinds import missing_columns
from sources.names import repeated

__all__ = ["OtherDelimiters", "blank_sep_line"]

_USUAL = (";", "\t", "|", ",")
_SEP = re.compile("\ufeff?sep=(.)[\r\n]*", re.IGNORECASE)


class OtherDelimiters:
    """Words of errors about delimiters.

    Args:
        dialect: what `csv.reader` takes; its delimiter is the one with which the file is read.
    """

    def __init__(self, dialect: dict[str, Any]) -> None:
        signs = dialect["delimiter"], dialect["quotechar"]
        self._dialects = [{**dialect, "delimiter": each} for each in _USUAL if each not in signs]
        self._header: list[tuple[dict[str, Any], int]] = []

    def of_names(self, header: str, names: Sequence[str], form: FormOfItem | None) -> str:
        """Return what to say of a header that lacks fields of a form; nothing if no other delimiter gives them."""
        for dialect in self._dialects:
            [found] = _rows([header], dialect) or [[]]
            if len(found) > 1 and (len(names) == 1 or not missing_columns(form, found)):
                return f": delimiter={dialect['delimiter']!r} gives {', '.join(found)}"
        return ""

    def of_row(self, text: str, count: int) -> str:
        """Return what to say of a row that has another number of fields than `count`, or of which no row is made."""
        return self._advice(text, self._header if count == 1 else [(dialect, count) for dialect in self._dialects])

    def of_torn_header(self, text: str) -> str:
        """Return what to say of a header of which the csv module makes no row."""
        return self._advice(text, [(dialect, 0) for dialect in self._dialects])

    def _advice(self, text: str, likely: Iterable[tuple[dict[str, Any], int]]) -> str:
        for dialect, fields in likely:
            counts = [len(row) for row in _rows([text], dialect)]
            if len(counts) == 1 and (counts[0] == fields or (not fields and counts[0] > 1)):
                return f": delimiter={dialect['delimiter']!r} gives {counts[0]} fields"
        return ""

    def remember_header(self, header: str, names: Sequence[str]) -> None:
        """Note which delimiters make several columns of a header that is one; in quotes it is meant to be one."""
        if list(names) == [header]:
            for dialect in self._dialects:
                [found] = _rows([header], dialect) or [[]]
                if len(found) > 1 and all(found) and not repeated(found):
                    self._header.append((dialect, len(found)))

    @property
    def are_likely(self) -> bool:
        """Whether the header makes one of them likely."""
        return bool(self._header)

    def refuse_single_column(self, where: str, header: str, lines: Iterable[str]) -> None:
        """Refuse a header of one column if another delimiter gives it and half of the first rows as many fields each.

        Raises:
            SourceError: it does; the message names the delimiter.
        """
        lines = list(lines)
        for dialect, fields in self._header:
            rows = list(filter(None, _rows(lines, dialect)))
            if rows and 2 * sum(len(row) == fields for row in rows) >= len(rows):
                raise SourceError(
                    f"{where}: the header is one column, {header!r}: delimiter={dialect['delimiter']!r} reads {fields} "
                    "columns (quotes around the name make it one)"
                )


def _rows(lines: Iterable[str], dialect: dict[str, Any]) -> list[list[str]]:
    try:
        return list(csv.reader(lines, **dialect))
    except csv.Error:
        return []


def blank_sep_line(name: str, lines: list[str], delimiter: str) -> None:
    r"""Make a blank line, which is skipped, of a first one that names the delimiter, as Excel writes and reads it.

    Args:
        name: that of the file.
        lines: the first of the file, with their ends; changed in place.
        delimiter: the one with which the file is read.

    Raises:
        SourceError: the line names another one.

    Example:
        >>> lines = ["sep=;\n", "a;b\n"]
        >>> blank_sep_line("a.csv", lines, ";")
        >>> lines
        ['\n', 'a;b\n']
    """
    if not lines or (found := _SEP.fullmatch(lines[0])) is None:
        return
    if found[1] != delimiter:
        line = found[0].strip("\ufeff\r\n")
        raise SourceError(
            f"{name}, line 1: {line!r} names the delimiter of the file, as for Excel: "
            f"delimiter={found[1]!r} reads it, and skips this line (quotes around it make it a field)"
        )
    lines[0] = "\n"
