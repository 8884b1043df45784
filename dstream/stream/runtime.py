"""The context of a stream, its lifetime, and the writes of its plan, and of its dead letters, into sinks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from dstream import collectors
from dstream.base.functions import refuse_awaitable
from dstream.base.records import record
from dstream.base.showing import add_note
from dstream.errors import IllegalStateError
from dstream.failures import is_our_name, naming
from dstream.plan import (
    Node,
    Read,
    SourceLocation,
    Step,
    Write,
    call_site,
    called,
    explained,
    inputs_first,
    last_step,
    rewrite,
)
from dstream.spi import (
    Collections,
    Collector,
    Engine,
    Grouped,
    MapWriter,
    ProcessorSink,
    Reducer,
    Sink,
    Source,
    Writer,
)
from dstream.spi.processor_ends import Nowhere
from dstream.spi.runtime import Runtime
from dstream.spi.sink import Receipt
from dstream.values import DeadLetter

__all__ = [
    "Delivery",
    "Lifetime",
    "bind_default",
    "default_runtime",
    "default_stages",
    "delivery_of",
    "ended",
    "shared",
    "write",
    "writing",
]


_default: Callable[[], Runtime] | None = None
_stages: Callable[[Any, Any], Any] | None = None


def bind_default(provider: Callable[[], Runtime], stages: Callable[[Any, Any], Any]) -> None:
    """Register the session as the provider of the default context.

    Args:
        provider: returns the default context.
        stages: does what `Runtime.stages` does, without making a context if there is none yet.
    """
    global _default, _stages
    _default, _stages = provider, stages


def default_runtime() -> Runtime:
    """Return the default context."""
    if _default is None:
        raise IllegalStateError("no default context: import dstream, which provides one")
    return _default()


def default_stages(node: Any, into: Any) -> Any:
    """Return the stages of a plan on the default context, which is not made for that."""
    if _stages is None:
        raise IllegalStateError("no default context: import dstream, which provides one")
    return _stages(node, into)


def shared(left: Runtime | None, right: Runtime | None) -> Runtime | None:
    """Return the context of two streams that are combined.

    Raises:
        IllegalStateError: they belong to different contexts.
    """
    if left is not None and right is not None and left is not right:
        raise IllegalStateError("two streams of different contexts cannot be combined; make both from one context")
    return left if right is None else right


class Lifetime:
    """The lifetime of one stream; it ends with the lifetime of any stream that it was made from."""

    __slots__ = ("_handler", "_is_closed", "_parents")

    def __init__(self, parents: tuple[Lifetime, ...] = (), handler: Callable[[], object] | None = None) -> None:
        self._parents = parents
        self._handler = handler
        self._is_closed = False

    def check_open(self) -> None:
        """Raise if this stream is closed.

        Raises:
            IllegalStateError: it is.
        """
        if self._is_closed:
            raise IllegalStateError("stream has already been closed; make it again from its source")

    def check_open_from_the_source(self) -> None:
        """Raise if this stream, or one that it was made from, is closed."""
        for lifetime in self._from_the_source():
            lifetime.check_open()

    def close(self) -> None:
        """Close this stream; run its handlers and those of the streams before it, in order, each once.

        Upstream streams remain open: their plans may run again.
        """
        self._is_closed = True
        failures: list[Exception] = []
        for lifetime in self._from_the_source():
            # Removed first, so that no second `close` runs a handler that fails.
            handler, lifetime._handler = lifetime._handler, None
            if handler is not None:
                try:
                    refuse_awaitable(handler())
                except Exception as error:
                    failures.append(error)
        if failures:
            first, *suppressed = failures
            for other in suppressed:
                add_note(first, f"another on_close handler failed too: {type(other).__name__}: {other}")
            raise first

    def _from_the_source(self) -> list[Lifetime]:
        """Return this lifetime and all before it, the earliest first."""
        return inputs_first(self, lambda lifetime: lifetime._parents)


R = TypeVar("R")


def write(
    runtime: Runtime,
    node: Node,
    sink: Sink[Any, R],
    engine: Callable[[], Engine],
    name: str | None = None,
    epoch: int = 1,
) -> R:
    """Run the plan that ends in `node`, commit its tasks' output, and return the result of the target.

    The target is as it was before if anything fails.

    Args:
        runtime: has the collections.
        node: the last node of the plan.
        sink: writes the items.
        engine: starts the engine, unless the job is already done.
        name: the name of the job in the target, unless the sink names it.
        epoch: its number.
    """
    node, sink = ended(node, sink, runtime)
    target = sink.open(runtime)
    job = target.begin(sink.job or name, epoch)
    # A driver that committed this epoch may have ended before that was recorded.
    if job.is_done:
        return target.result()
    try:
        end = writing(node, sink, job.writer)
        with explained(end, "collect"):
            receipts = engine().submit(rewrite(end)).result()
            # A failure there, such as one of a function that merges, names the step as one in a task does.
            with naming(last_step(end)):
                job.commit(receipts)
    except BaseException:  # Ctrl-C too must leave the target as it was.
        job.abort()
        raise
    return target.result()


def ended(
    node: Node,
    sink: Sink[Any, R],
    runtime: Collections | None = None,
    name: str = "collect",
    where: SourceLocation | None = None,
) -> tuple[Node, Sink[Any, R]]:
    """Return the input of a sink from a node, and the sink: processors take the items before one.

    Args:
        node: the last node of the plan.
        sink: writes the items.
        runtime: resolves the collections that processors refer to by name; None: it is passed later.
        name: the method that the user called.
        where: the source location of that call; None: the current call.
    """
    if not isinstance(sink, ProcessorSink):
        return node, sink
    from dstream.stream.processors import taken  # lazily: few programs have processors

    opened = sink if runtime is None else sink.opened(runtime)
    return taken(node, opened, name, where or call_site()), cast("Sink[Any, R]", Nowhere(sink.label))


def writing(
    node: Node,
    sink: Sink[Any, Any],
    writer: Writer | MapWriter | None,
    name: str = "collect",
    where: SourceLocation | None = None,
) -> Write:
    """Return the end of a plan whose items a writer takes.

    Args:
        node: the last node before it.
        sink: decides what is written.
        writer: takes it; None for a plan that is only explained.
        name: the method that the user called.
        where: the source location of that call; None: the current call.
    """
    collector, functions = _collector(sink), tuple(dict.fromkeys(_functions(sink)))
    return Write(node, writer, collector, functions, step=called(name, sink.label, where=where))


def _functions(value: Any, name: str = "") -> Iterator[str]:
    """Yield the names under which a sink of ours has functions that it calls for each item."""
    if name in _NOT_OF_ITEMS:
        return
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _functions(each, name)
    elif isinstance(value, tuple):
        for each in value:
            yield from _functions(each, name)
    elif is_our_name(type(value).__module__):
        if dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                yield from _functions(getattr(value, field.name), field.name)
    elif callable(value) and not is_our_name(getattr(value, "__module__", None) or ""):
        yield "partition_by" if name == "parts" else name


_NOT_OF_ITEMS = frozenset(("commit", "create", "destroy", "flush", "prepare"))


def _collector(sink: Sink[Any, Any]) -> Collector[Any, Any, Any] | None:
    """Return the keyed collector that makes the entries, or None if the items are written as they are."""
    made = sink.collector
    if isinstance(made, Grouped):
        return collectors.grouping_by(made.classifier, made.downstream or collectors.to_list())
    return made


@record(slots=False)
class Delivery:
    """Commits dead letters with a reducer, in the caller's process."""

    reducer: Reducer[DeadLetter, Any]
    runtime: Runtime | None

    @property
    def label(self) -> str:
        """The reducer as the user wrote it."""
        return self.reducer.label

    def opened(self, context: Any) -> Delivery:
        """Return the delivery with the context of a job, if it has none, as in a pipeline."""
        return self if self.runtime is not None else dataclasses.replace(self, runtime=context)

    def __call__(self, letters: Iterable[DeadLetter]) -> None:
        """Commit the letters, all of them or none, without the engine: they are in this process, maybe on disk."""
        runtime = self.runtime or default_runtime()
        # By the engine of this process, where the letters are, whichever engine runs the stream.
        write(runtime, Read(_Letters(letters), step=Step("dead letters")), self.reducer, runtime.engine_here)

    def report(self, report: Callable[[], object]) -> None:
        """Report to the user that letters were sent; they are committed."""
        report()

    def staged(self, letters: Iterable[DeadLetter], writer: Writer | MapWriter) -> Sequence[Receipt]:
        """Write the letters with a writer of the reducer, and return its receipts."""
        runtime = self.runtime or default_runtime()
        end = writing(Read(_Letters(letters), step=Step("dead letters")), self.reducer, writer)
        receipts: Sequence[Receipt] = runtime.engine_here().submit(rewrite(end)).result()
        return receipts


def delivery_of(source: Source[Any], runtime: Runtime | None) -> Delivery | None:
    """Return the delivery of a source's dead letters to its reducer; None if it has none."""
    reducer = getattr(source, "into", None) if hasattr(source, "on_bad") else None
    return None if reducer is None else Delivery(reducer, runtime)


@record(slots=False)
class _Letters:
    """The letters as a source, and its one split."""

    letters: Iterable[DeadLetter]
    ordered: bool = True
    bounded: bool = True
    in_caller: bool = True

    def splits(self, parallelism: int) -> list[_Letters]:
        return [self]

    def read(self) -> Iterator[DeadLetter]:
        return iter(self.letters)
