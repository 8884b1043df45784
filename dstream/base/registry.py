"""Registry of the names under which stored data refer to the classes and functions of dstream.

Keys, values, types, pickles in storages, and the state of jobs outlive the modules that wrote them. They contain the
names of these tables, and a pickle the function `by_name` of this module, which therefore never moves. When a listed
object is moved or renamed, its location in the table changes and its name does not. Objects that are not listed are not
stored by the library itself.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Mapping
from typing import Any

__all__ = [
    "NAMES",
    "PACKAGES",
    "by_name",
    "is_value",
    "reduced_to_name",
    "state_values",
    "stored_name",
    "stored_things",
]


_VALUES = {
    "BadRecord": "dstream.values.bad_records:BadRecord",
    "CollectionName": "dstream.session.context:CollectionName",
    "DeadLetter": "dstream.values.bad_records:DeadLetter",
    "DoubleSummaryStatistics": "dstream.values.numbers:DoubleSummaryStatistics",
    "Entry": "dstream.values.entries:Entry",
    "ExactSum": "dstream.values.numbers:ExactSum",
    "IntSummaryStatistics": "dstream.values.numbers:IntSummaryStatistics",
    "JobMetrics": "dstream.jobs.metrics:JobMetrics",
    "JobStatus": "dstream.jobs.state:JobStatus",
    "JournalEvent": "dstream.values.entries:JournalEvent",
    "KafkaRecord": "dstream.connectors.kafka.consumers:KafkaRecord",
    "KeyedWindowResult": "dstream.values.time:KeyedWindowResult",
    "Optional": "dstream.values.optional:Optional",
    "SimpleEvent": "dstream.connectors.functions:SimpleEvent",
    "SourceMetrics": "dstream.jobs.metrics:SourceMetrics",
    "StageMetrics": "dstream.jobs.metrics:StageMetrics",
    "WindowResult": "dstream.values.time:WindowResult",
}
"""The values that users have names for, by those names; neither making one nor setting its attributes has an effect."""

_STATE = {
    "broadcast-key": "dstream.spi.processor:BroadcastKey",
    "changed-keys": "dstream.operators.state.keys:ChangedKeys",
    "decimal-sum": "dstream.collectors.totals:DecimalSum",
    "dumped-keys": "dstream.operators.state.keys:DumpedKeys",
    "interval-changes": "dstream.operators.joins.intervals:_Arrived",
    "interval-items": "dstream.operators.joins.intervals:_Waiting",
    "kept-numbers": "dstream.collectors.percentiles:KeptNumbers",
    "lag-policy": "dstream.windows.policies:_Lag",
    "lag-policy-with-delay": "dstream.windows.policies:_LagAndDelay",
    "lag-policy-with-lull": "dstream.windows.policies:_LagAndLull",
    "lag-policy-with-wall-clock": "dstream.windows.policies:_LagAndWallClock",
    "moments": "dstream.collectors.moments:_Moments",
    "shard-key": "dstream.spi.processor:ShardKey",
}
"""State of collectors and steps, under names that no user sees; making an instance has no effect either."""

_FUNCTIONS = {
    "cached-function": "dstream.base.by_value:_cached",
    "cached-function-attributes": "dstream.base.by_value:_set_attributes",
    "class-state": "dstream.base.by_value:_complete_class",
    "comparison-key": "dstream.base.pickling:_key_of",
    "function-of-name": "dstream.base.by_value:_function_of",
    "numpy-value": "dstream.storage.codec.plain_classes:from_parts",
    "optional": "dstream.values.optional:of_item",
    "plain-value": "dstream.storage.codec.pickles:plain_value",
    "read-only": "dstream.base.pickling:read_only",
    "registered-functions": "dstream.base.by_value:_register_all",
    "type": "dstream.base.by_value:_made_type",
    "type-alias": "dstream.base.by_value:_made_alias",
}
"""Functions that pickles call to create values."""

NAMES: Mapping[str, str] = types.MappingProxyType({**_VALUES, **_STATE, **_FUNCTIONS})
"""The present location of each, as "module:qualname", by name."""

PACKAGES = tuple({location.partition(".")[0].encode() for location in NAMES.values()})
"""The packages that they are in."""

_names: dict[tuple[str, str], str] = {}
for _name, _location in NAMES.items():
    _module, _, _path = _location.partition(":")
    _names[_module, _path] = _name


def stored_name(thing: Any) -> str | None:
    """Return the name under which stored data refer to a class or function; None if it is not registered."""
    return _names.get((thing.__module__, thing.__qualname__))


def is_value(name: str) -> bool:
    """Return whether a registered name is the name of a value, which storages load without permission of the user."""
    return name in _VALUES


def by_name(name: str) -> Any:
    """Return the class or function that stored data name; its module is imported.

    Raises:
        AttributeError: this version has none of that name.
    """
    # Stored data may contain anything, and a list as a key would raise a TypeError.
    location = NAMES.get(name) if type(name) is str else None
    if location is None:
        raise AttributeError(f"this dstream stores nothing under the name {name!r}; another version has written it")
    module, _, path = location.partition(":")
    # First among those that are loaded: importing one again costs a microsecond, and each state is pickled by name.
    return getattr(sys.modules.get(module) or importlib.import_module(module), path)


def reduced_to_name(thing: Any) -> Any:
    """Return how a class or function is pickled in stored data; `NotImplemented` for the default, by its module."""
    if not isinstance(thing, type | types.FunctionType):
        return NotImplemented
    name = stored_name(thing)
    return NotImplemented if name is None or by_name(name) is not thing else (by_name, (name,))


def state_values() -> tuple[type, ...]:
    """Return the classes of state whose modules are loaded: the classes of a step are in the module of its operator."""
    return stored_things(*_STATE, "ExactSum")


def stored_things(*names: str) -> tuple[Any, ...]:
    """Return the objects registered under these names, as far as they are loaded."""
    places = (NAMES[name].partition(":") for name in names)
    found = (getattr(sys.modules.get(module), path, None) for module, _, path in places)
    return tuple(each for each in found if each is not None)
