"""The driver's part of a run: shuffles through this process, side output, and the end of shared services.

Shared services end by a listening socket. Connections of workers wait in its queue until the run ends; if this process
dies, they break, and the workers destroy what they have made as well.

Spark plans a shuffle anew for each run, which costs more than all else in an epoch of few events; a job of one stage is
planned once for all runs. What is large of the rows stays in files of this machine, and only its place comes here.
"""

from __future__ import annotations

import hmac
import os
import secrets
import shutil
import socket
import time
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from dstream.base.functions import refuse_awaitable
from dstream.engine.physical.vertices import OutputPort, Taken
from dstream.engine.tasks.process import DriverAddress
from dstream.engine.tasks.rows import COUNTS, ITEMS, Row, Storing, not_written
from dstream.failures import blame
from dstream.failures.transport import from_worker
from dstream.operators.rows.batches import loads
from dstream.operators.rows.guards import Action
from dstream.plan.steps import Step

__all__ = ["MOST_PAIRS", "ServiceListener", "ShuffleFiles", "SideOutputActions", "by_target", "rows_taken"]


_LONGEST_END = 5.0
"""Seconds that the end of a run waits for workers to destroy their services."""
_LONGEST_SECRET = 0.5
"""Seconds for the secret, which a worker has sent long before; a connection without it is none of ours."""
_MOST_WAITING = 4096
_SECRET_BYTES = 32


class ServiceListener:
    """Tells workers that a run has ended.

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
        """Let the workers destroy their services, and wait for that; return the first failure there, if any.

        One that is busy for longer destroys its services later, and one that was killed does not.
        """
        if self._listening is None:
            return None
        connections = self._waiting(self._listening)
        self._listening.close()
        self._listening = None
        until, answers = time.monotonic() + _LONGEST_END, []
        # All are told before any is waited for, so that workers destroy their services at the same time.
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
            said = connection.recv(_SECRET_BYTES, socket.MSG_WAITALL)
        except OSError:
            return False
        return hmac.compare_digest(said, self._secret)


def _answer(connection: socket.socket, until: float) -> str:
    """Return the last message of a worker; an empty one if it is gone, or takes too long."""
    said = b""
    try:
        while (left := until - time.monotonic()) > 0:
            connection.settimeout(left)
            some = connection.recv(65536)
            if not some:
                return said.decode()
            said += some
    except OSError:
        pass
    return ""


MOST_PAIRS = 64
"""The most pairs of a writing and a reading task for which it is worth it: the rows of each go to all readers."""

_TRAVELLING = 8 * 1024
"""The bytes of the rows of one vertex that travel with the next job, to each of its tasks."""


class ShuffleFiles:
    """The place for large parts of the rows of one run's tasks, until the run ends."""

    def __init__(self) -> None:
        self._folder: str | None = None

    def storing(self, parent: str, tasks: int) -> Storing:
        """Return how *n* tasks store their rows.

        Args:
            parent: a folder for temporary files, in which that of this run will be.
            tasks: how many there are.

        Raises:
            EngineError: that folder cannot be written to.
        """
        if self._folder is None:
            self._folder = _made(os.path.join(parent, f"dstream-rows-{uuid.uuid4().hex}"))
        return Storing(self._folder, _TRAVELLING // max(tasks, 1))

    def remove(self) -> None:
        """Remove all of them, after their last reader.

        Tasks may still write: those of a run that was cancelled, or that others have overtaken. They find the folder no
        more under its name, so none of them puts a file into it while it goes.
        """
        if self._folder is not None:
            ended = f"{self._folder}-ended"
            with suppress(OSError):
                os.rename(self._folder, ended)
            shutil.rmtree(ended, ignore_errors=True)


def _made(folder: str) -> str:
    """Make a folder that only this user may enter; tasks make none, which might come behind the end of their run."""
    try:
        os.makedirs(folder, mode=0o700)  # Whoever cleans temporary folders may have removed those above.
    except OSError as error:
        raise not_written(folder, error) from error
    return folder


def rows_taken(rows: Iterable[Row], taken: Taken, port: OutputPort) -> Iterator[Row]:
    """Give those rows of a vertex that are taken, for the targets that they have behind others."""
    for row in rows:
        if port.has(row):
            channel = ITEMS if taken.as_items and row.channel != COUNTS else row.channel
            yield row._replace(target=row.target + taken.behind, channel=channel)


def by_target(rows: Iterable[Row], targets: int) -> tuple[tuple[Row, ...], ...]:
    """Return the rows of each of *n* partitions: target after target, in the order of their sources."""
    partitions: list[list[Row]] = [[] for _ in range(targets)]
    for row in rows:
        # As Spark's shuffle does it where there are more buckets than tasks.
        partitions[row.target % targets].append(row)
    return tuple(tuple(sorted(each, key=_PLACE)) for each in partitions)


_PLACE = attrgetter("target", "source", "sequence")


_NONE: Mapping[int, int] = MappingProxyType({})


class SideOutputActions:
    """The actions in this process for each channel beside the items."""

    def __init__(self, actions: Mapping[int, Action]) -> None:
        self._actions = actions

    def deliver(
        self, beside: Iterable[Row], before: Mapping[int, int] = _NONE, counted: dict[int, int] | None = None
    ) -> None:
        """Run the actions on the side rows of a job.

        Args:
            beside: the rows of their channels, channel by channel, in encounter order.
            before: how many items the action of each channel has seen in an earlier run of the same job.
            counted: takes how many it has seen now.
        """
        seen = {} if counted is None else counted
        for row in beside:
            step, action = self._actions[row.channel]
            for item in loads(row.payload):
                number = seen.get(row.channel, 0)
                seen[row.channel] = number + 1
                if number >= before.get(row.channel, 0):
                    _act(step, action, item)


def _act(step: Step, action: Callable[[Any], object], item: Any) -> None:
    try:
        if (result := action(item)) is not None:
            refuse_awaitable(result)
    except Exception as error:
        blame(error, step, item)
        raise
