"""The types that flow through stages without an end; two type checkers read this file, nothing runs it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, assert_type

from collectors import AggregateOperation, counting, joining
from dstream import Entry, JoinClause, Pipeline, Service, imap_service
from dstream.core import processors
from dstream.gatherers import map_concurrent
from dstream.pipeline import (
    BatchStage,
    KeyedStreamStage,
    KeyedWindowedStage,
    SinkStage,
    StreamStage,
    WindowedStage,
)
from dstream.values.time import KeyedWindowResult, WindowResult
from dstream.windows import Window, limiting_lag, session, sliding, tumbling
from reducers import to_ilist
from sources import Items, watch_files


def begun(pipeline: Pipeline, stage: StreamStage[str], batch: BatchStage[str]) -> None:
    """What a source gives says which stage it begins."""
    assert_type(pipeline.read_from(watch_files("logs")), StreamStage[str])
    assert_type(pipeline.read_from(Items([1])), BatchStage[int])
    assert_type(pipeline.write_to(to_ilist("x"), stage, batch), SinkStage)
    assert_type(stage.write_to(to_ilist("x")), SinkStage)
    assert_type(stage.set_name("words"), StreamStage[str])
    assert_type(stage.set_local_parallelism(2), StreamStage[str])
    assert_type((stage.name, stage.pipeline), tuple[str, Pipeline])


def one_by_one(stage: StreamStage[str], lists: StreamStage[list[int]], pairs: StreamStage[tuple[int, str]]) -> None:
    """Lambdas know their item; what they give is the item of the next stage."""
    assert_type(stage.map(lambda word: len(word)), StreamStage[int])
    assert_type(stage.map(len).map(lambda n: n / 2), StreamStage[float])
    assert_type(stage.map_to_obj(str.upper), StreamStage[str])
    assert_type(stage.map_to_int(len), StreamStage[int])
    assert_type(stage.map_to_long(len), StreamStage[int])
    assert_type(stage.map_to_double(len), StreamStage[float])
    assert_type(stage.filter(lambda word: word.isupper()), StreamStage[str])
    assert_type(stage.flat_map(lambda word: word.split()), StreamStage[str])
    assert_type(stage.flat_map_to_int(lambda word: [len(word)]), StreamStage[int])
    assert_type(stage.flat_map_to_long(lambda word: [len(word)]), StreamStage[int])
    assert_type(stage.flat_map_to_double(lambda word: [1.5]), StreamStage[float])
    assert_type(stage.map_multi_to_int(lambda word, emit: emit(1)), StreamStage[int])
    assert_type(stage.map_multi_to_long(lambda word, emit: emit(1)), StreamStage[int])
    assert_type(stage.map_multi_to_double(lambda word, emit: emit(1.5)), StreamStage[float])
    assert_type(lists.flatten(), StreamStage[int])
    assert_type(pairs.starmap(lambda number, word: word * number), StreamStage[str])
    assert_type(stage.pluck(0), StreamStage[Any])
    assert_type(stage.key_by(len), StreamStage[Entry[int, str]])
    assert_type(stage.map_concurrent(4, len), StreamStage[int])
    assert_type(stage.gather(map_concurrent(2, len)), StreamStage[int])
    assert_type(stage.peek(to_string=lambda word: word[:3]), StreamStage[str])
    assert_type(stage.rebalance(), StreamStage[str])
    assert_type(stage.custom_transform("upper", processors.map(str.upper)), StreamStage[Any])
    assert_type(stage.map(int).ignore(ValueError), StreamStage[int])
    assert_type(stage.ignore(ValueError), StreamStage[str])
    assert_type(stage.resolve(ValueError, lambda item, error: ""), StreamStage[str])
    assert_type(stage.on_error(ValueError, into=to_ilist("bad")), StreamStage[str])
    assert_type(stage.apply(lambda words: words.map(len)), StreamStage[int])


def emitted(stage: StreamStage[str], emit: Callable[[str, Callable[[int], None]], None]) -> None:
    """What a function emits is known of a function with annotations."""
    assert_type(stage.map_multi(emit), StreamStage[int])


def entries(pairs: StreamStage[tuple[int, str]]) -> None:
    """Keys and values know their types."""
    assert_type(pairs.keys(), StreamStage[int])
    assert_type(pairs.values(), StreamStage[str])
    assert_type(pairs.swap(), StreamStage[Entry[str, int]])
    assert_type(pairs.map_values(len), StreamStage[Entry[int, int]])
    assert_type(pairs.filter_values(lambda word: word > "a"), StreamStage[Entry[int, str]])
    assert_type(pairs.flat_map_values(str.split), StreamStage[Entry[int, str]])


def using(stage: StreamStage[str], service: Service[dict[str, int]]) -> None:
    """A function is given what the service made."""
    assert_type(stage.map_using(service, lambda known, word: known.get(word)), StreamStage[int | None])
    assert_type(stage.filter_using(service, lambda known, word: word in known), StreamStage[str])
    assert_type(stage.flat_map_using(service, lambda known, word: list(known)), StreamStage[str])
    assert_type(stage.map_using(imap_service("names"), lambda view, word: len(view)), StreamStage[int])
    assert_type(stage.map_using_imap("names", str.lower, lambda word, value: word), StreamStage[str])


def timed(stage: StreamStage[str]) -> None:
    """Timestamps change no item."""
    assert_type(stage.add_timestamps(lambda word: len(word), allowed_lag=timedelta(seconds=2)), StreamStage[str])
    assert_type(stage.add_timestamps(datetime.fromisoformat, policy=limiting_lag(5)), StreamStage[str])
    assert_type(stage.native_timestamps(allowed_lag=5), StreamStage[str])
    assert_type(stage.ingestion_timestamps(), StreamStage[str])


Both = AggregateOperation[tuple[str, int], Any, tuple[int, str]]


def in_windows(stage: StreamStage[str], windowed: WindowedStage[str], others: StreamStage[int], both: Both) -> None:
    """A window gives what its operation makes, or what the user makes of that."""
    assert_type(stage.window(tumbling(10), late_to=to_ilist("late")), WindowedStage[str])
    assert_type(windowed.stage, StreamStage[str])
    assert_type(windowed.definition, Window)
    assert_type(windowed.pipeline, Pipeline)
    assert_type(windowed.grouping_key(len), KeyedWindowedStage[int, str])
    assert_type(windowed.aggregate(counting()), StreamStage[WindowResult[int]])
    assert_type(windowed.aggregate(joining(), lambda start, end, text: text * end), StreamStage[str])
    assert_type(windowed.co_aggregate(others, op=both), StreamStage[WindowResult[tuple[int, str]]])
    assert_type(windowed.co_aggregate(others, op=both, to=lambda start, end, found: found[0]), StreamStage[int])


def by_key(keyed: KeyedStreamStage[int, str], others: KeyedStreamStage[int, int]) -> None:
    """What happens to each key knows the key."""
    assert_type(keyed.pipeline, Pipeline)
    assert_type(keyed.key("sea"), int)
    assert_type(keyed.window(sliding(10, by=5)), KeyedWindowedStage[int, str])
    assert_type(keyed.rolling_aggregate(counting()), StreamStage[Entry[int, int]])
    assert_type(keyed.distinct(within=1000), StreamStage[str])
    assert_type(keyed.custom_transform("same", processors.noop()), StreamStage[Any])
    assert_type(keyed.map_stateful(list[str], lambda seen, key, word: len(seen) + key), StreamStage[int])
    assert_type(keyed.filter_stateful(list[str], lambda seen, key, word: word in seen, ttl=5), StreamStage[str])
    assert_type(keyed.flat_map_stateful(list[str], lambda seen, key, word: [word], ttl=5), StreamStage[str])
    assert_type(
        keyed.map_stateful(list[str], lambda seen, key, word: key, ttl=5, on_evict=lambda seen, key, watermark: key),
        StreamStage[int],
    )


def by_key_in_windows(windowed: KeyedWindowedStage[int, str], others: KeyedStreamStage[int, int], both: Both) -> None:
    """A result has its key."""
    assert_type((windowed.pipeline, windowed.definition), tuple[Pipeline, Window])
    assert_type(windowed.key("sea"), int)
    assert_type(windowed.aggregate(counting()), StreamStage[KeyedWindowResult[int, int]])
    assert_type(windowed.aggregate(counting(), lambda start, end, key, found: key + found), StreamStage[int])
    assert_type(windowed.co_aggregate(others, op=both), StreamStage[KeyedWindowResult[int, tuple[int, str]]])


def with_states(stage: StreamStage[str]) -> None:
    """A state is what `create` makes."""
    assert_type(stage.rolling_aggregate(counting()), StreamStage[int])
    assert_type(stage.map_stateful(list[str], lambda seen, word: len(seen)), StreamStage[int])
    assert_type(stage.filter_stateful(list[str], lambda seen, word: word in seen), StreamStage[str])
    assert_type(stage.flat_map_stateful(list[str], lambda seen, word: seen), StreamStage[str])
    assert_type(stage.grouping_key(len), KeyedStreamStage[int, str])


def with_others(stage: StreamStage[str], other: StreamStage[str], batch: BatchStage[str], n: StreamStage[int]) -> None:
    """Sides that end go beside, or are merged."""
    assert_type(stage.merge(other, batch), StreamStage[str])
    assert_type(stage.union(other), StreamStage[str])
    assert_type(stage.join_within(n, on=(len, abs), before=5, after=timedelta(seconds=1)), StreamStage[tuple[str, int]])
    assert_type(stage.hash_join(batch, on=(len, len)), StreamStage[tuple[str, str | None]])
    assert_type(stage.hash_join(batch, on=(len, len), to=lambda word, match: len(word)), StreamStage[int])
    assert_type(stage.inner_hash_join(batch, on=(len, len)), StreamStage[tuple[str, str]])
    assert_type(stage.hash_join_all([(batch, (len, len))]), StreamStage[tuple[Any, ...]])
    assert_type(stage.hash_join_all([(batch, (len, len))], to=lambda word, match: 1), StreamStage[int])


def by_clause(stage: StreamStage[str], batch: BatchStage[str], clause: JoinClause[int, str, str, int]) -> None:
    """A clause says what is handed on."""
    assert_type(stage.hash_join(batch, clause), StreamStage[tuple[str, int | None]])


def of_windows() -> None:
    """Definitions are values of their own."""
    windows: list[Window] = [tumbling(10), sliding(10, by=5), session(timedelta(minutes=1)).early_results(every=5)]
    assert_type(windows, list[Window])
