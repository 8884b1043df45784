"""`to_socket`: items as lines to a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dstream.arguments import running_function
from dstream.connectors.base import FunctionWriter, ImmediateSink, checked_encoding
from dstream.connectors.sockets import LineWriter, checked_address
from dstream.spi import Reducer
from dstream.values.user_functions import shown_function

__all__ = ["to_socket"]


T = TypeVar("T")


def to_socket(
    host: str, port: int, to_string: Callable[[T], str] = str, *, encoding: str = "utf-8"
) -> Reducer[T, None]:
    r"""Send a line for each item to a server, with "\n" at its end.

    An ordered partition sends its lines in order.

    **Parallelism**: each partition that has items connects on its own.
    **Guarantee**: at least once, as far as the server has read what it was sent: lines are not acknowledged. Those of a
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
        SinkError: when it runs: there is no listener, or the connection is cut.

    Example:
        >>> from reducers import to_socket
        >>> to_socket("localhost", 9999)
        to_socket('localhost', 9999)
    """
    address = checked_address(host, port)
    running_function(to_string, "to_string")
    more = [] if to_string is str else [shown_function(to_string)]
    label = f"to_socket({', '.join([repr(host), repr(port), *more])})"
    sending = LineWriter(label, *address, to_string, checked_encoding(encoding))
    return ImmediateSink(label, FunctionWriter(sending.connected, sending.send, sending.flush, sending.close))
