"""Lines of a server as a source without an end: those of `socket_lines(durable=True)` are stored in a list first.

Those without it are in memory until they were read, for jobs that run in epochs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from dstream.errors import CollectionDestroyedError, IllegalStateError, SourceError
from dstream.spi import Collections, Reached
from dstream.values.contexts import contextmanager
from sources.line_receiver import LineReceiver
from sources.memory import ItemsSplit, NamesOfStreams

__all__ = ["DurableLines", "NamedDurableLines", "PassingLines", "Start"]

ONLY = "lines"
"""The name of the one partition: a connection has one order."""

Start: TypeAlias = Literal["oldest", "current"]

ENOUGH = 100_000
"""Lines that wait in the list. While there are more, the server has to wait."""


@dataclass(frozen=True, slots=True, repr=False)
class NamedDurableLines(NamesOfStreams):
    """What `socket_lines` returns: a source once a context has opened it.

    Attributes:
        name: that of the list.
        start: the lines of the list with which a new job begins.
    """

    host: str
    port: int
    encoding: str
    name: str
    label: str
    start: Start = "oldest"

    def opened(self, context: Collections) -> DurableLines:
        """Return the lines of the list, made if there is none; the server is not asked yet."""
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
    """The lines of a list, to which those of a server are appended as they arrive; an offset is a place in the list.

    The driver asks how far it reaches, and stores on that occasion what has arrived. Nobody else writes into the list.
    """

    ends = True
    """Once the server has closed the connection and all lines were read, nothing comes any more."""

    def __init__(self, label: str, store: _Lines, receiver: LineReceiver, start: Start = "oldest") -> None:
        self.label = label
        self._start = start
        self._store = store
        self._receiver = receiver
        self._unstored: list[str] = []

    @property
    def identity(self) -> str:
        """That of the list: one that is made anew has other lines at the same places."""
        return self._store.identity

    def begin(self) -> Mapping[str, int]:
        """Begin with the first line that is stored, of whatever job, or behind the last one."""
        if self._start == "oldest":
            return {ONLY: 0}
        with self._blaming():
            return {ONLY: self._store.size()}

    def reach(self, offsets: Mapping[str, Any], most: int | None = None) -> Mapping[str, int]:
        """Store what has arrived, and say how many lines there are; nothing once the server has ended and all is read.

        Raises:
            SourceError: the server cannot be reached, the connection was cut, or a line is not in its encoding.
        """
        read = self._checked(offsets.get(ONLY))
        with self._blaming():
            size = self._store.size()
            if size - read < ENOUGH:
                size = self._stored()
        if read >= size and self._receiver.is_over:
            return {}
        taken = max(read, size if most is None else min(size, read + most))
        return Reached({ONLY: taken}, max(0, size - taken))

    def _stored(self) -> int:
        self._unstored += self._receiver.arrived()
        if self._unstored:  # They stay here until it is certain that they are stored.
            self._store.extend(self._unstored)
            self._unstored = []
        return self._store.size()

    def split(self, partition: str, start: Any, stop: Any) -> ItemsSplit[str]:
        """Return some lines, which travel."""
        if partition != ONLY:
            raise SourceError(f"{self.label}: there is no partition {partition!r}")
        first, last = self._checked(start), self._checked(stop)
        with self._blaming():
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

    @contextmanager
    def _blaming(self) -> Any:
        try:
            yield
        except CollectionDestroyedError as error:
            raise SourceError(f"{self.label}: {error}") from error

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
        """Forget the lines that were read, and say how many there are then."""
        self._recent.forget_before(self._checked(offsets.get(ONLY)))
        return super().reach(offsets, most)


class _RecentLines:
    """A list in memory, of which the first lines are forgotten."""

    identity = ""

    def __init__(self) -> None:
        self._first = 0
        self._lines: list[str] = []

    def forget_before(self, number: int) -> None:
        """Forget lines; a run that goes on with a job counts on from there."""
        if number > self._first:
            del self._lines[: number - self._first]
            self._first = number

    def size(self) -> int:
        return self._first + len(self._lines)

    def read(self, start: int, stop: int) -> list[str]:
        return self._lines[start - self._first : stop - self._first] if start >= self._first else []

    def extend(self, items: list[str]) -> None:
        self._lines += items
