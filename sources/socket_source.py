"""`socket_lines`: the lines that a server sends."""

from __future__ import annotations

import io
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dstream.errors import SourceError
from dstream.spi.source import Source
from dstream.values.addresses import checked_address
from sources.lines import checked_encoding

__all__ = ["SocketLines", "socket_lines"]

PATIENCE = 10.0
"""Seconds for which a server may take to answer at all."""


def socket_lines(host: str, port: int, encoding: str = "utf-8") -> Source[str]:
    r"""Read the lines that a server sends over a socket, until it closes the connection.

    "\n", "\r\n" and "\r" end a line; what comes last is given also without one. Lines come as they arrive, so
    `find_first` and `limit` need not wait for the end, and all else ends when the server does.

    **Parallelism**: one task, which connects.
    **Guarantee**: none: a socket gives nothing twice. Where an engine runs a lost task again, that connects again and
    gets what the server sends then.
    **On re-run**: it connects again. So does each terminal operation, and each chunk of a loop over the stream.

    Args:
        host: the name or the address of the server.
        port: its port.
        encoding: as for `open`.

    Raises:
        LookupError: there is no such encoding.
        TypeError: an argument is of another kind.
        ValueError: `host` is empty, or there is no such port.
        SourceError: when it runs: nobody listens there, the connection is cut, or a line is not in this encoding.

    Example:
        >>> from sources import socket_lines
        >>> socket_lines("localhost", 9999)
        socket_lines('localhost', 9999)
    """
    return SocketLines(*checked_address(host, port), checked_encoding(encoding))


@dataclass(frozen=True, slots=True, repr=False)
class SocketLines:
    """What `socket_lines` returns; it is its own split."""

    host: str
    port: int
    encoding: str

    ordered = True
    bounded = True
    in_caller = False

    def count_splits(self, parallelism: int) -> int:
        """Say that there is one."""
        return 1

    def splits(self, parallelism: int) -> list[SocketLines]:
        """Return it itself."""
        return [self]

    def read(self) -> Iterator[str]:
        """Connect, and give the lines."""
        given = 0
        try:
            with (
                self._connected() as connection,
                connection.makefile("rb") as stream,
                io.TextIOWrapper(stream, self.encoding) as lines,
            ):
                while line := lines.readline():
                    yield line.removesuffix("\n")
                    given += 1
        except UnicodeDecodeError as error:
            raise SourceError(f"{self!r}: what comes behind line {given:,} is not {self.encoding}: {error}") from error
        except OSError as error:
            if isinstance(error, SourceError):
                raise
            raise SourceError(f"{self!r}: the connection was cut behind line {given:,}: {error}") from error

    def _connected(self) -> Any:
        try:
            connection = socket.create_connection((self.host, self.port), PATIENCE)
        except OSError as error:
            raise SourceError(f"{self!r}: cannot connect: {error}") from error
        connection.settimeout(None)
        return connection

    def __repr__(self) -> str:
        more = [] if self.encoding == "utf-8" else [f"encoding={self.encoding!r}"]
        return f"socket_lines({', '.join([repr(self.host), repr(self.port), *more])})"
