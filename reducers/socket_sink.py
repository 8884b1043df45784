"""`to_socket`: a line for each item, sent to a server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, TypeVar

from dstream.errors import SinkUnavailableError
from dstream.spi import Reducer
from dstream.spi.functions import refuse_one_that_would_not_run, shown_function
from dstream.values.addresses import checked_address, connected_to
from reducers.line_formats import TextLines, checked_encoding
from reducers.passing import Passed, PassingSink
from reducers.writing import checked_function

__all__ = ["to_socket"]

T = TypeVar("T")


def to_socket(
    host: str, port: int, to_string: Callable[[T], str] = str, *, encoding: str = "utf-8"
) -> Reducer[T, None]:
    r"""Send a line for each item to a server, with "\n" at its end.

    An ordered partition sends its lines in order.

    **Parallelism**: each partition that has items connects on its own.
    **Guarantee**: at least once, as far as the server has read what it was sent: nobody acknowledges lines. Those of a
    run that fails were sent, and a task that runs again sends its lines again.
    **On re-run**: all items are sent again.

    Args:
        host: the name or the address of the server.
        port: its port.
        to_string: makes the text of an item; of a text without line breaks, since each ends a line.
        encoding: as for `open`.

    Raises:
        LookupError: there is no such encoding.
        TypeError: an argument is of another kind.
        ValueError: `host` is empty, or there is no such port.
            When it runs: a text holds a line break, or a character that the encoding has not.
        SinkError: when it runs: nobody listens there, or the connection is cut.

    Example:
        >>> from reducers import to_socket
        >>> to_socket("localhost", 9999)
        to_socket('localhost', 9999)
    """
    address = checked_address(host, port)
    refuse_one_that_would_not_run(checked_function(to_string, "to_string"), "to_string")
    more = [] if to_string is str else [shown_function(to_string)]
    label = f"to_socket({', '.join([repr(host), repr(port), *more])})"
    sending = Sending(label, *address, to_string, checked_encoding(encoding))
    return PassingSink(label, Passed(sending.connected, sending.send, sending.flush, sending.close))


@dataclass(frozen=True, slots=True)
class Sending:
    """What a task does with its connection, which is buffered."""

    label: str
    host: str
    port: int
    to_string: Callable[[Any], str]
    encoding: str

    def connected(self) -> IO[bytes]:
        """Connect."""
        lines: IO[bytes] = self._sending(partial(self._connected, self.host, self.port))
        return lines

    @staticmethod
    def _connected(host: str, port: int) -> IO[bytes]:
        with connected_to(host, port) as connection:
            connection.settimeout(None)
            return connection.makefile("wb")  # It keeps the connection open.

    def send(self, lines: IO[bytes], item: Any) -> None:
        """Send the line of an item."""
        data = TextLines(self.to_string).lines([item]).encode(self.encoding)
        self._sending(partial(lines.write, data))

    def flush(self, lines: IO[bytes]) -> None:
        """Send what is buffered."""
        self._sending(lines.flush)

    def close(self, lines: IO[bytes]) -> None:
        """Close the connection."""
        self._sending(lines.close)

    def _sending(self, do: Callable[[], Any]) -> Any:
        try:
            return do()
        except OSError as error:
            gone = "the server is not there, or has cut the connection"
            raise SinkUnavailableError(f"{self.label}: {gone}: {error}") from error
