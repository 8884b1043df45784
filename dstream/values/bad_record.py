"""`BadRecord`: what stands in a file where a record should stand."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BadRecord"]


@dataclass(frozen=True)
class BadRecord:
    r"""A record that a source could not make an item of: the `item` of its `DeadLetter`.

    Attributes:
        path: the file, absolute or a URL.
        line: where it begins, from 1; in a format without lines, the number of the record.
        text: what stands there; bytes that are no text are written as `\xe9`, and a long text is cut.

    Example:
        >>> BadRecord("/data/orders.csv", 7, "12,x").line
        7
    """

    path: str
    line: int
    text: str
