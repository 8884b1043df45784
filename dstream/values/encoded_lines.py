"""`EncodedLines`: lines of a text as bytes, which become texts when somebody asks for one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

__all__ = ["EncodedLines"]


class EncodedLines(Sequence[str]):
    r"""Lines of a text, in UTF-8.

    Attributes:
        data: the lines, each followed by "\n", which stands nowhere else.
        is_ascii: each byte is a character.
        are_few: whoever reads them reads few others.

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
            self._lines = self.data.decode().split("\n")
            self._lines.pop()
        return self._lines
