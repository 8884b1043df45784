"""Checksums: CRC-32 of each block of a data file, and of small files as a whole.

The log contains the checksums of the data files, so that every byte of a file is checked, including its metadata. The
checksums of Parquet itself cover only pages.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from typing import Any
from zlib import crc32

from dstream.filesystem.folders import SizedFile

__all__ = ["BlockSums", "MismatchError", "SummingSink", "checked", "is_sealed", "seal", "sums_of"]


_BLOCK = 256 << 10
"""Bytes under one checksum. What is written with one size cannot be read with another."""
_READ_WHOLE = 1 << 20
_DIGITS = 8


class MismatchError(Exception):
    """The contents of a file differ from those that were written."""


class BlockSums:
    """The checksums of bytes that arrive in pieces."""

    def __init__(self) -> None:
        self._sums = bytearray()
        self._sum = self._filled = 0

    def add(self, data: Any) -> None:
        """Take the next bytes."""
        rest = memoryview(data)
        while len(rest):
            part = rest[: _BLOCK - self._filled]
            self._sum = crc32(part, self._sum)
            self._filled += len(part)
            rest = rest[len(part) :]
            if self._filled == _BLOCK:
                self._end_block()

    def _end_block(self) -> None:
        self._sums += self._sum.to_bytes(4, "big")
        self._sum = self._filled = 0

    def text(self) -> str:
        """Return the checksums of all blocks; no bytes follow."""
        if self._filled:
            self._end_block()
        return b64encode(self._sums).decode()


def sums_of(data: Any) -> str:
    """Return the checksums of complete data."""
    if 0 < len(memoryview(data)) < _BLOCK:  # as of most puts: one sum
        return b64encode(crc32(data).to_bytes(4, "big")).decode()
    sums = BlockSums()
    sums.add(data)
    return sums.text()


class SummingSink:
    """A file that is being written, with the checksums of its blocks."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file
        self.sums = BlockSums()
        self.size = 0

    def write(self, data: Any) -> Any:
        """Write bytes."""
        self.sums.add(data)
        self.size += len(memoryview(data))
        return self._file.write(data)

    def tell(self) -> int:
        """Return how much was written."""
        return self.size

    def flush(self) -> None:
        """Do nothing: the folder flushes when the file is complete."""

    def close(self) -> None:
        """Do nothing: the folder closes the file."""


def checked(file: Any, size: int, sums: str) -> Any:
    """Return a wrapper of an open file for pyarrow that compares each block with its checksum.

    Args:
        file: a seekable file.
        size: its size when it was written.
        sums: its checksums; empty if it was written by another program, or before checksums existed.

    Raises:
        MismatchError: it has another size, or is small and has other bytes. A large one raises that when it is read.
    """
    there = file.seek(0, os.SEEK_END)
    file.seek(0)
    if there != size:
        raise MismatchError(f"it has {there} bytes, and {size} were written")
    if not sums:
        return file
    try:
        blocks = _Blocks(file, size, b64decode(sums))
    except ValueError as error:
        raise MismatchError(f"its checksums in the log are none: {error}") from error
    if size > _READ_WHOLE:
        return blocks
    import pyarrow as pa  # imported on use: a program that writes lines of text needs no pyarrow

    # pyarrow reads the footer and then each column, so a small file is read and verified once.
    return pa.BufferReader(blocks.read())


class _Blocks(SizedFile):
    """A file that is read in whole blocks."""

    def __init__(self, file: Any, size: int, sums: bytes) -> None:
        super().__init__(size)
        self._file, self._sums = file, sums
        self._kept: tuple[int, bytes] = (-1, b"")

    def read(self, size: int | None = -1) -> Any:
        start = self._position
        end = self._size if size is None or size < 0 else min(start + size, self._size)
        if start >= end:
            return b""
        first = start // _BLOCK
        blocks = self._whole_blocks(first, -(-end // _BLOCK))
        self._position = end
        return memoryview(blocks)[start - first * _BLOCK : end - first * _BLOCK]

    def _whole_blocks(self, first: int, end: int) -> bytes:
        """Return a range of blocks. The last block remains in memory, since the next read usually begins in it."""
        number, kept = self._kept
        if number != first:
            kept = b""
        data = kept + self._fetched(first + bool(kept), end)
        self._kept = end - 1, data[(end - 1 - first) * _BLOCK :]
        return data

    def _fetched(self, first: int, end: int) -> bytes:
        start, stop = first * _BLOCK, min(end * _BLOCK, self._size)
        if start >= stop:
            return b""
        self._file.seek(start)
        data = bytes(self._file.read(stop - start))
        view = memoryview(data)
        for number in range(first, end):
            block = view[number * _BLOCK - start : (number + 1) * _BLOCK - start]
            if crc32(block).to_bytes(4, "big") != self._sums[4 * number : 4 * number + 4]:
                raise MismatchError(f"its bytes from {number * _BLOCK} on are not those that were written")
        return data


def seal(head: bytes, rest: bytes, owner: str = "") -> bytes:
    """Return the contents of a small file: `head`, eight digits that are the checksum of `rest`, and `rest`.

    Args:
        head: the prefix of every file of this kind.
        rest: the remaining content.
        owner: the identity of the owner, which the checksum covers, so that a file of another owner is detected.
    """
    return head + _digits(rest, owner) + rest


def is_sealed(head: bytes, data: bytes, owner: str = "") -> bool | None:
    """Return whether the contents are those of `seal`; None if the head is missing, so that this is unknown."""
    if not data.startswith(head):
        # With the head further in, the file was sealed once, and other bytes are before it now.
        return False if head in data else None
    start = len(head) + _DIGITS
    return data[len(head) : start] == _digits(memoryview(data)[start:], owner)


def _digits(data: Any, owner: str) -> bytes:
    return b"%08x" % crc32(data, crc32(owner.encode()))
