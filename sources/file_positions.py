"""Positions in files that grow: how far one was read, and whether it is still the same file."""

from __future__ import annotations

import hashlib
import os
from typing import Any, NamedTuple

from dstream.errors import SourceError

__all__ = ["NOTHING_READ", "Position", "end_of_lines", "is_of", "position_at"]

HEAD = 256
"""So many bytes at its start, or as many as were read, tell a file from another one with its inode."""
_BLOCK = 256 << 10


class Position(NamedTuple):
    """Where a line begins.

    Attributes:
        generation: how often the file was truncated or written anew.
        byte: how many bytes of it stand before.
        head: how many of its first bytes are known.
        known: their hash.
    """

    generation: int
    byte: int
    head: int
    known: str

    def plain(self) -> list[Any]:
        """Return it as JSON has it."""
        return list(self)

    @staticmethod
    def of(offset: Any, label: str) -> Position:
        """Return the position of an offset, which was kept anywhere; None: the start.

        Raises:
            SourceError: it is none.
        """
        match offset:
            case None:
                return NOTHING_READ
            case [int(generation), int(byte), int(head), str(known)] if 0 <= head <= byte and generation >= 0:
                return Position(generation, byte, head, known)
        raise SourceError(f"{label}: {offset!r} is no offset of a file")


NOTHING_READ = Position(0, 0, 0, "")


def position_at(path: str, generation: int, byte: int) -> Position:
    """Return the position behind so many bytes of a file."""
    head = min(byte, HEAD)
    return Position(generation, byte, head, _hash(path, head))


def is_of(path: str, position: Position) -> bool:
    """Say whether a position is one of the file as it is now."""
    return os.stat(path).st_size >= position.byte and _hash(path, position.head) == position.known


def _hash(path: str, size: int) -> str:
    if not size:
        return ""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read(size)).hexdigest()[:32]


def end_of_lines(path: str, start: int, most: int | None) -> int:
    r"""Return where the last line ends that has its "\n", behind `start`.

    Args:
        path: of the file.
        start: where a line begins.
        most: at most so many lines; None: all that are there.
    """
    with open(path, "rb") as file:
        return _last_end(file, start) if most is None else _end_of_some(file, start, most)


def _last_end(file: Any, start: int) -> int:
    """Look from the end, a block at a time."""
    stop = file.seek(0, os.SEEK_END)
    while stop > start:
        first = max(start, stop - _BLOCK)
        file.seek(first)
        place = file.read(stop - first).rfind(b"\n")
        if place >= 0:
            return int(first + place + 1)
        stop = first
    return start


def _end_of_some(file: Any, start: int, most: int) -> int:
    end = read = int(file.seek(start))
    while most > 0 and (piece := file.readline(_BLOCK)):
        read += len(piece)
        if piece.endswith(b"\n"):
            end, most = read, most - 1
    return end
