"""Sinks that keep nothing for a commit: `sink_from`, `to_logger`, `to_nothing`.

What they do has happened when a task did it, so nothing of a run that fails is taken back.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from more_itertools import chunked

from dstream.spi import Collections, Receipt, Reducer, Writer
from dstream.spi.functions import refuse_one_that_would_not_run, shown_function
from dstream.values.blaming import each, shown, stopped
from dstream.values.contexts import contextmanager
from dstream.values.flattened import refuse_awaitable
from dstream.values.log_lines import is_heard, tell
from reducers.writing import checked_function, checked_text

__all__ = ["LoggingSink", "PassingJob", "PassingSink", "sink_from", "to_logger", "to_nothing"]

S = TypeVar("S")
T = TypeVar("T")

_BATCH = 1_000
LOGGER = "dstream.to_logger"


def sink_from(
    create: Callable[[], S],
    receive: Callable[[S, T], object],
    flush: Callable[[S], object] | None = None,
    destroy: Callable[[S], object] | None = None,
    *,
    prepare: Callable[[S], Receipt] | None = None,
    commit: Callable[[list[Any]], object] | None = None,
    name: str | None = None,
) -> Reducer[T, None]:
    """Give each item to a function of your own, with what a task has made for that, such as a client of a server.

    The functions run where the items are. An ordered partition gives its items in order.

    **Parallelism**: each task that has items makes one of its own.
    **Guarantee**: at least once, if `receive` and `flush` have handed an item over when they return. Items that were
    received before a failure stay where they are, and a task that runs again gives its items again. With `prepare` and
    `commit` exactly once, in jobs that go on after a crash too: tasks put the items where nobody looks, and the commit
    shows them. It may be asked again for what it has shown, and must then change nothing, as a file that is renamed.
    **On re-run**: all items are given again.

    Args:
        create: makes it, before the first item of a task.
        receive: takes (what was made, item).
        flush: takes it after every 1,000 items, and after the last one.
        destroy: takes it at its end, also after a failure.
        prepare: takes it after the last item, and says as plain data, as JSON has it, where the items of the task are.
            What was prepared and is in no commit, as that of a task that ran twice, nobody removes.
        commit: takes in the caller what `prepare` gave in one attempt of each task, in a list; not if there are no
            items. After a failure it is called again with the same list, maybe by another process; a job that has run
            starts again if it raises a `SinkUnavailableError`.
        name: what messages call the sink; unset, its functions.

    Raises:
        TypeError: one of these is no function, or one whose call would not run it; when it runs: `prepare` gives
            what is no plain data.
        ValueError: `prepare` is given without `commit`, or the other way round.

    Example:
        >>> import pathlib, tempfile
        >>> from io import TextIOWrapper
        >>> from reducers import sink_from
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "names.txt"
        >>> with connect(engine="local") as ctx:
        ...     names = ctx.stream(["Ada ", "Grace"])
        ...     names.collect(sink_from(lambda: path.open("a"), TextIOWrapper.write, destroy=TextIOWrapper.close))
        >>> path.read_text()
        'Ada Grace'
    """
    if (prepare is None) != (commit is None):
        raise ValueError("prepare and commit belong together: commit takes what prepare gives")
    optional: list[tuple[str, Any]] = [("flush", flush), ("destroy", destroy), ("prepare", prepare), ("commit", commit)]
    given: dict[str, Any] = {"create": create, "receive": receive, **{k: fn for k, fn in optional if fn is not None}}
    for argument, fn in given.items():
        refuse_one_that_would_not_run(checked_function(fn, argument), argument)
    written = ", ".join(map(shown_function, given.values())) if name is None else repr(checked_text(name, "name"))
    label, passed = f"sink_from({written})", Passed(create, receive, flush, destroy, prepare)
    return PassingSink(label, passed) if commit is None else CommittingSink(label, passed, commit)


def to_logger(to_string: Callable[[T], str] = str, *, logger: str = LOGGER) -> Reducer[T, None]:
    """Log a line for each item, at the level INFO, in the caller's process.

    There the program has set up its logging; the logs of workers are on other machines. A program that has set up none
    prints the lines to stderr. They come in encounter order once the run has succeeded, and a run that fails logs none.
    The texts are in the caller's memory until then: this is for results that people read.

    **Parallelism**: the texts are made where the items are; the caller logs.
    **Guarantee**: at least once: a job that another process finishes may log its lines again.
    **On re-run**: all items are logged again.

    Args:
        to_string: makes the text of an item.
        logger: the name of the logger.

    Raises:
        TypeError: `to_string` is no function, or `logger` no str.

    Example:
        >>> import logging, sys
        >>> from reducers import to_logger
        >>> logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(name)s: %(message)s", force=True)
        >>> with connect(engine="local") as ctx:
        ...     ctx.stream([1, 2]).collect(to_logger("item {}".format))
        dstream.to_logger: item 1
        dstream.to_logger: item 2
    """
    refuse_one_that_would_not_run(checked_function(to_string, "to_string"), "to_string")
    written = "" if to_string is str else shown_function(to_string)
    return LoggingSink(f"to_logger({written})", Texts(to_string, True), checked_text(logger, "logger"))


def to_nothing() -> Reducer[Any, None]:
    """Run all steps for all items, and keep nothing of them: for trials and measurements.

    **Parallelism**: each partition lets its own items pass.
    **Guarantee**: every item has passed when the run has succeeded.
    **On re-run**: all items pass again.

    Example:
        >>> from reducers import to_nothing
        >>> with connect(engine="local") as ctx:
        ...     ctx.stream("ab").peek(print).collect(to_nothing())
        a
        b
    """
    return PassingSink("to_nothing()", Dropped())


@dataclass(frozen=True, repr=False)
class PassingSink(Generic[T]):
    """A sink without a place that it writes into, which is its own target.

    Attributes:
        label: the reducer as the user wrote it.
        writer: travels to the tasks.
    """

    label: str
    writer: Writer

    collector = None
    job = None

    def open(self, context: Collections) -> PassingSink[T]:
        """Return the sink itself: there is nothing to open."""
        return self

    def begin(self, job: str | None, epoch: int = 1) -> PassingJob:
        """Begin an epoch. Nobody knows whether it ran before."""
        return PassingJob(self.writer, _nothing)

    def result(self) -> None:
        """Return None."""

    def __repr__(self) -> str:
        return self.label


@dataclass(frozen=True, repr=False)
class CommittingSink(PassingSink[T]):
    """Gives what its tasks have prepared to a function.

    Attributes:
        commit: takes the receipts.
    """

    commit: Callable[[list[Any]], object]

    def begin(self, job: str | None, epoch: int = 1) -> PassingJob:
        """Begin an epoch. Whether it was committed, `commit` finds out."""
        return PassingJob(self.writer, self._commit)

    def _commit(self, receipts: Sequence[Receipt]) -> None:
        if receipts:
            self.commit(list(receipts))


@dataclass
class PassingJob:
    """An epoch whose commit changes nothing, or lets the driver do something with the receipts.

    Attributes:
        writer: travels to the tasks.
        finish: takes the receipts.
    """

    writer: Writer
    finish: Callable[[Sequence[Receipt]], object]
    is_done: bool = field(default=False, init=False)

    def commit(self, receipts: Sequence[Receipt]) -> None:
        """Finish, once."""
        if not self.is_done:
            self.finish(receipts)
            self.is_done = True

    def abort(self) -> None:
        """Take nothing back."""


def _nothing(receipts: Sequence[Receipt]) -> None:
    """Leave the receipts as they are."""


@dataclass(frozen=True)
class Passed:
    """Gives each item to a function."""

    create: Callable[[], Any]
    receive: Callable[[Any, Any], object]
    flush: Callable[[Any], object] | None
    destroy: Callable[[Any], object] | None
    prepare: Callable[[Any], Receipt] | None = None

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        """Let the function take the items; give what `prepare` makes at the end, if there is one."""
        made: Any = _NOTHING_MADE
        receipts: list[Receipt] = []
        with self._destroying(lambda: made):
            for number, item in enumerate(items, start=1):
                if made is _NOTHING_MADE:
                    made = self.create()
                self._give(made, item)
                if number % _BATCH == 0:
                    self._flush(made)
            self._flush(made)
            if self.prepare is not None and made is not _NOTHING_MADE:
                receipts.append(self._checked(self.prepare(made)))
        yield from receipts

    def _checked(self, receipt: Any) -> Receipt:
        """Return a receipt that a record of a job gives back as it was."""
        with suppress(TypeError, ValueError, RecursionError):
            if json.loads(json.dumps(receipt, allow_nan=False)) == receipt:
                return cast("Receipt", receipt)
        said = "texts, numbers, lists and dictionaries with texts as keys"
        raise TypeError(f"sink_from(): prepare= must make plain data ({said}), not {shown(receipt)}")

    def _give(self, made: Any, item: Any) -> None:
        try:
            if (result := self.receive(made, item)) is not None:  # An exception finds the item by this name.
                refuse_awaitable(result)
        except StopIteration as error:
            raise stopped(shown_function(self.receive)) from error

    def _flush(self, made: Any) -> None:
        if self.flush is not None and made is not _NOTHING_MADE:
            self.flush(made)

    @contextmanager
    def _destroying(self, made: Callable[[], Any]) -> Iterator[None]:
        """End what was made, after the block. A failure of the block is not hidden by one of `destroy`."""
        try:
            yield
        except BaseException as error:
            try:
                self._destroy(made())
            except Exception as second:
                with suppress(Exception):  # An exception may refuse notes.
                    error.add_note(f"and then {shown_function(self.destroy)} failed with {second!r}")
            raise
        self._destroy(made())

    def _destroy(self, made: Any) -> None:
        if self.destroy is not None and made is not _NOTHING_MADE:
            self.destroy(made)


_NOTHING_MADE: Any = object()


@dataclass(frozen=True)
class Dropped:
    """Lets items pass."""

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        """Take the items; give no receipts."""
        deque(items, maxlen=0)
        yield from ()


@dataclass(frozen=True)
class Texts:
    """Makes texts of the items, which are the receipts.

    Attributes:
        is_heard: the caller logs them; otherwise they are made and dropped.
    """

    to_string: Callable[[Any], str]
    is_heard: bool

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        """Give the texts in lists."""
        for batch in chunked(items, _BATCH):
            texts: list[Receipt] = [*map(str, each(self.to_string, batch))]
            if self.is_heard:
                yield texts


@dataclass(frozen=True, repr=False)
class LoggingSink(PassingSink[T]):
    """Logs the texts in the driver.

    Attributes:
        logger: the name of the logger.
    """

    writer: Texts
    logger: str

    def begin(self, job: str | None, epoch: int = 1) -> PassingJob:
        """Begin an epoch; what no logger would take is not sent."""
        is_logged = is_heard(logging.getLogger(self.logger))
        return PassingJob(Texts(self.writer.to_string, is_logged), self._log)

    def _log(self, receipts: Sequence[Receipt]) -> None:
        logger = logging.getLogger(self.logger)
        for texts in receipts:
            for text in texts if isinstance(texts, list) else ():
                tell(logger, text)
