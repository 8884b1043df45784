"""`LineReceiver`: the lines that a server has sent by now, without waiting for more."""

from __future__ import annotations

import codecs
import io
import socket
import weakref

from dstream.errors import SourceError, SourceUnavailableError
from dstream.values.addresses import connected_to

__all__ = ["LineReceiver", "connected"]

_BLOCK = 65_536
_AT_ONCE = 128
"""Blocks that are taken before somebody looks at the lines."""


def connected(host: str, port: int, label: str) -> socket.socket:
    """Connect to a server.

    Raises:
        SourceUnavailableError: nobody listens there.
    """
    try:
        return connected_to(host, port)
    except OSError as error:
        raise SourceUnavailableError(f"{label}: cannot connect: {error}") from error


class LineReceiver:
    """Connects when it is first asked, and again after a failure, which is told behind the lines that came before.

    Attributes:
        is_over: the server has closed the connection, and all lines were given.
    """

    def __init__(self, host: str, port: int, encoding: str, label: str) -> None:
        self._address = host, port
        self._encoding = encoding
        self._label = label
        self._given = 0
        self._failure: SourceError | None = None
        self.is_over = False
        self._forget()

    def _forget(self) -> None:
        self._connection: socket.socket | None = None
        # As a file that is opened as text: it knows a line break that is cut in two.
        self._decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(self._encoding)(), translate=True)
        self._rest = ""

    def arrived(self) -> list[str]:
        """Return the lines that have arrived, some megabytes at most; the last one of all need have no end.

        Raises:
            SourceError: nobody listens there, the connection was cut, or what came is not in the encoding.
        """
        if self.is_over:
            return []
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        lines: list[str] = []
        try:
            self._take_into(lines, self._open())
        except (OSError, UnicodeDecodeError) as error:
            self._forget()
            failure = self._failed(error, self._given + len(lines))
            if not lines:
                raise failure from error
            failure.__cause__, self._failure = error, failure
        self._given += len(lines)
        return lines

    def _failed(self, error: Exception, given: int) -> SourceError:
        if isinstance(error, SourceError):
            return error
        if isinstance(error, UnicodeDecodeError):
            return SourceError(f"{self._label}: what comes behind line {given:,} is not {self._encoding}: {error}")
        return SourceUnavailableError(f"{self._label}: the connection was cut behind line {given:,}: {error}")

    def _open(self) -> socket.socket:
        if self._connection is None:
            self._connection = connected(*self._address, self._label)
            self._connection.setblocking(False)
            weakref.finalize(self, self._connection.close)
        return self._connection

    def _take_into(self, lines: list[str], connection: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                data = connection.recv(_BLOCK)
            except BlockingIOError:  # Nothing more has arrived.
                break
            lines += self._decoded(data)
            if not data:
                self.is_over = True
                connection.close()
                break

    def _decoded(self, data: bytes) -> list[str]:
        text = self._rest + self._decoder.decode(data, final=not data)
        *lines, self._rest = text.split("\n")
        return lines if data or not self._rest else [*lines, self._rest]
