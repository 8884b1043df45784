"""`BaseStream`: the operations that streams of objects and of numbers share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NoReturn, Self, TypeVar, overload

from dstream import collectors
from dstream.arguments import (
    checked_function,
    count,
    explained_end,
    is_sink,
    keep_from_streams,
    kind_of,
    not_collected,
    optional_function,
    partition_count,
    running_function,
    settings,
)
from dstream.base.functions import refuse_awaitable
from dstream.errors import NullElementError, SerializationError
from dstream.failures import blame, refuse_an_end, shown
from dstream.plan import (
    NO_CALL,
    Collect,
    Concat,
    Configure,
    Distinct,
    DropWhile,
    End,
    Filter,
    FlatMap,
    ForEach,
    ForEachPartition,
    Limit,
    Loop,
    Map,
    MapMulti,
    Node,
    Parallel,
    Partitions,
    Peek,
    Skip,
    TakeWhile,
    ToList,
    Unordered,
    called,
    check,
    describe,
    explained,
    here,
    known_size,
    last_step,
    parallelism,
    rewrite,
    shown_function,
)
from dstream.spi import AggregateOperation, Collector, Engine, Reducer, Runtime
from dstream.stream.reductions import Negated, folding, folding_from, folding_onto, present
from dstream.stream.runtime import Lifetime, default_runtime, default_stages, shared, write
from dstream.values import Optional
from dstream.values.tables import Rows, caption, print_brief, print_whole, rows_of_items

if TYPE_CHECKING:
    from dstream.explain.drawing import Drawing
    from dstream.plan.stages import Stages

__all__ = ["BaseStream"]


T = TypeVar("T")
A = TypeVar("A")
R = TypeVar("R")
U = TypeVar("U")
U2 = TypeVar("U2")
U3 = TypeVar("U3")
S = TypeVar("S", bound="BaseStream[Any]")


class BaseStream(Generic[T]):
    """A lazy chain of operations. Nothing runs before a terminal operation, which runs the whole plan.

    Streams are immutable: every operation returns a new one, and a stream may be used again, which
    runs its plan again. A closed stream may not.
    """

    __slots__ = ("_lifetime", "_node", "_runtime")

    _kinds: ClassVar[dict[str, type[BaseStream[Any]]]] = {}
    """The stream types by name: they make each other, and no module may import in a circle."""

    def __init_subclass__(cls) -> None:
        BaseStream._kinds[cls.__name__] = cls
        keep_from_streams(cls)

    def __init__(self, node: Node, runtime: Runtime | None, lifetime: Lifetime | None = None) -> None:
        self._node = node
        self._runtime = runtime
        self._lifetime = lifetime or Lifetime()

    # Lazy operations

    def filter(self, predicate: Callable[[T], object]) -> Self:
        """Keep the items that satisfy `predicate`.

        Example:
            >>> Stream.of(1, 2, 3, 4).filter(lambda n: n % 2 == 0).to_list()
            [2, 4]
        """
        return self._then(Filter(self._node, running_function(predicate, "predicate"), step=here()))

    def distinct(self, key: Callable[[T], Any] | None = None) -> Self:
        """Keep one item per key, the first one if the stream is ordered.

        The key is `key(item)`, or the item itself. Keys are equal as in a dict, and every NaN is one
        key. Costs a shuffle of the keys' first items, two to preserve an order.

        Raises:
            UnstableKeyError: a key has no hash, or is hashed by identity.

        Example:
            >>> Stream.of("b", "a", "B", "b").distinct(key=str.lower).to_list()
            ['b', 'a']
        """
        return self._then(Distinct(self._node, optional_function(key, "key"), step=here()))

    def peek(self, action: Callable[[T], object]) -> Self:
        """Call `action` with each item that passes this step.

        The action runs in the caller's process, once for each item that passed this step, in
        encounter order, before the terminal operation returns.

        Example:
            >>> Stream.of(1, 2, 3).peek(print).limit(2).to_list()
            1
            2
            [1, 2]
        """
        return self._then(Peek(self._node, running_function(action, "action"), step=here()))

    def limit(self, n: int) -> Self:
        """Keep the first `n` items; of an unordered stream, any `n`.

        Reading stops as soon as they are found, also inside a partition.

        Example:
            >>> Stream.iterate(1, lambda n: n * 2).limit(5).to_list()
            [1, 2, 4, 8, 16]
        """
        return self._then(Limit(self._node, count(n, "n"), step=here()))

    def skip(self, n: int) -> Self:
        """Leave out the first `n` items; of an unordered stream, any `n`.

        Example:
            >>> Stream.of(1, 2, 3).skip(2).to_list()
            [3]
        """
        return self._then(Skip(self._node, count(n, "n"), step=here()))

    def take_while(self, predicate: Callable[[T], object]) -> Self:
        """Keep items up to the first one that fails `predicate`: the longest prefix.

        Reading stops there, also inside a partition.

        Example:
            >>> Stream.of(1, 2, 9, 3).take_while(lambda n: n < 5).to_list()
            [1, 2]
        """
        return self._then(TakeWhile(self._node, running_function(predicate, "predicate"), step=here()))

    def drop_while(self, predicate: Callable[[T], object]) -> Self:
        """Leave out items up to the first one that fails `predicate`: the longest prefix.

        Example:
            >>> Stream.of(1, 2, 9, 3).drop_while(lambda n: n < 5).to_list()
            [9, 3]
        """
        return self._then(DropWhile(self._node, running_function(predicate, "predicate"), step=here()))

    def unordered(self) -> Self:
        """Release the items from their encounter order, which makes `limit`, `skip`, `distinct` cheaper."""
        return self._then(Unordered(self._node, step=here()))

    def parallel(self, n: int | None = None) -> Self:
        """Run the whole pipeline in `n` partitions, or in a number that depends on the data and the cores.

        The last call of `parallel` or `sequential` decides for the whole pipeline.
        """
        partitions = None if n is None else partition_count(n)
        return self._then(Parallel(self._node, partitions, step=here()))

    def sequential(self) -> Self:
        """Run the whole pipeline in one partition, in order."""
        return self._then(Parallel(self._node, 1, step=here()))

    def is_parallel(self) -> bool:
        """Return whether the pipeline may run in several partitions."""
        return parallelism(rewrite(self._node)) != 1

    def configure(self, config: Mapping[str, str]) -> Self:
        """Run the pipeline with these settings of the engine; later ones win.

        The settings apply to each run of this pipeline only, in addition to the settings of the context's session.

        Args:
            config: names and values of Spark SQL settings; the local engine has none and ignores them.
        """
        return self._then(Configure(self._node, settings(config, "config"), step=here()))

    def __add__(self, other: Self) -> Self:
        """Return the items of this stream followed by those of `other`."""
        if not isinstance(other, type(self)):
            return NotImplemented
        return self._concat(other)

    # Terminal operations: walking over the items

    def for_each(self, action: Callable[[T], object]) -> None:
        """Run `action` on each item, in the caller's process.

        Items arrive partition by partition, never all at once. Use `for_each_partition` to run
        something on the workers.

        Example:
            >>> Stream.of("a", "b").for_each(print)
            a
            b
        """
        self._for_each(action, "for_each")

    def for_each_ordered(self, action: Callable[[T], object]) -> None:
        """Run `action` on each item in encounter order, in the caller's process."""
        self._for_each(action, "for_each_ordered")

    def for_each_partition(self, action: Callable[[Iterator[T]], object]) -> None:
        """Run `action` on an iterator over each partition, on the worker that has it.

        A task that fails may run again, so the action should be safe to repeat.
        """
        node = ForEachPartition(self._node, running_function(action, "action"), step=here())
        with explained(node, "for_each_partition"):
            self._result(node, needs_end=True)

    def __iter__(self) -> Iterator[T]:
        """Yield the items lazily, in encounter order, with a bounded number read ahead."""
        with explained(self._node, "iterator"):
            items = self._result(Loop(self._node))
        # No generator itself, so that a plan that cannot run is refused at the call.
        return _explained_items(self._node, "iterator", items)

    def iterator(self) -> Iterator[T]:
        """Yield the items lazily, as `iter(stream)`."""
        return iter(self)

    def partitions(self) -> list[Iterator[T]]:
        """Return one lazy iterator for each partition, in encounter order."""
        with explained(self._node, "partitions"):
            partitions = self._result(Partitions(self._node))
        return [_explained_items(self._node, "partitions", items) for items in partitions]

    def to_list(self) -> list[T]:
        """Return all items in encounter order; they must fit into the caller's memory."""
        with explained(self._node, "to_list"):
            items: list[T] = self._result(ToList(self._node), needs_end=True)
            return items

    @overload
    def to_array(self) -> list[T]: ...

    @overload
    def to_array(self, factory: Callable[[list[T]], R]) -> R: ...

    def to_array(self, factory: Callable[[list[T]], Any] = list) -> Any:
        """Return `factory(items)`, for example `numpy.array(items)`.

        Example:
            >>> Stream.of(1, 2).to_array(tuple)
            (1, 2)
        """
        return checked_function(factory, "factory")(self.to_list())

    # Terminal operations: reductions

    @overload
    def reduce(self, op: Callable[[T, T], T], /) -> Optional[T]: ...

    @overload
    def reduce(self, identity: T, op: Callable[[T, T], T], /) -> T: ...

    @overload
    def reduce(  # type: ignore[overload-overlap]  # As below.
        self, identity: U, accumulator: Callable[[U, T], U], combiner: Callable[[U, U], U], /
    ) -> U: ...

    # Pyright takes `(0, 0)` for a pair of zeros, unless an overload names the members.
    @overload
    def reduce(
        self,
        identity: tuple[U, U2],
        accumulator: Callable[[tuple[Any, Any], T], tuple[U, U2]],
        combiner: Callable[[tuple[U, U2], tuple[U, U2]], tuple[U, U2]],
        /,
    ) -> tuple[U, U2]: ...

    @overload
    def reduce(
        self,
        identity: tuple[U, U2, U3],
        accumulator: Callable[[tuple[Any, Any, Any], T], tuple[U, U2, U3]],
        combiner: Callable[[tuple[U, U2, U3], tuple[U, U2, U3]], tuple[U, U2, U3]],
        /,
    ) -> tuple[U, U2, U3]: ...

    def reduce(self, *args: Any) -> Any:
        """Fold the items in encounter order with an associative function.

        `reduce(op)` returns an `Optional`. `reduce(identity, op)` is `functools.reduce(op, items,
        identity)`: the identity is folded in once, at the front. `reduce(identity, accumulator,
        combiner)` starts each partition from a copy of the identity, which must therefore change
        nothing, and combines the results in order.

        Example:
            >>> Stream.of("a", "b", "c").reduce("", lambda left, right: left + right)
            'abc'
        """
        match args:
            case (op,):
                arguments = shown_function(checked_function(op, "op"))
                return self._collect_present(folding(op), "reduce", arguments)
            case (identity, op):
                arguments = f"{shown(identity)}, {shown_function(checked_function(op, 'op'))}"
                return self._collect(folding_onto(identity, op), "reduce", arguments)
            case (identity, accumulator, combiner):
                checked_function(accumulator, "accumulator"), checked_function(combiner, "combiner")
                arguments = f"{shown(identity)}, {shown_function(accumulator)}, {shown_function(combiner)}"
                return self._collect(folding_from(identity, accumulator, combiner), "reduce", arguments)
        raise TypeError(f"reduce() takes 1 to 3 arguments, not {len(args)}")

    @overload
    def collect(self, collector: Collector[T, A, R], /) -> R: ...

    @overload
    def collect(self, operation: AggregateOperation[tuple[T], A, R], /) -> R: ...

    @overload
    def collect(self, reducer: Reducer[T, R], /) -> R: ...

    @overload
    def collect(
        self,
        supplier: Callable[[], A],
        accumulator: Callable[[A, T], A | None],
        combiner: Callable[[A, A], A | None],
        /,
    ) -> A: ...

    def collect(self, *args: Any) -> Any:
        """Reduce the items with a collector, or write them into a distributed collection with a reducer.

        Each partition accumulates into its own container; the containers are combined in
        encounter order; the finisher runs once.

        Example:
            >>> from collectors import grouping_by, counting
            >>> Stream.of("apple", "ant", "bee").collect(grouping_by(lambda word: word[0], counting()))
            {'a': 2, 'b': 1}
            >>> Stream.of(1, 2).collect(list, list.append, list.extend)
            [1, 2]
        """
        match args:
            case (AggregateOperation() as operation,):
                collector = operation.as_collector()
                return self._collect(collector, "collect", collector.name or "...")
            case (sink,) if is_sink(sink):
                with explained(self._node, "collect"):
                    # Checked before the sink opens its target, which must not change for a plan that cannot run.
                    self._planned(self._node, needs_end=True)
                    runtime = self._runtime or default_runtime()
                    return write(runtime, self._node, sink, runtime.running_engine)
            case (supplier, accumulator, combiner):
                (
                    checked_function(supplier, "supplier"),
                    checked_function(accumulator, "accumulator"),
                    checked_function(combiner, "combiner"),
                )
                arguments = ", ".join(map(shown_function, (supplier, accumulator, combiner)))
                return self._collect(Collector(supplier, accumulator, combiner), "collect", arguments)
        raise TypeError(not_collected(args))

    def count(self) -> int:
        """Return how many items there are.

        The steps run, since they may have effects. Only if no step has a function, and the source knows its size (a
        range, a list, a table in this process), nothing is read.

        Example:
            >>> Stream.of("a", "b").count()
            2
        """
        size = known_size(self._node)
        if size is None:
            return self._collect(collectors.counting(), "count")
        # Closed and endless streams are refused even though nothing runs.
        self._planned(self._node, needs_end=True)
        self._engine()  # Refuses a closed context.
        return size

    # Terminal operations: short circuits

    def any_match(self, predicate: Callable[[T], object]) -> bool:
        """Return whether any item satisfies `predicate`; False for no items. Stops at the first that does."""
        return self._finds(predicate, "any_match")

    def all_match(self, predicate: Callable[[T], object]) -> bool:
        """Return whether every item satisfies `predicate`; True for no items. Stops at the first that does not."""
        return not self._finds(Negated(running_function(predicate, "predicate")), "all_match")

    def none_match(self, predicate: Callable[[T], object]) -> bool:
        """Return whether no item satisfies `predicate`; True for no items. Stops at the first that does."""
        return not self._finds(predicate, "none_match")

    def find_first(self) -> Optional[T]:
        """Return the first item, reading no further.

        Raises:
            NullElementError: the item is None.

        Example:
            >>> Stream.iterate(0, lambda n: n + 1).filter(lambda n: n > 5).find_first()
            Optional[6]
        """
        return self._first("find_first")

    def find_any(self) -> Optional[T]:
        """Return any one item, the first one if the stream is ordered; reads no further."""
        return self._first("find_any")

    # Terminal operations: inspecting items

    def head(self, n: int = 10) -> None:
        """Print a table of the first `n` items, one line for each; long values are cut.

        Fields of dataclasses and named tuples, keys of dicts, and the positions of tuples are columns, if all items
        have the same shape. Runs as much as `limit(n + 1)` does, to show whether there are more items.

        Example:
            >>> Stream.of(("whale", 3), ("sea", 12), ("ship", 5)).head(2)
            Stream.of(('whale', 3), ('sea', 12), ('ship', 5))
            0         1
            ────────────
            'whale'   3
            'sea'     12
            (the first 2 items; there are more)
        """
        print_brief(describe(self._node), *self._first_rows(n, "head"))

    def show(self, n: int = 10) -> None:
        """Print a table of the first `n` items with their whole values, folded over lines; otherwise as `head`.

        Example:
            >>> Stream.of("a").map(lambda text: text * 70).show()
            Stream.of('a').map(lambda)
            item
            ────────────────────────────────────────────────────────────────────────
            'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'
            (1 item)
        """
        print_whole(describe(self._node), *self._first_rows(n, "show"))

    def _first_rows(self, n: int, name: str) -> tuple[Rows, str]:
        """Return up to `n` items as rows, and a word about how many those are."""
        most = count(n, "n")
        # One more than is shown, to detect further items.
        limited = Limit(self._node, most + 1, step=called(name))
        with explained(limited, name):
            items = list(self._result(Loop(limited)))
        note = caption(min(len(items), most), ("item", "items"), more=len(items) > most)
        return rows_of_items(items[:most]), note

    # Closing

    def on_close(self, handler: Callable[[], object]) -> Self:
        """Run `handler` when the stream, or one made from it, is closed; all handlers run, in order."""
        lifetime = Lifetime((self._lifetime,), running_function(handler, "handler"))
        self._lifetime.check_open()
        return type(self)(self._node, self._runtime, lifetime)

    def close(self) -> None:
        """Run the handlers of `on_close` in order, all of them; the first exception is raised at the end.

        A closed stream cannot be used again, nor can those made from it. A second `close` does nothing.
        """
        self._lifetime.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _traverse_and_close(self) -> Iterator[T]:
        """Yield the items and close this stream at the end, as `flat_map` does with streams."""
        with self:
            yield from self

    # Looking at it

    @overload
    def explain(
        self,
        format: Literal["text"] = "text",
        *,
        into: Collector[T, Any, Any] | Reducer[T, Any] | None = None,
        routes: bool = False,
    ) -> None: ...

    @overload
    def explain(
        self,
        format: Literal["dot", "mermaid", "svg", "html"],
        *,
        into: Collector[T, Any, Any] | Reducer[T, Any] | None = None,
        routes: bool = False,
    ) -> Drawing: ...

    def explain(
        self,
        format: str = "text",
        *,
        into: Collector[T, Any, Any] | Reducer[T, Any] | None = None,
        routes: bool = False,
    ) -> Drawing | None:
        """Explain in which stages the stream would run, where items are shuffled and why. Nothing runs or starts.

        Facts that are known only at run time, such as the number of files, are shown as a range. On Spark, each
        function has its route: `columns`, `inlined`, or `Python: calls json.loads`; see `dstream docs columns`.

        Args:
            format: `"text"` prints; `"dot"`, `"mermaid"`, `"svg"` and `"html"` return a drawing, which is
                a str; a notebook shows the last two.
            into: a collector or a reducer that ends the stream; unset, `to_list()` does.
            routes: whether to explain why each function has its route, and what to write instead where that is easy.

        Raises:
            IllegalStateError: the stream is closed or could never finish.
            UnsupportedError: the engine does not run such a stream, or `into` does not describe what it writes.
            ValueError: there is no such format.

        Example:
            >>> Stream.of("to be", "or not").flat_map(str.split).map(len).explain()
            to_list() on the local engine
              everything runs in this process, one item at a time
            <BLANKLINE>
            stage 1: 1 task, in order
              Stream.of('to be', 'or not')  ...
              .flat_map(str.split)          ...
              .map(len)                     ...
            <BLANKLINE>
            to_list(): all items are listed
        """
        from dstream.explain.drawing import show

        return show(lambda: self._stages(into), format, routes=routes)

    def _stages(self, into: Collector[T, Any, Any] | Reducer[T, Any] | None) -> Stages:
        self._planned(self._node, needs_end=into is not None)
        ending = None if into is None else explained_end(into)
        explaining = self._runtime.stages if self._runtime else default_stages
        stages: Stages = explaining(self._node, ending)
        return stages

    @overload
    def draw(self, format: Literal["text"] = "text") -> None: ...

    @overload
    def draw(self, format: Literal["dot", "mermaid", "svg", "html"]) -> Drawing: ...

    def draw(self, format: str = "text") -> Drawing | None:
        """Draw the stream as it was written: its calls, and which stream each of them reads. Nothing runs or starts.

        `explain()` draws what runs instead.

        Args:
            format: as `explain` takes it; `"text"` prints.

        Raises:
            ValueError: there is no such format.
        """
        from dstream.explain.drawing import chains, graph_as_written, show

        return show(lambda: graph_as_written(type(self).__name__, chains(self._node)), format)

    def __repr__(self) -> str:
        return describe(self._node)

    def _repr_html_(self) -> str:
        """Return the picture that a notebook shows; a stream that cannot be drawn shows its chain."""
        import html

        try:
            return self.explain("html")
        except Exception as error:
            chain = html.escape(f"{describe(self._node)}\n\n{type(error).__name__}: {error}")
            return f"<pre>{chain}</pre>"

    if not TYPE_CHECKING:  # A type checker would take it for every name.

        def __getattr__(self, name: str) -> NoReturn:
            # imported lazily: only an unknown name needs it
            from dstream.suggestions.streams import no_such_name

            raise AttributeError(no_such_name(type(self), name, self._kinds["Stream"]))

        def __getitem__(self, key: object) -> NoReturn:
            # `dict(stream)` calls this as well: it takes what has `keys()`, as streams of entries do, for a mapping.
            raise TypeError(
                "a stream has no items by number or key: limit(n).to_list() gives the first ones, to_list() all; "
                "collect(to_map(key, value)) makes a dict, and dict(iter(stream)) one of pairs"
            )

    def _stays_in_the_driver(self) -> str:
        """Explain why a function that runs on the workers cannot capture this, and the alternative."""
        return (
            "cannot be used inside a function that runs on the workers; collect it before, and let the function "
            "capture the result"
        )

    def __reduce__(self) -> NoReturn:
        raise SerializationError(f"a stream {self._stays_in_the_driver()}: {describe(self._node)}")

    # How streams are made from streams

    def _then(self, node: Node) -> Self:
        """Return a stream of the same type that ends in `node`."""
        self._lifetime.check_open()
        return type(self)(node, self._runtime, Lifetime((self._lifetime,)))

    def _as(self, kind: str, node: Node) -> R:  # type: ignore[type-var]  # The caller determines the type of the items.
        """Return a stream of another type, selected by its name, that ends in `node`."""
        self._lifetime.check_open()
        made: Any = BaseStream._kinds[kind](node, self._runtime, Lifetime((self._lifetime,)))
        found: R = made
        return found

    def _map(self, fn: Callable[[T], Any], kind: type | None, name: str) -> Map:
        return Map(self._node, checked_function(fn, "fn"), kind, step=called(name, fn))

    def _flat_map(self, fn: Callable[[T], Any], kind: type | None, name: str) -> FlatMap:
        return FlatMap(self._node, checked_function(fn, "fn"), kind, step=called(name, fn))

    def _map_multi(self, fn: Callable[[T, Callable[[Any], None]], object], kind: type | None, name: str) -> MapMulti:
        return MapMulti(self._node, running_function(fn, "fn"), kind, step=called(name, fn))

    def _concat(self, *others: Self) -> Self:
        for other in others:
            if not isinstance(other, type(self)):
                raise TypeError(f"concat() takes streams of one type, not {type(self).__name__} and {kind_of(other)}")
        parts = (self._node, *(other._node for other in others))
        return self._combined(type(self), Concat(parts, step=here()), *others)

    def _combined(self, kind: type[S], node: Node, *others: BaseStream[Any]) -> S:
        """Return a stream that reads this one and others; it ends with any of them."""
        runtime = functools.reduce(shared, [other._runtime for other in others], self._runtime)
        lifetimes = (self._lifetime, *(other._lifetime for other in others))
        for lifetime in lifetimes:
            lifetime.check_open()
        return kind(node, runtime, Lifetime(lifetimes))

    # How plans are run

    def _planned(self, node: Node, *, needs_end: bool) -> Node:
        """Return the plan of `node` in the operations of engines, if it can run."""
        self._lifetime.check_open_from_the_source()
        plan = rewrite(node)
        check(plan, needs_end=needs_end)
        return plan

    def _engine(self) -> Engine:
        return (self._runtime or default_runtime()).running_engine()

    def _result(self, end: End, *, needs_end: bool = False) -> Any:
        """Run a plan and wait for its result."""
        plan = self._planned(end, needs_end=needs_end)
        return self._engine().submit(plan).result()

    def _collect(self, collector: Collector[Any, Any, R], name: str, arguments: str = "") -> R:
        node = Collect(self._node, collector, step=called(name, arguments))
        with explained(node, name):
            result: R = self._result(node, needs_end=True)
            return result

    def _collect_present(self, collector: Collector[Any, Any, list[R]], name: str, arguments: str = "") -> Optional[R]:
        node = Collect(self._node, collector, step=called(name, arguments))
        with explained(node, name):
            return _present(self._result(node, needs_end=True), node, name)

    def _for_each(self, action: Callable[[T], object], name: str) -> None:
        node = ForEach(self._node, running_function(action, "action"), step=called(name, action))
        with explained(node, name):
            for item in self._result(Loop(self._node)):
                try:
                    if (result := action(item)) is not None:
                        refuse_awaitable(result)
                except Exception as error:
                    blame(error, last_step(node), item)
                    refuse_an_end(error)  # A StopIteration that leaves this call may end a loop in silence.
                    raise

    def _finds(self, predicate: Callable[[T], object], name: str) -> bool:
        matching = Filter(self._node, running_function(predicate, "predicate"), step=called(name, predicate))
        limited = Limit(matching, 1, step=NO_CALL)
        with explained(limited, name):
            return bool(list(self._result(Loop(limited))))

    def _first(self, name: str) -> Optional[T]:
        limited = Limit(self._node, 1, step=called(name))
        with explained(limited, name):
            return _present(list(self._result(Loop(limited))), limited, name)


def _present(found: list[T], node: Node, name: str) -> Optional[T]:
    try:
        return present(found, name)
    except NullElementError as error:
        blame(error, last_step(node))
        raise


def _explained_items(node: Node, call: str, items: Iterator[T]) -> Iterator[T]:
    with explained(node, call):
        yield from items
