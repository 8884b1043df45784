"""Sockets: lines of a server as a source, durable in a list on request, and lines to a server.

Lines that are not durable are in memory until they were read, for jobs that run in epochs.
"""

from __future__ import annotations

import codecs
import io
import socket
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, Literal, Protocol, TypeAlias, TypeVar

from dstream.connectors.base import TextLines, naming_destroyed, readable
from dstream.connectors.memory import ItemsSplit, NamesOfStreams
from dstream.errors import (
    IllegalStateError,
    SinkUnavailableError,
    SourceError,
    SourceUnavailableError,
)
from dstream.spi import Collections, Reached
from dstream.spi.source import StreamSource

__all__ = [
    "DurableLines",
    "LineReceiver",
    "NamedDurableLines",
    "PassingLines",
    "SocketLines",
    "Start",
    "checked_address",
    "connected",
    "connected_to",
]


_PORTS = 65_535
_PATIENCE = 10.0
"""Seconds within which a server must respond."""

_ASKING = {"TCP_KEEPIDLE": 60, "TCP_KEEPALIVE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}
"""A server that has sent nothing for a minute is probed by keepalives, for a minute. macOS has the second name."""


def connected_to(host: str, port: int) -> socket.socket:
    """Connect to a server, and notice when it is lost: a host that loses its power cuts no connection.

    Raises:
        OSError: there is no listener.
    """
    connection = socket.create_connection((host, port), _PATIENCE)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _ASKING.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return connection


def checked_address(host: Any, port: Any) -> tuple[str, int]:
    """Return the host and the port of a server.

    Raises:
        TypeError: the host is no str, or the port no int.
        ValueError: the host is empty, or there is no such port.
    """
    if not isinstance(host, str):
        raise TypeError(f"host must be a str, not {type(host).__name__}")
    if not host:
        raise ValueError("host must not be empty")
    if not isinstance(port, int) or isinstance(port, bool):
        raise TypeError(f"port must be an int, not {type(port).__name__}")
    if not 1 <= port <= _PORTS:
        raise ValueError(f"port must be between 1 and {_PORTS:,}, not {port:,}")
    return host, port


_BLOCK = 65_536
_AT_ONCE = 128
"""The number of blocks that are received before lines are made of them."""


def connected(host: str, port: int, label: str) -> socket.socket:
    """Connect to a server.

    Raises:
        SourceUnavailableError: there is no listener.
    """
    try:
        return connected_to(host, port)
    except OSError as error:
        raise SourceUnavailableError(f"{label}: cannot connect: {error}") from error


class LineReceiver:
    """A client that connects on its first call, and again after a failure, which is raised after the earlier lines.

    Attributes:
        is_over: the server has closed the connection, and all lines were returned.
    """

    def __init__(self, host: str, port: int, encoding: str, label: str) -> None:
        self._address = host, port
        self._encoding = encoding
        self._label = label
        self._given = 0
        self._failure: SourceError | None = None
        self.is_over = False
        self._close: Callable[[], object] = lambda: None
        self._forget()

    def _forget(self) -> None:
        self._close()
        self._connection: socket.socket | None = None
        # As for a file that is opened as text: it joins a line break that is split.
        self._decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(self._encoding)(), translate=True)
        self._rest = ""

    def arrived(self) -> list[str]:
        """Return the lines that have arrived, a few megabytes at most; the very last one need have no line end.

        Raises:
            SourceError: there is no listener, the connection was lost, or the bytes are not in the encoding.
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
            # The driver polls before each epoch, and must not wait for a silent server.
            self._connection.setblocking(False)
            # A method of the receiver as the callback would keep the receiver alive.
            self._close = weakref.finalize(self, self._connection.close)
        return self._connection

    def _take_into(self, lines: list[str], connection: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                data = connection.recv(_BLOCK)
            except BlockingIOError:  # Nothing more has arrived.
                break
            # Into the list of the caller, so that a failure does not lose the lines before it.
            lines += self._decoded(data)
            if not data:
                self.is_over = True
                self._close()
                break

    def _decoded(self, data: bytes) -> list[str]:
        text = self._rest + self._decoder.decode(data, final=not data)
        *lines, self._rest = text.split("\n")
        return lines if data or not self._rest else [*lines, self._rest]


ONLY = "lines"
"""The name of the one partition: a connection has one order."""

Start: TypeAlias = Literal["oldest", "current"]

ENOUGH = 100_000
"""Maximal number of pending lines in the list. While there are more, the server has to wait."""


@dataclass(frozen=True, slots=True, repr=False)
class NamedDurableLines(NamesOfStreams):
    """Result of `socket_lines`: a source once a context has opened it.

    Attributes:
        name: the name of the list.
        start: the lines of the list with which a new job begins.
    """

    host: str
    port: int
    encoding: str
    name: str
    label: str
    start: Start = "oldest"

    def opened(self, context: Collections) -> DurableLines:
        """Return the lines of the list, created if it does not exist; without connecting to the server."""
        receiver = LineReceiver(self.host, self.port, self.encoding, self.label)
        return DurableLines(self.label, context.get_list(self.name).store, receiver, self.start)

    def begin(self) -> Mapping[str, int]:
        """Refuse to be read without a context.

        Raises:
            IllegalStateError: always.
        """
        raise IllegalStateError(f"{self.label} needs a list, which .opened(context) finds in a storage")

    def reach(self, offsets: Mapping[str, Any], most: int | None = None) -> Mapping[str, int]:
        """Refuse, as `begin`."""
        return self.begin()

    def split(self, partition: str, start: Any, stop: Any) -> ItemsSplit[str]:
        """Refuse, as `begin`."""
        raise IllegalStateError(f"{self.label} needs a list, which .opened(context) finds in a storage")

    def __repr__(self) -> str:
        return self.label


class _Lines(Protocol):
    """The part of `ListStore` that is needed."""

    @property
    def identity(self) -> str: ...
    def size(self) -> int: ...
    def read(self, start: int, stop: int) -> list[str]: ...
    def extend(self, items: list[str]) -> None: ...


class DurableLines:
    """The lines of a list, to which those of a server are appended as they arrive; an offset is an index of the list.

    When the driver polls it, it stores the lines that have arrived. No other process writes into the list.
    """

    ends = True
    """Once the server has closed the connection and all lines were read, nothing arrives any more."""

    def __init__(self, label: str, store: _Lines, receiver: LineReceiver, start: Start = "oldest") -> None:
        self.label = label
        self._start = start
        self._store = store
        self._receiver = receiver
        self._unstored: list[str] = []

    @property
    def identity(self) -> str:
        """The identity of the list: a recreated list has other lines at the same indexes."""
        return self._store.identity

    def begin(self) -> Mapping[str, int]:
        """Begin with the first stored line, of any job, or after the last one."""
        if self._start == "oldest":
            return {ONLY: 0}
        with naming_destroyed(self.label):
            return {ONLY: self._store.size()}

    def reach(self, offsets: Mapping[str, Any], most: int | None = None) -> Mapping[str, int]:
        """Store the arrived lines, and return their number; nothing once the server has ended and all is read.

        Raises:
            SourceError: the server cannot be reached, the connection was cut, or a line is not in its encoding.
        """
        read = self._checked(offsets.get(ONLY))
        with naming_destroyed(self.label):
            size = self._store.size()
            if size - read < ENOUGH:
                size = self._stored()
        if read >= size and self._receiver.is_over:
            return {}
        taken = max(read, size if most is None else min(size, read + most))
        return Reached({ONLY: taken}, max(0, size - taken))

    def _stored(self) -> int:
        self._unstored += self._receiver.arrived()
        if self._unstored:  # They are buffered until it is certain that they are stored.
            self._store.extend(self._unstored)
            self._unstored = []
        return self._store.size()

    def split(self, partition: str, start: Any, stop: Any) -> ItemsSplit[str]:
        """Return a range of lines, which is sent."""
        if partition != ONLY:
            raise SourceError(f"{self.label}: there is no partition {partition!r}")
        first, last = self._checked(start), self._checked(stop)
        with naming_destroyed(self.label):
            lines = self._store.read(first, last)
        if len(lines) != last - first:
            raise SourceError(
                f"{self.label}: the lines from {first + len(lines):,} to {last:,} are not in the list any more"
            )
        return ItemsSplit(lines)

    def _checked(self, offset: Any) -> int:
        if offset is None:
            return 0
        if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
            raise SourceError(f"{self.label}: {offset!r} is no place of a line")
        return offset

    def __repr__(self) -> str:
        return self.label


class PassingLines(DurableLines):
    """The lines that a server sends, until an epoch that has read them is committed; an offset counts lines.

    What has arrived and was not read is lost with the driver, as what the server sends while none is connected.
    """

    def __init__(self, label: str, receiver: LineReceiver) -> None:
        self._recent = _RecentLines()
        super().__init__(label, self._recent, receiver)

    def reach(self, offsets: Mapping[str, Any], most: int | None = None) -> Mapping[str, int]:
        """Remove the lines that were read, and return the number of those that are left."""
        self._recent.forget_before(self._checked(offsets.get(ONLY)))
        return super().reach(offsets, most)


class _RecentLines:
    """A list in memory, of which the first lines are forgotten."""

    identity = ""

    def __init__(self) -> None:
        self._first = 0
        self._lines: list[str] = []

    def forget_before(self, number: int) -> None:
        """Remove lines; a run that resumes the job counts from their number."""
        if number > self._first:
            del self._lines[: number - self._first]
            self._first = number

    def size(self) -> int:
        return self._first + len(self._lines)

    def read(self, start: int, stop: int) -> list[str]:
        return self._lines[start - self._first : stop - self._first] if start >= self._first else []

    def extend(self, items: list[str]) -> None:
        self._lines += items


@dataclass(frozen=True, slots=True, repr=False)
class SocketLines(NamesOfStreams):
    """Result of `socket_lines`; it is its own split."""

    host: str
    port: int
    encoding: str

    ordered = True
    bounded = True
    in_caller = False

    def count_splits(self, parallelism: int) -> int:
        """Return one: there is one split."""
        return 1

    def splits(self, parallelism: int) -> list[SocketLines]:
        """Return the only split."""
        return [self]

    def read(self) -> Iterator[str]:
        """Connect, and yield the lines."""
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
            # A SourceError is an OSError, too, and `connected` already reports that the server cannot be reached.
            if isinstance(error, SourceError):
                raise
            cut = f"the connection was cut behind line {given:,}: {error}"
            raise SourceUnavailableError(f"{self!r}: {cut}") from error

    def as_stream(self) -> StreamSource[str]:
        """Return the lines as they arrive, for jobs that run in epochs."""
        return PassingLines(repr(self), LineReceiver(self.host, self.port, self.encoding, repr(self)))

    def _connected(self) -> socket.socket:
        connection = connected(self.host, self.port, repr(self))
        # The time-out for connecting would be one for each read as well, and a server may be silent for long.
        connection.settimeout(None)
        return connection

    def __repr__(self) -> str:
        more = [] if self.encoding == "utf-8" else [f"encoding={self.encoding!r}"]
        return f"socket_lines({', '.join([repr(self.host), repr(self.port), *more])})"


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LineWriter:
    """A task's buffered end of its connection."""

    label: str
    host: str
    port: int
    to_string: Callable[[Any], str]
    encoding: str

    def connected(self) -> IO[str]:
        """Connect."""
        lines: IO[str] = self._sending(partial(self._connected, self.host, self.port, self.encoding))
        return lines

    @staticmethod
    def _connected(host: str, port: int, encoding: str) -> Any:
        with connected_to(host, port) as connection:
            # A slow server makes the task wait, which is no failure.
            connection.settimeout(None)
            # Separately encoded lines would begin with a byte order mark; makefile("w") would write none at all.
            return codecs.getwriter(encoding)(connection.makefile("wb"))  # It keeps the connection open.

    def send(self, lines: IO[str], item: Any) -> None:
        """Send the line of an item."""
        text = readable(TextLines(self.to_string).lines([item]), self.encoding)
        self._sending(partial(lines.write, text))

    def flush(self, lines: IO[str]) -> None:
        """Send the buffer."""
        self._sending(lines.flush)

    def close(self, lines: IO[str]) -> None:
        """Close the connection."""
        self._sending(lines.close)

    def _sending(self, do: Callable[[], Any]) -> Any:
        try:
            return do()
        except OSError as error:
            gone = "the server is not there, or has cut the connection"
            raise SinkUnavailableError(f"{self.label}: {gone}: {error}") from error
