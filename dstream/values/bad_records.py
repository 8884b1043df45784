"""Records of files that failed to parse, dead letters, and lines whose bytes are decoded on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

__all__ = ["BadRecord", "DeadLetter", "EncodedLines"]


@dataclass(frozen=True)
class DeadLetter:
    """An item that a step failed on, for the reducer of `stream.on_error(kinds, into=reducer)`.

    Attributes:
        item: the input of the step; its `repr` if it cannot be pickled; for a source the `BadRecord`.
        error: the name of the exception's class.
        message: the message of the exception.
        step: the call that made the step, such as `.map(parse)`.
        where: the file and line of that call; empty if unknown.

    Example:
        >>> DeadLetter("x", "ValueError", "no number", ".map(parse)", "orders.py:7").item
        'x'
    """

    item: Any
    error: str
    message: str
    step: str
    where: str


@dataclass(frozen=True)
class BadRecord:
    r"""A record that a source failed to parse: the `item` of its `DeadLetter`.

    Attributes:
        path: the file, absolute or a URL.
        line: where it begins, from 1; in a format without lines, the number of the record.
        text: the content; bytes that cannot be decoded are escaped as `\xe9`, and a long text is truncated.

    Example:
        >>> BadRecord("/data/orders.csv", 7, "12,x").line
        7
    """

    path: str
    line: int
    text: str


class EncodedLines(Sequence[str]):
    r"""Lines of a text, in UTF-8.

    Attributes:
        data: the lines, each followed by "\n", which occurs nowhere else.
        is_ascii: each byte is a character.
        are_few: their reader reads few other lines.

    Example:
        >>> lines = EncodedLines(b"sea\nwhale\n", is_ascii=True)
        >>> len(lines), lines[1], list(lines)
        (2, 'whale', ['sea', 'whale'])
    """

    __slots__ = ("_lines", "are_few", "data", "is_ascii")

    def __init__(self, data: bytes, *, is_ascii: bool, are_few: bool = False) -> None:
        self.data = data
        self.is_ascii = is_ascii
        self.are_few = are_few
        self._lines: list[str] | None = None

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        return self._texts()[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts())

    def __len__(self) -> int:
        return self.data.count(b"\n") if self._lines is None else len(self._lines)

    def _texts(self) -> list[str]:
        if self._lines is None:
            # Not `splitlines`, which also cuts at characters such as U+2028. An empty string follows the last line.
            self._lines = self.data.decode().split("\n")
            self._lines.pop()
        return self._lines
