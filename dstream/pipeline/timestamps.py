"""Timestamps of the items of a stage: their sources, their checks, and the progress of time."""

from __future__ import annotations

import copy
import dataclasses
import math
import operator
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from dstream.arguments import checked_function, kind_of
from dstream.errors import IllegalStateError, UnsupportedError
from dstream.failures import shown
from dstream.plan import (
    Filter,
    FlatMap,
    Gather,
    Map,
    MapMulti,
    Node,
    Peek,
    Read,
    Recover,
    Unordered,
    called,
    describe,
    fold,
    shown_function,
)
from dstream.plan.operations.calls import WithService
from dstream.plan.operations.elementwise import UsingBatches
from dstream.plan.operations.unbounded import AssignTimestamps
from dstream.plan.timestamps import InstantOf, StreamRead
from dstream.spi import Calling
from dstream.spi.epochs import WatermarkPolicy
from dstream.spi.source import Timestamped, TimestampedBeside
from dstream.values.time import instant, milliseconds, seconds

__all__ = [
    "check_that_it_runs_in_epochs",
    "check_timestamps",
    "ingested",
    "is_timestamped",
    "natively_stamped",
    "stamped",
]


Duration = int | timedelta


def stamped(
    upstream: Node, fn: Any, allowed_lag: Duration, policy: Any, idle_timeout: float | timedelta, drop_before: Any
) -> AssignTimestamps:
    """Return the node of `add_timestamps(...)`.

    Raises:
        IllegalStateError: the items have timestamps.
        TypeError: an argument is of another kind, both a policy and a lag are passed, or the policy cannot be pickled.
        UnsupportedError: an upstream step does not take one item at a time.
    """
    timestamp, policies = checked_function(fn, "fn"), _policies(allowed_lag, policy)
    arguments = [shown_function(fn)]
    arguments += [f"allowed_lag={allowed_lag!r}"] if allowed_lag else []
    arguments += [f"policy={policy!r}"] if policy is not None else []
    arguments += _shown_drop(drop_before)
    idle = seconds(idle_timeout, "idle_timeout") or math.inf  # As in Jet, 0 means that no partition is idle.
    first = _first(drop_before)
    return _added(upstream, "add_timestamps", timestamp, policies, idle, ", ".join(arguments), first)


def _shown_drop(drop_before: Any) -> list[str]:
    return [] if drop_before is None else [f"drop_before={drop_before!r}"]


def _first(drop_before: Any) -> int | None:
    """Return the first timestamp that is not dropped.

    Raises:
        TypeError: it is neither milliseconds nor a datetime.
        ValueError: it is a datetime without a time zone, or too far away.
    """
    if drop_before is None:
        return None
    try:
        return instant(drop_before)
    except (TypeError, ValueError) as error:
        raise type(error)(f"drop_before: {error}") from None


def natively_stamped(upstream: Node, allowed_lag: Duration, drop_before: Any = None) -> AssignTimestamps:
    """Return the node of `native_timestamps(...)`.

    Raises:
        IllegalStateError: the items have timestamps, or a step is between them and their source.
        UnsupportedError: the source has none.
    """
    if not isinstance(upstream, Read):
        before = upstream.label() or describe(upstream)
        raise IllegalStateError(
            f"native_timestamps() stands directly behind read_from(...), and here behind {before}: steps that follow "
            "have other items than the source"
        )
    source = upstream.source.source if isinstance(upstream.source, StreamRead) else upstream.source
    if isinstance(source, TimestampedBeside):
        timestamp: Any = operator.itemgetter(0)
    elif isinstance(source, Timestamped):
        timestamp = source.timestamp
    else:
        raise UnsupportedError(f"{source!r} has no timestamps of its own: add_timestamps(fn) takes them from the items")
    arguments = ", ".join([*([f"allowed_lag={allowed_lag!r}"] if allowed_lag else []), *_shown_drop(drop_before)])
    policies, first = _policies(allowed_lag, None), _first(drop_before)
    added = _added(upstream, "native_timestamps", timestamp, policies, _IDLE, arguments, first)
    return dataclasses.replace(added, are_beside=isinstance(source, TimestampedBeside))


# As in Jet (DEFAULT_IDLE_TIMEOUT).
_IDLE = 60.0


def ingested(upstream: Node) -> AssignTimestamps:
    """Return the node of `ingestion_timestamps()`.

    Raises:
        IllegalStateError: the items have timestamps.
        UnsupportedError: there is more before it than steps that take one item at a time.
    """
    return _added(upstream, "ingestion_timestamps", None, _policies(0, None), _IDLE)


def _added(
    upstream: Node,
    call: str,
    timestamp: Any,
    policies: Callable[[], WatermarkPolicy],
    idle: float,
    arguments: str = "",
    drop_before: int | None = None,
) -> AssignTimestamps:
    if is_timestamped(upstream):
        raise IllegalStateError(f"{call}(): these items have timestamps already, and have them once")
    check_that_it_runs_in_epochs(upstream, f"{call}()")
    return AssignTimestamps(
        upstream,
        None if timestamp is None else InstantOf(timestamp),
        call,
        policy=policies,
        idle_timeout=idle,
        drop_before=drop_before,
        step=called(call, arguments),
    )


def check_that_it_runs_in_epochs(node: Node, call: str) -> None:
    """Refuse operations that cannot run on parts of a partition of a source, range by range.

    Args:
        node: the last one before the call.
        call: the method that the user called.

    Raises:
        UnsupportedError: a step does not take one item at a time, or the source never ends and has no offsets.
    """
    while _takes_one_item(node):
        (node,) = node.inputs()
    if not isinstance(node, Read):
        raise UnsupportedError(
            f"{call} behind {node.label()}: partitions of sources are read range by range, and their time is watched "
            "there, so only steps that take one item at a time, such as map and filter, may be between"
        )
    if not node.source.bounded:
        raise UnsupportedError(
            f"{call}: {node.label()} never ends and cannot be read range by range: stream_source_from(...) makes "
            "a source of functions that can"
        )


def _takes_one_item(node: Node) -> bool:
    if isinstance(node, Gather):
        calls = node.gatherer.parallel
        return isinstance(calls, Calling) and not calls.is_shared
    return isinstance(node, _STEPS)


_STEPS = (Filter, FlatMap, Map, MapMulti, Peek, Recover, Unordered, WithService, UsingBatches)


def is_timestamped(node: Node) -> bool:
    """Return whether all items that a node emits have timestamps."""
    return fold(node, lambda each, inputs: each.has_timestamps(inputs))


def check_timestamps(node: Node, call: str) -> None:
    """Refuse an operation on event time if the items have no timestamps.

    Raises:
        IllegalStateError: some of the items have no timestamps.
    """
    if not is_timestamped(node):
        raise IllegalStateError(
            f"{call} needs timestamps, and {node.label() or 'the stage before'} gives items without: "
            "add_timestamps(fn, allowed_lag=...) takes them from the items, native_timestamps() from the source, "
            "ingestion_timestamps() from the clock; each of several sources needs them"
        )


def _policies(allowed_lag: Duration, policy: Any) -> Callable[[], WatermarkPolicy]:
    """Return a factory of a policy for each partition.

    Raises:
        TypeError: both a policy and a lag are passed, or the policy is none or cannot be pickled.
    """
    from dstream.windows import limiting_lag  # lazily: few pipelines have timestamps

    if policy is None:
        return CopyOf(limiting_lag(milliseconds(allowed_lag, "allowed_lag")))
    if allowed_lag:
        raise TypeError("add_timestamps() takes allowed_lag= or policy=, not both: limiting_lag(...) is a policy")
    # The class of a policy has its methods, too.
    if isinstance(policy, WatermarkPolicy) and not isinstance(policy, type):
        return CopyOf(_storable(policy))
    raise TypeError(
        f"policy must be a policy of dstream.windows, such as limiting_lag(1000), or have report(timestamp, now) and "
        f"watermark(now), which {kind_of(policy)} has not"
    )


def _storable(policy: WatermarkPolicy) -> WatermarkPolicy:
    """Return a policy that can be stored with each epoch, and has a watermark before any event.

    Raises:
        TypeError: it cannot be pickled, or has no watermark.
    """
    try:
        pickle.dumps(policy)
    except Exception as error:
        raise TypeError(
            f"policy is kept with each epoch, and {shown(policy)} cannot be pickled ({error}): define its class in "
            "a module, and its attributes hold data only"
        ) from error
    # Asked of a copy, since the question may change a policy of a user's.
    if not isinstance(first := CopyOf(policy)().watermark(0.0), int):
        raise TypeError(
            f"policy.watermark(now) must give milliseconds as int, also before the first event, not {shown(first)}: "
            "-2**63 is before all events"
        )
    return policy


@dataclass(frozen=True, slots=True)
class CopyOf:
    """A factory of policies that start as one does; each partition continues with its own.

    Attributes:
        policy: which never gets an event.
    """

    policy: WatermarkPolicy

    def __call__(self) -> WatermarkPolicy:
        """Return a new one."""
        # Deep: a policy may store events in its own list.
        return copy.deepcopy(self.policy)
