"""`ServiceListener`: notifies workers of the end of shared services, through a listening socket.

Connections of workers wait in its queue until the run ends; if this process dies, they break, and the workers destroy
their services as well.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import time
import weakref
from contextlib import suppress

from dstream.engine.tasks.process import DriverAddress
from dstream.failures.transport import from_worker

__all__ = ["ServiceListener"]


_LONGEST_END = 5.0
"""Seconds that the end of a run waits for workers to destroy their services."""
_LONGEST_SECRET = 0.5
"""Seconds for the secret, which a worker has sent long before; a connection without it is none of ours."""
_MOST_WAITING = 4096
_SECRET_BYTES = 32


class ServiceListener:
    """Notifier of workers of the end of a run.

    Args:
        host: by which name or address workers reach this machine.
        bind: the address to listen on.
    """

    def __init__(self, host: str, bind: str) -> None:
        self._host, self._bind = host, bind
        self._secret = secrets.token_bytes(_SECRET_BYTES)
        self._listening: socket.socket | None = None

    def address(self) -> DriverAddress:
        """Return where workers connect to; listen from now on."""
        if self._listening is None:
            family = socket.AF_INET6 if ":" in self._bind else socket.AF_INET
            self._listening = socket.create_server((self._bind, 0), family=family, backlog=_MOST_WAITING)
            # A run that nothing ends, such as a dropped loop, closes it too: its workers find their connections broken.
            weakref.finalize(self, self._listening.close)
        return DriverAddress(self._host, self._listening.getsockname()[1], self._secret)

    def end(self) -> BaseException | None:
        """Destroy the services of the workers, and wait for that; return the first failure there, if any.

        One that is busy for longer destroys its services later, and one that was killed does not.
        """
        if self._listening is None:
            return None
        connections = self._waiting(self._listening)
        self._listening.close()
        self._listening = None
        until, answers = time.monotonic() + _LONGEST_END, []
        # All are notified before any is waited for, so that workers destroy their services at the same time.
        for each in connections:
            with suppress(OSError):
                each.sendall(b"E")
        for each in connections:
            with each:
                answers.append(_answer(each, until))
        return next((from_worker(answer, self._secret) for answer in answers if answer), None)

    def _waiting(self, listening: socket.socket) -> list[socket.socket]:
        """Return the connections of workers."""
        listening.setblocking(False)
        found: list[socket.socket] = []
        while True:
            try:
                connection, _ = listening.accept()
            except BlockingIOError:
                return found
            if self._is_of_a_worker(connection):
                found.append(connection)
            else:
                connection.close()

    def _is_of_a_worker(self, connection: socket.socket) -> bool:
        try:
            connection.settimeout(_LONGEST_SECRET)
            received = connection.recv(_SECRET_BYTES, socket.MSG_WAITALL)
        except OSError:
            return False
        return hmac.compare_digest(received, self._secret)


def _answer(connection: socket.socket, until: float) -> str:
    """Return the last message of a worker; an empty one if it is gone, or takes too long."""
    received = b""
    try:
        while (left := until - time.monotonic()) > 0:
            connection.settimeout(left)
            some = connection.recv(65536)
            if not some:
                return received.decode()
            received += some
    except OSError:
        pass
    return ""
