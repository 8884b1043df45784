"""`socket_lines`: the lines of a server as a source."""

from __future__ import annotations

import datetime
from typing import Any, Literal, overload

from dstream.connectors.base import checked_encoding, checked_start
from dstream.connectors.sockets import (
    NamedDurableLines,
    SocketLines,
    Start,
    checked_address,
)
from dstream.spi.source import Source, StreamSource

__all__ = ["socket_lines"]


@overload
def socket_lines(host: str, port: int, encoding: str = "utf-8", *, durable: Literal[False] = False) -> Source[str]: ...
@overload
def socket_lines(
    host: str, port: int, encoding: str = "utf-8", *, durable: Literal[True] | str, start: Start = "oldest"
) -> StreamSource[str]: ...
def socket_lines(
    host: str, port: int, encoding: str = "utf-8", *, durable: bool | str = False, start: Start = "oldest"
) -> Any:
    r"""Read the lines that a server sends over a socket, until it closes the connection.

    "\n", "\r\n" and "\r" end a line; the last line is emitted also without one. Lines are emitted as they arrive, so
    `find_first` and `limit` need not wait for the end, and all else ends when the server does. A job with timestamps
    reads them as a stream: its windows close while the server sends, as those of Jet's `socket`.

    With `durable`, lines are stored in a list of the context's storage first, and are read from the list by a job of
    unbounded data: exactly once, since they can be read again. The driver stores the arrived lines whenever the job
    requests how far it can read; a job that lags makes the server wait. Once the server has closed the connection, the
    job ends after the last line. Lines that were sent but not stored when the driver died are lost. The list retains
    all lines; a new job begins with the first line unless `start` changes that. One job at a time may write into it.

    **Parallelism**: one task, which connects; with `durable`, and for a stream, the driver connects.
    ***Guarantee**: none: a socket sends nothing twice. If an engine runs a lost task again, the task connects again and
    reads what the server sends then. With `durable`, exactly once for each line that is stored.
    **On re-run**: it connects again. So does each terminal operation, and each chunk of a loop over the stream. With
    `durable`, a job that resumes connects again, and continues in the list where it was.

    Args:
        host: the name or the address of the server.
        port: its port.
        encoding: as for `open`.
        durable: True to store first in the list `"socket_lines <host>:<port>"`, or the name of another list.
        start: the start of a new job with `durable`: `"oldest"`, all lines of the list; `"current"`, lines that are
            stored from then on.

    Raises:
        LookupError: there is no such encoding.
        TypeError: an argument is of another kind.
        ValueError: `host` or the name of the list is empty, there is no such port, or `start` is none of its choices.
        SourceError: when it runs: there is no listener, the connection is cut, or a line is not in this encoding.

    Example:
        >>> from sources import socket_lines
        >>> socket_lines("localhost", 9999)
        socket_lines('localhost', 9999)
    """
    lines = SocketLines(*checked_address(host, port), checked_encoding(encoding))
    _check_start(start, durable)
    if durable is False:
        return lines
    if not isinstance(durable, bool | str):
        raise TypeError(f"durable must be True, False or the name of a list, not {type(durable).__name__}")
    if not durable:
        raise ValueError("durable must not be empty: it is the name of a list")
    name = f"socket_lines {host}:{port}" if durable is True else durable
    more = "" if start == "oldest" else f", start={start!r}"
    label = f"{repr(lines).removesuffix(')')}, durable={durable!r}{more})"
    return NamedDurableLines(lines.host, lines.port, lines.encoding, name, label, start)


def _check_start(start: Any, durable: Any) -> None:
    if isinstance(start, datetime.datetime):
        raise ValueError("start must be 'oldest' or 'current': lines of a socket have no time of their own")
    if checked_start(start) != "oldest" and durable is False:
        raise ValueError(f"start={start!r} needs durable=True: a socket sends nothing twice, so none is read again")
