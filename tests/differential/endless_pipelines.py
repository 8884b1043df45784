"""Programs without an end as pipelines, run epoch by epoch, with drivers that die between two epochs or in one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import cycle
from operator import itemgetter
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pyarrow as pa

from collectors import (
    all_of,
    averaging,
    co_operation,
    collecting_and_then,
    counting,
    filtering,
    grouping_by,
    mapping,
    summing,
    to_list,
)
from dstream.jobs.unbounded.epoch_runner import EpochRunner
from dstream.jobs.unbounded.log import LogRecord
from dstream.jobs.unbounded.state import StatesOfSteps, states_of_steps
from dstream.operators.state import backend
from dstream.operators.state.index import is_outweighed
from dstream.operators.state.shards import kept_shards
from dstream.pipeline import Pipeline
from dstream.session.context import Context
from dstream.spi import AggregateOperation, ArrowRows
from dstream.testing import unbounded
from dstream.testing.unbounded import Epochs
from dstream.values.time import NO_WATERMARK
from dstream.windows import (
    limiting_lag,
    limiting_lag_and_delay,
    limiting_lag_and_lull,
    limiting_timestamp_and_wall_clock_lag,
    session,
    sliding,
)
from reducers import to_ilist
from sources import Items
from tests.differential.endless_definition import Expected, Same
from tests.differential.endless_programs import BY_ITEM, BY_KEY, UNKNOWN, Item, Program, Step
from tests.differential.endless_words import as_number, farewell, more, other_key, passes, said, several, weight

__all__ = ["differences"]

KEY, VALUE = itemgetter(0), itemgetter(1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DyingDrivers(Epochs):
    """Epochs by hand of which all that is not in records and files may be lost.

    On the local engine there is one worker; here epochs go to one of two, which have missed what the other one did.

    Args:
        context: has the engine.
        shards: of each state.
        snapshots: after how many parts the state of a shard is written as a whole; None: as it is usual.
    """

    def __init__(self, context: Context | None, shards: int, snapshots: int | None = None) -> None:
        super().__init__(context)
        self._shards = shards
        self._snapshots = snapshots
        self._records: list[LogRecord] = []
        self._other_worker = type(kept_shards)()

    def restart(self, now: float) -> None:
        """Replace the driver by another, which knows only the records and files."""
        for worker in (kept_shards, self._other_worker):
            worker.forget(self._job)
        self._runner.close()
        assert self._plan is not None
        self._record = self._record.claimed(self._record.number + 1, "", now)
        self._records.append(self._record)
        self._started_at = self._record.now
        self._runner = EpochRunner(self._here(), self._plan, self._job)
        self._states = self._read_states(self._records)

    def lose(self, given: Any, now: float) -> None:
        """Run an epoch that is never committed."""
        before = self._record, self._states, self._records.copy(), self.now
        partitions = {source: source.partitions for source in given}
        self.cut(given, now)
        self._record, self._states, self._records, self.now = before
        for source, items in partitions.items():
            source.partitions = items

    def move(self) -> None:
        """Run the next epoch on the other worker."""
        here, there = kept_shards, self._other_worker
        here._jobs, there._jobs = there._jobs, here._jobs

    def close(self) -> None:
        """End it."""
        self._runner.close()

    def labelled(self, found: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
        """Return what `cut` gave by the labels of the sinks."""
        assert self._plan is not None
        return {write.sink.label: found[write.stage] for write in self._plan.writes}

    def _run(self, now: float, is_end: bool) -> dict[str, list[Any]]:
        with patch.object(backend, "is_outweighed", self._is_outweighed):
            found = super()._run(now, is_end)
        self._records.append(self._record)
        return found

    def _is_outweighed(self, parts: Any, *others: Any) -> bool:
        return is_outweighed(parts, *others) if self._snapshots is None else not 0 < len(parts) < self._snapshots

    def _no_states(self) -> StatesOfSteps:
        self._records = [self._record]
        return self._read_states(self._records)

    def _read_states(self, records: Sequence[LogRecord]) -> StatesOfSteps:
        steps = self._runner.open_plan.steps
        files = self._state_files() if steps else None
        return states_of_steps(self._job, uuid4().hex, files, steps, records, self._shards)


@dataclass(frozen=True)
class Stretch:
    """Some items of a partition, of which blocks are columns.

    Attributes:
        items: all of them.
        rows: how many items the blocks have, in turns; 0: one item that is no column.
    """

    items: Sequence[Item]
    rows: tuple[int, ...]

    def read(self) -> Iterator[Item]:
        """Give the items."""
        return iter(self.items)

    def arrow_rows(self) -> Iterator[ArrowRows | Iterator[Item]] | None:
        """Give the items in blocks."""
        return None if self.rows == (0,) else self._blocks()

    def _blocks(self) -> Iterator[ArrowRows | Iterator[Item]]:
        left = list(self.items)
        for rows in cycle(self.rows):
            if not left:
                return
            block, left = left[: rows or 1], left[rows or 1 :]
            columns = _arrays(block) if rows else None
            yield iter(block) if columns is None else _rows(block, columns)


def _arrays(items: Sequence[Item]) -> dict[str, Any] | None:
    """Return the columns of items; None if keys are of several types."""
    if len({type(item.key) for item in items}) > 1 or type(items[0].key) in (type(None), tuple):
        return None
    return {name: pa.array([getattr(item, name) for item in items]) for name in Item._fields}


def _rows(items: Sequence[Item], columns: dict[str, Any]) -> ArrowRows:
    parts = {name: partial(columns.__getitem__, name) for name in columns}
    places = range(len(items))

    def at(chosen: Any) -> list[Item]:
        numbers = places[chosen] if isinstance(chosen, slice) else chosen.tolist()
        return [items[number] for number in numbers]

    return ArrowRows(len(items), parts, frozenset({"attribute", "place"}), at, 3)


class LastOne:
    """A policy of one's own, whose watermark goes back."""

    def __init__(self, lag: int) -> None:
        self.lag = lag
        self.last = NO_WATERMARK

    def report(self, timestamp: int, now: float) -> None:
        """Take a timestamp."""
        self.last = timestamp

    def watermark(self, now: float) -> int:
        """Return the last one, less a lag."""
        return self.last if self.last == NO_WATERMARK else self.last - self.lag


_POLICIES: dict[str, Callable[[int, float], Any]] = {
    "lag": lambda lag, by: limiting_lag(lag),
    "delay": limiting_lag_and_delay,
    "wall clock": limiting_timestamp_and_wall_clock_lag,
    "lull": limiting_lag_and_lull,
    "last": lambda lag, by: LastOne(lag),
}


# --------------------------------------------------------------------------------------------------------------- build


class _Building:
    def __init__(self, program: Program, by_hand: Epochs) -> None:
        self.program = program
        self.pipeline = Pipeline()
        self.sources = [by_hand.source(f"source {n}", count) for n, count in enumerate(program.partitions)]
        self.stages_read: dict[int, Any] = {}
        self._stages: dict[int, Any] = {}

    def built(self) -> Pipeline:
        for step in self.program.steps:
            stages = [self._stages[each.number] for each in step.inputs]
            self._stages[step.number] = _BUILT[step.kind](self, step, *stages)
        for step in self.program.written:
            self._stages[step.number].write_to(to_ilist(str(step.number)))
        return self.pipeline

    def read(self, source: int) -> Any:
        if source not in self.stages_read:
            ends = Items(self.program.bounded, 2) if source < 0 else self.sources[source]
            stage: Any = self.pipeline.read_from(ends)
            self.stages_read[source] = stage.to_stream_stage() if source < 0 else stage
        return self.stages_read[source]


def _stamped(building: _Building, step: Step) -> Any:
    given = step.given
    stage, every, (policy, lag, by) = building.read(given["source"]), given["filtered"], given["policy"]
    if every:
        stage = stage.filter(lambda item: item.value % every)
    if given["by"] == "native":
        stage = stage.native_timestamps(lag)
    elif given["by"] == "ingestion":
        stage = stage.ingestion_timestamps()
    else:
        of = {"fn": itemgetter(2), "moment": lambda item: _EPOCH + timedelta(milliseconds=item.timestamp)}[given["by"]]
        how = {"allowed_lag": lag} if policy == "lag" else {"policy": _POLICIES[policy](lag, by)}
        stage = stage.add_timestamps(of, **how, idle_timeout=given["idle"])
    return stage.map(lambda item: (item.key, item.value))


def _windowed(building: _Building, step: Step, *stages: Any) -> Any:
    given = step.given
    window: Any = session(given["timeout"]) if "timeout" in given else sliding(given["size"], given["by"])
    if given.get("offset"):
        window = window.with_offset(given["offset"])
    if given["early"] is not None:
        window = window.early_results(given["early"])
    late: Any = to_ilist(f"late {step.number}") if given["late"] else None
    keyed = [stage.grouping_key(KEY) if given["keyed"] else stage for stage in stages]
    windowed = keyed[0].window(window, late)
    to = None if not given["to"] else _keyed_triple if given["keyed"] else _triple
    op = _OPERATIONS[given["op"]]
    if len(stages) == 1:
        found = windowed.aggregate(op, to)
    else:
        found = windowed.co_aggregate(*keyed[1:], op=co_operation(*[op] * len(stages)), to=to)
    return found if to else found.map(_keyed_result if given["keyed"] else _result)


def _keyed_triple(start: int, end: int, key: Any, found: Any) -> Any:
    return key, (start, end, found)


def _triple(start: int, end: int, found: Any) -> Any:
    return None, (start, end, found)


def _keyed_result(each: Any) -> Any:
    return each.key, (each.start, each.end, each.result, each.is_early)


def _result(each: Any) -> Any:
    return None, (each.start, each.end, each.result, each.is_early)


def _sorted(values: Any) -> Any:
    return tuple(sorted(values, key=repr))


def _sorted_items(counts: Any) -> Any:
    return tuple(sorted(counts.items()))


def _tuple(values: Any) -> Any:
    return tuple(values)


_OPERATIONS: dict[str, Any] = {
    "count": counting(),
    "sum": mapping(lambda item: weight(item[1]), summing()),
    "sorted": mapping(VALUE, to_list()).with_finish(_sorted),
    "list": mapping(VALUE, to_list()).with_finish(_tuple),
    "all": all_of(counting(), summing(lambda item: as_number(item[1])), averaging(lambda item: as_number(item[1]))),
    "floats": summing(lambda item: as_number(item[1]) * 0.1),
    "filtered": filtering(lambda item: as_number(item[1]) % 2 == 1, counting()),
    "nested": collecting_and_then(grouping_by(lambda item: as_number(item[1]) % 3, counting()), _sorted_items),
    "not combined": AggregateOperation(list, list.append).with_finish(lambda items: tuple(map(VALUE, items))),
}


def _joined(building: _Building, step: Step, left: Any, right: Any) -> Any:
    pairs = left.join_within(right, on=KEY, before=step.given["before"], after=step.given["after"])
    return pairs.map(lambda pair: (pair[0][0], (pair[0][1], pair[1][1])))


def _distinct(building: _Building, step: Step, stage: Any) -> Any:
    return stage.grouping_key(KEY).distinct(within=step.given["within"])


def _rolling(building: _Building, step: Step, stage: Any) -> Any:
    op = _OPERATIONS[step.given["op"]]
    if step.given["keyed"]:
        return stage.grouping_key(KEY).rolling_aggregate(op).map(tuple)
    return stage.rolling_aggregate(op).map(lambda found: (None, found))


def _stateful(building: _Building, step: Step, stage: Any) -> Any:
    """Return the stage; without keys, functions have no argument for one."""
    kind, keyed, ttl = step.kind, step.given["keyed"], step.given["ttl"]

    def made(key: Any, results: list[Any]) -> Any:
        items = [(key, each) for each in results]
        return items if kind == "flat_map_stateful" else items[0] if items else None

    def keyed_fn(state: list[Any], key: Any, item: Any) -> Any:
        state.append(item[1])
        return made(key, said(kind, state))

    def on_evict(state: list[Any], key: Any, watermark: int) -> Any:
        return made(key, farewell(kind, state, watermark))

    fn: Any = keyed_fn if keyed else lambda state, item: keyed_fn(state, None, item)
    how: dict[str, Any] = {} if ttl is None else {"ttl": ttl}
    how |= {"on_evict": on_evict} if step.given["evicts"] else {}
    called = getattr(stage.grouping_key(KEY) if keyed else stage, kind)(list, fn, **how)
    if keyed or kind != "filter_stateful":
        return called
    return called.map(lambda item: (None, item[1]))  # A filter gives the items themselves, with their keys.


def _merged(building: _Building, step: Step, *stages: Any) -> Any:
    return stages[0].merge(*stages[1:])


def _hash_joined(building: _Building, step: Step, stage: Any) -> Any:
    right = building.pipeline.read_from(Items(step.given["right"], 2))
    join = stage.inner_hash_join if step.given["inner"] else stage.hash_join
    refresh = step.given["refresh"]
    return join(right, (KEY, KEY), _with_match, **({} if refresh is None else {"refresh_every": refresh}))


def _with_match(item: Any, match: Any) -> Any:
    return item[0], (item[1], match and match[1])


_BUILT: dict[str, Callable[..., Any]] = {
    "stamp": _stamped,
    "map": lambda building, step, stage: stage.map(lambda item: (item[0], more(item[1]))),
    "filter": lambda building, step, stage: stage.filter(lambda item: passes(item[1])),
    "flat_map": lambda building, step, stage: stage.flat_map(lambda item: [(item[0], v) for v in several(item[1])]),
    "other_key": lambda building, step, stage: stage.map(lambda item: (other_key(item[1]), item[1])),
    "rebalance": lambda building, step, stage: stage.rebalance(),
    "merge": _merged,
    "hash_join": _hash_joined,
    "frames": _windowed,
    "sessions": _windowed,
    "co_frames": _windowed,
    "co_sessions": _windowed,
    "join_within": _joined,
    "distinct": _distinct,
    "rolling": _rolling,
    "map_stateful": _stateful,
    "filter_stateful": _stateful,
    "flat_map_stateful": _stateful,
}


# ----------------------------------------------------------------------------------------------------------------- run


def differences(program: Program, wanted: Expected, context: Context | None = None) -> list[str]:
    """Run a program, and say where it gives something else than it must."""
    with (
        closing(DyingDrivers(context, program.shards, program.snapshots)) as by_hand,
        patch.object(unbounded, "_Stretch", partial(Stretch, rows=program.rows)),
    ):
        building = _Building(program, by_hand)
        by_hand.of(building.built())
        found: list[str] = []
        for epoch, cut in enumerate(program.cuts):
            if cut.moved:
                by_hand.move()
            if cut.lost is not None:
                by_hand.lose(_given(building, cut.lost), cut.restarted or 0.0)
            if cut.restarted is not None:
                by_hand.restart(cut.restarted)
            got = by_hand.labelled(by_hand.cut(_given(building, cut.given), cut.now, is_end=cut.ends))
            found += [f"epoch {epoch}: {each}" for each in _differing(program, wanted, epoch, got)]
            if by_hand.clock != wanted.clock[epoch]:
                found.append(f"epoch {epoch}: the clock is at {by_hand.clock}, not {wanted.clock[epoch]}")
        late, right = sum(by_hand.late.values()), sum(len(each) for some in wanted.late.values() for each in some)
        return [*found, f"{late} items were late, not {right}"] if late != right else found


def _given(building: _Building, given: dict[int, dict[int, list[Item]]]) -> dict[Any, Any]:
    return {building.sources[source]: items for source, items in given.items() if source in building.stages_read}


def _differing(program: Program, wanted: Expected, epoch: int, got: dict[str, list[Any]]) -> list[str]:
    pairs = [(str(step.number), step.order, wanted.results[step.number][epoch]) for step in program.written]
    pairs += [
        (f"late {step.number}", UNKNOWN, wanted.late[step.number][epoch])
        for step in program.steps
        if step.given.get("late")
    ]
    found = []
    for name, order, right in pairs:
        has = [(repr(Same(key)), value) for key, value in got[f"to_ilist({name!r})"]]
        must = [(repr(key), value) for key, value in right]
        if _ordered(has, order) != _ordered(must, order):
            found.append(f"{name}: {has}\n    not {must}")
    return found


def _ordered(items: list[tuple[str, Any]], order: str) -> Any:
    """Return items in the order that counts."""
    if order == BY_ITEM:
        return items
    return sorted(items, key=lambda item: item[0]) if order == BY_KEY else sorted(map(repr, items))
