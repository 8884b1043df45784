"""Reducers made of functions and of processors, logging, and `replacing`.

Their effects happen in the tasks: a run that fails does not undo them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from dstream.arguments import kind_of, running_function
from dstream.connectors.base import CommittingSink, FunctionWriter, ImmediateSink, Replaceable, checked_text
from dstream.connectors.functions import LOGGER, DiscardingWriter, LoggingSink, LogLineWriter
from dstream.spi import ProcessorSink, Receipt, Reducer
from dstream.values.user_functions import shown_function

if TYPE_CHECKING:
    from dstream.spi.suppliers import AnySupplier

__all__ = ["replacing", "sink_from", "to_logger", "to_nothing", "to_processor"]


T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")


def replacing(reducer: Reducer[T, R]) -> Reducer[T, R]:
    """Replace the whole contents of the collection, or the folder, by the output of a reducer.

    The commit of the new content removes the old content: no reader sees an empty collection. In a
    folder the new files appear one by one, then the list in `_SUCCESS` changes, then the old files disappear.

    **Parallelism**, **Guarantee**: those of `reducer`.
    **On re-run**: the result is the same, however often it runs.

    Raises:
        TypeError: `reducer` is none of this package.

    Example:
        >>> from reducers import replacing, to_ilist
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     first = ctx.stream("ab").collect(to_ilist("letters"))
        ...     list(ctx.stream("xyz").collect(replacing(to_ilist("letters"))))
        ['x', 'y', 'z']
    """
    if not isinstance(reducer, Replaceable):
        raise TypeError(f"replacing() takes a reducer of this package, such as to_imap(...), not {kind_of(reducer)}")
    replaced = dataclasses.replace(cast(Any, reducer), replace=True, label=f"replacing({reducer.label})")
    return cast("Reducer[T, R]", replaced)


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
    """Pass each item to a function of your own, with an object that each task makes for it, such as a client.

    The functions run in the tasks of the items. The items of an ordered partition are passed in order.

    ***Parallelism**: each task that has items creates its own object.
    **Guarantee**: at least once, if `receive` and `flush` have handed an item over when they return. Items that were
    received before a failure are not removed, and a task that runs again passes its items again. With `prepare` and
    `commit` exactly once, in jobs that resume after a crash too: tasks put the items where they are not visible, and
    the commit shows them. It may be called again for the same items, and must then change nothing, as renaming a file
    does. **On re-run**: all items are passed again.

    Args:
        create: returns the object, before the first item of a task.
        receive: receives (object, item).
        flush: receives the object after every 1,000 items, and after the last item.
        destroy: receives the object at its end, also after a failure.
        prepare: receives the object after the last item, and returns the location of the task's items as plain data,
            as JSON has it. Output that was prepared but not committed, as by a task that ran twice, is not removed.
        commit: receives in the caller the list of the results of `prepare` in one attempt of each task; not called
            without items. After a failure it is called again with the same list, maybe by another process; a job that
            has run starts again if it raises a `SinkUnavailableError`.
        name: the name of the sink in messages; unset, its functions.

    Raises:
        TypeError: an argument is no function, or a function whose call would not run it; when it runs: `prepare`
            returns other than plain data.
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
        running_function(fn, argument)
    written = ", ".join(map(shown_function, given.values())) if name is None else repr(checked_text(name, "name"))
    label, passed = f"sink_from({written})", FunctionWriter(create, receive, flush, destroy, prepare)
    return ImmediateSink(label, passed) if commit is None else CommittingSink(label, passed, commit)


def to_logger(to_string: Callable[[T], str] = str, *, logger: str = LOGGER) -> Reducer[T, None]:
    """Log a line for each item, at the level INFO, in the caller's process.

    The caller has set up its logging; the logs of workers are on other machines. Without logging handlers the lines are
    printed to stderr. They are logged in encounter order once the run has succeeded; a run that fails logs none. The
    strings are in the caller's memory until then: this is for results that people read.

    ***Parallelism**: the strings are made in the tasks; the caller logs.
    **Guarantee**: at least once: a job that another process finishes may log its lines again.
    **On re-run**: all items are logged again.

    Args:
        to_string: returns the string of an item.
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
    running_function(to_string, "to_string")
    written = "" if to_string is str else shown_function(to_string)
    return LoggingSink(f"to_logger({written})", LogLineWriter(to_string, True), checked_text(logger, "logger"))


def to_nothing() -> Reducer[Any, None]:
    """Run all steps for all items, and discard the results: for trials and measurements.

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
    return ImmediateSink("to_nothing()", DiscardingWriter())


def to_processor(name: str, supplier: AnySupplier) -> ProcessorSink:
    """Pass the items to processors of your own that emit none, such as a client with a protocol.

    They run like a vertex of a graph: items arrive in blocks, at any of the processors, `complete()` is called after
    the last item, and `close(error)` at the end. In a job without an end they save their state in each epoch.
    Their output is dropped. Where functions suffice, `sink_from(...)` is shorter, and may be exactly once.

    **Parallelism**: one task for each processor: as many as there are cores, unless the supplier or, in a pipeline,
    `set_local_parallelism(n)` changes that; the local engine has one.
    ***Guarantee**: at least once: a task that runs again passes its items again.
    **On re-run**: all items are passed again.

    Args:
        name: the name of the vertex, and in a pipeline of its stage.
        supplier: creates the processors: a class of processors, a function, a `ProcessorSupplier` or a
            `ProcessorMetaSupplier`.

    Raises:
        TypeError: `name` is no str, or `supplier` none.
        ValueError: `name` is empty.

    Example:
        >>> from dstream.core import AbstractProcessor
        >>> from reducers import to_processor
        >>> class Printing(AbstractProcessor):
        ...     def try_process(self, ordinal, item):
        ...         print("got", item)
        ...         return True
        >>> with connect(engine="local") as ctx:
        ...     ctx.stream([1, 2]).collect(to_processor("printing", Printing))
        got 1
        got 2
    """
    return ProcessorSink.of(name, supplier)
