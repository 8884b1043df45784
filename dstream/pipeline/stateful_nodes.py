"""Nodes of steps with states: windows, states of users, joins in time, and rolling aggregates.

The states of unbounded items outlive epochs; `bounded_rolling` and `bounded_stateful` are for bounded items.
Operators are imported where they are made: few pipelines need them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from dstream.arguments import checked_function, kind_of, optional_function, running_function
from dstream.operators.state.keyed_operators import RunningResult
from dstream.pipeline.arguments import refuse_time
from dstream.pipeline.timestamps import check_timestamps
from dstream.plan import Node, called, shown_function
from dstream.plan.operations.elementwise import Action
from dstream.plan.operations.keyed import Stateful
from dstream.plan.operations.unbounded import OverEpochs
from dstream.spi import AggregateOperation
from dstream.spi.epochs import StateOperator
from dstream.values import Entry
from dstream.values.time import milliseconds

__all__ = [
    "EmptyContainer",
    "ResultSoFar",
    "ResultSoFarOfKey",
    "bounded_rolling",
    "bounded_stateful",
    "distinct",
    "joined_within",
    "rolling",
    "stateful",
    "windowed",
]


@dataclass(frozen=True, slots=True)
class EmptyContainer:
    """The factory of a state: a list with one container, since an operation may put another one instead of it."""

    operation: AggregateOperation[Any, Any, Any]

    def __call__(self) -> list[Any]:
        """Return the state before the first item."""
        return [self.operation.create()]


@dataclass(frozen=True, slots=True)
class ResultSoFar:
    """The function that takes an item into the container, and returns the result of all items until now."""

    operation: AggregateOperation[Any, Any, Any]
    running: RunningResult = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "running", RunningResult(self.operation))

    def __call__(self, state: list[Any], item: Any) -> Any:
        """Return the result of all items until and with `item`."""
        return self.running.after(state, item)


class ResultSoFarOfKey(ResultSoFar):
    """The function that takes an item into the container of its key, and returns the result until now as an entry."""

    __slots__ = ()

    def __call__(self, state: list[Any], key: Any, item: Any) -> Entry[Any, Any]:  # type: ignore[override]  # As above.
        """Return the key with the result of its items until and with `item`."""
        return Entry(key, self.running.after(state, item))


Key = Callable[[Any], Any]
Duration = int | timedelta


def windowed(
    upstreams: Sequence[Node],
    window: Any,
    keys: Sequence[Key] | None,
    operation: AggregateOperation[Any, Any, Any],
    to: Any,
    *,
    call: str,
    late_to: Any,
) -> OverEpochs:
    """Return the node of an operation's results for the items in each window.

    Args:
        upstreams: one per input of the operation.
        window: the kind and size of the windows.
        keys: one for each input, or None.
        operation: the aggregate operation.
        to: makes the output of a result; None: a `WindowResult` or `KeyedWindowResult`.
        call: the method of the user's.
        late_to: the sink for late items, or None.

    Raises:
        IllegalStateError: an input has no timestamps.
    """
    optional_function(to, "to")
    for each in upstreams:
        check_timestamps(each, f"window({window!r})")
    by_key = "" if keys is None else f"grouping_key({shown_function(keys[0])})."
    late = "" if late_to is None else f", late_to={late_to.label}"
    arguments = repr(operation) + ("" if to is None else f", to={shown_function(to)}")
    operator = _window_operator(window, None if keys is None else tuple(keys), operation, to, late_to is not None)
    return _node(upstreams, operator, f"{by_key}window({window!r}{late}).{call}", arguments)


def _window_operator(window: Any, keys: Any, operation: Any, to: Any, gives_late: bool) -> StateOperator:
    from dstream.windows import FrameWindow  # lazily: few pipelines have windows

    if isinstance(window, FrameWindow):
        from dstream.operators.windows.frames import FrameWindows

        return FrameWindows(window, keys, operation, to, gives_late)
    from dstream.operators.windows.sessions import SessionWindows

    return SessionWindows(window, keys, operation, to, gives_late)


def rolling(upstream: Node, key: Key | None, operation: AggregateOperation[Any, Any, Any]) -> OverEpochs:
    """Return the node of the result so far for each item."""
    from dstream.operators.state.keyed_operators import RollingAggregate  # lazily: few pipelines have states

    operator = RollingAggregate(key, operation)
    return _node([upstream], operator, _by_key(key, "rolling_aggregate"), repr(operation))


def bounded_rolling(upstream: Node, key: Key | None, operation: AggregateOperation[Any, Any, Any]) -> Stateful:
    """Return the node for items that end."""
    fn = ResultSoFar(operation) if key is None else ResultSoFarOfKey(operation)
    step = called(_by_key(key, "rolling_aggregate"), repr(operation))
    return Stateful(upstream, EmptyContainer(operation), fn, "map", key, step=step)


def stateful(
    upstream: Node, key: Key | None, action: Action, create: Any, fn: Any, ttl: Duration | None, on_evict: Any
) -> OverEpochs:
    """Return the node of a function's results for each item and a state.

    Raises:
        IllegalStateError: states have an end, and items no timestamps.
        TypeError: an argument is of another kind, or something is to happen at the end of states that have none.
    """
    from dstream.operators.state.keyed_operators import StatefulMapping  # lazily: few pipelines have states

    name = f"{action}_stateful"
    checked_function(create, "create")
    checked = (running_function if action == "filter" else checked_function)(fn, "fn")
    lives = None if ttl is None else milliseconds(ttl, "ttl")
    if lives is not None:
        check_timestamps(upstream, f"{name}(ttl=...)")
    elif optional_function(on_evict, "on_evict") is not None:
        raise TypeError(f"{name}: on_evict= is for states that have an end, which ttl= gives them")
    arguments = [shown_function(create), shown_function(fn), *(() if ttl is None else (f"ttl={ttl!r}",))]
    arguments += [] if on_evict is None else [f"on_evict={shown_function(checked_function(on_evict, 'on_evict'))}"]
    operator = StatefulMapping(key, create, checked, action, lives, on_evict)
    return _node([upstream], operator, _by_key(key, name), ", ".join(arguments))


def bounded_stateful(
    upstream: Node, key: Key | None, action: Action, create: Any, fn: Any, ttl: Any, on_evict: Any
) -> Stateful:
    """Return the node for bounded items, whose states are discarded at their end.

    Raises:
        TypeError: an argument is of another kind.
        UnsupportedError: `ttl` or `on_evict` is set.
    """
    name = f"{action}_stateful"
    refuse_time(name, ttl=ttl, on_evict=on_evict)
    checked = (running_function if action == "filter" else checked_function)(fn, "fn")
    checked_function(create, "create")
    return Stateful(upstream, create, checked, action, key, step=called(_by_key(key, name), create, checked))


def distinct(upstream: Node, key: Key, within: Duration | None) -> OverEpochs:
    """Return the node of the first item of each key.

    Raises:
        IllegalStateError: `within` is set, and the items have no timestamps.
    """
    from dstream.operators.state.keyed_operators import KeyedDistinct  # lazily: few pipelines have states

    if within is not None:
        check_timestamps(upstream, "distinct(within=...)")
    operator = KeyedDistinct(key, None if within is None else milliseconds(within, "within"))
    return _node([upstream], operator, _by_key(key, "distinct"), "" if within is None else f"within={within!r}")


def joined_within(left: Node, right: Node, on: Any, before: Duration, after: Duration) -> OverEpochs:
    """Return the node of pairs of items that have equal keys and are not far from each other in time.

    Raises:
        IllegalStateError: a side has no timestamps.
        TypeError: `on` is neither a function nor a pair of functions.
    """
    from dstream.operators.joins.intervals import IntervalJoin  # lazily: few pipelines join by time

    left_key, right_key = _both_keys(on)
    for each in (left, right):
        check_timestamps(each, "join_within(...)")
    operator = IntervalJoin(left_key, right_key, milliseconds(before, "before"), milliseconds(after, "after"))
    shown = shown_function(left_key)
    keys = shown if left_key is right_key else f"({shown}, {shown_function(right_key)})"
    arguments = f"..., on={keys}, before={before!r}, after={after!r}"
    return _node([left, right], operator, "join_within", arguments)


def _both_keys(on: Any) -> tuple[Key, Key]:
    if callable(on):
        return checked_function(on, "on"), on
    if isinstance(on, tuple) and len(on) == 2:
        return checked_function(on[0], "on[0]"), checked_function(on[1], "on[1]")
    raise TypeError(f"on must be a key function of both sides, or one for each: (of_left, of_right), not {kind_of(on)}")


def _by_key(key: Key | None, name: str) -> str:
    return name if key is None else f"grouping_key({shown_function(key)}).{name}"


def _node(upstreams: Sequence[Node], operator: StateOperator, name: str, given: str) -> OverEpochs:
    return OverEpochs(tuple(upstreams), operator, name, step=called(name, given))
