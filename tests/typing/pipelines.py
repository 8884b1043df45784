"""The types that flow through pipelines, from the user's side; two type checkers read this file, nothing runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_type

import dstream as ds
from collectors import all_of, co_operation, counting, joining, summing_int, to_bags, to_list
from dstream import Entry, JoinClause, Pipeline, Service, imap_service
from dstream.core import AbstractProcessor, processors
from dstream.explain.drawing import Drawing
from dstream.gatherers import window_fixed
from dstream.pipeline import BatchStage, KeyedStage, PipelinePlan, SinkStage, StreamStage
from dstream.values.time import KeyedWindowResult
from dstream.windows import tumbling
from reducers import to_ilist, to_imap, to_processor
from sources import Items, from_processor, stream_from_processor, text_files


@dataclass
class Order:
    customer: int
    amount: int
    country: str


@dataclass
class Customer:
    id: int
    name: str


def whole(pipeline: Pipeline, texts: BatchStage[str]) -> None:
    """A pipeline gives stages of what its sources hold, and says what it is."""
    assert_type(pipeline.read_from(Items([1, 2])), BatchStage[int])
    assert_type(pipeline.read_from(text_files("*.txt"), name="lines"), BatchStage[str])
    assert_type(pipeline.read_from(from_processor("numbers", AbstractProcessor)), BatchStage[Any])
    assert_type(pipeline.read_from(stream_from_processor("ticks", AbstractProcessor)), StreamStage[Any])
    assert_type(pipeline.read_from(Items([1])).write_to(to_processor("printer", AbstractProcessor)), SinkStage)
    assert_type(pipeline.write_to(to_ilist("x"), texts, texts), SinkStage)
    assert_type(pipeline.is_empty(), bool)
    assert_type(pipeline.explain(), None)
    assert_type(pipeline.explain("svg"), Drawing)
    assert_type(pipeline.draw(), None)
    assert_type(pipeline.draw("svg"), Drawing)
    assert_type(pipeline.plan(), PipelinePlan)
    assert_type(ds.Pipeline(), Pipeline)


def named(stage: BatchStage[str], sink: SinkStage, keyed: KeyedStage[int, str]) -> None:
    """A stage that is named stays what it is."""
    assert_type(stage.set_name("words"), BatchStage[str])
    assert_type(stage.set_local_parallelism(4), BatchStage[str])
    assert_type((stage.name, sink.name), tuple[str, str])
    assert_type((stage.pipeline, sink.pipeline, keyed.pipeline), tuple[Pipeline, Pipeline, Pipeline])
    assert_type(sink.set_name("end"), SinkStage)
    assert_type(sink.set_local_parallelism(1), SinkStage)
    assert_type(stage.write_to(to_ilist("words")), SinkStage)


def one_by_one(stage: BatchStage[str], lists: BatchStage[list[int]], pairs: BatchStage[tuple[int, str]]) -> None:
    """Lambdas know their item; what they give is the item of the next stage."""
    assert_type(stage.map(lambda word: len(word)), BatchStage[int])
    assert_type(stage.map(len).map(lambda n: n / 2), BatchStage[float])
    assert_type(stage.map_to_obj(str.upper), BatchStage[str])
    assert_type(stage.map_to_int(len), BatchStage[int])
    assert_type(stage.map_to_long(len), BatchStage[int])
    assert_type(stage.map_to_double(len), BatchStage[float])
    assert_type(stage.filter(lambda word: word.isupper()), BatchStage[str])
    assert_type(stage.flat_map(lambda word: word.split()), BatchStage[str])
    assert_type(stage.flat_map_to_int(lambda word: [len(word)]), BatchStage[int])
    assert_type(stage.flat_map_to_long(lambda word: [len(word)]), BatchStage[int])
    assert_type(stage.flat_map_to_double(lambda word: [1.5]), BatchStage[float])
    assert_type(stage.map_multi_to_int(lambda word, emit: emit(1)), BatchStage[int])
    assert_type(stage.map_multi_to_long(lambda word, emit: emit(1)), BatchStage[int])
    assert_type(stage.map_multi_to_double(lambda word, emit: emit(1.5)), BatchStage[float])
    assert_type(lists.flatten(), BatchStage[int])
    assert_type(pairs.starmap(lambda number, word: word * number), BatchStage[str])
    assert_type(stage.pluck(0), BatchStage[Any])
    assert_type(stage.key_by(len), BatchStage[Entry[int, str]])
    assert_type(pairs.keys(), BatchStage[int])
    assert_type(pairs.values(), BatchStage[str])
    assert_type(pairs.swap(), BatchStage[Entry[str, int]])
    assert_type(pairs.map_values(len), BatchStage[Entry[int, int]])
    assert_type(pairs.filter_values(lambda word: word > "a"), BatchStage[Entry[int, str]])
    assert_type(pairs.flat_map_values(str.split), BatchStage[Entry[int, str]])
    assert_type(pairs.reduce_by_key(lambda left, right: left + right), BatchStage[Entry[int, str]])
    ones = pairs.map(lambda pair: (pair[1], 1))
    assert_type(ones.reduce_by_key(lambda left, right: left + right), BatchStage[Entry[str, int]])
    assert_type(pairs.aggregate_by_key(to_list()), BatchStage[Entry[int, list[str]]])
    windows = pairs.aggregate_by_window(
        tumbling(10), summing_int(lambda pair: pair[0]), timestamp=lambda pair: pair[0], key=lambda pair: pair[1]
    )
    assert_type(windows, BatchStage[KeyedWindowResult[str, int]])
    assert_type(pairs.group_by_key(), BatchStage[Entry[int, list[str]]])
    assert_type(pairs.count_by_key(), BatchStage[Entry[int, int]])
    assert_type(pairs.top_by_key(2, key=len), BatchStage[Entry[int, list[str]]])
    assert_type(stage.map_concurrent(4, len), BatchStage[int])
    assert_type(stage.map(int).ignore(ValueError).resolve(ValueError, lambda item, error: 0), BatchStage[int])
    assert_type(stage.ignore(ValueError), BatchStage[str])
    assert_type(stage.resolve(ValueError, lambda item, error: ""), BatchStage[str])
    assert_type(stage.on_error(ValueError, into=to_ilist("bad")), BatchStage[str])
    assert_type(stage.peek(print), BatchStage[str])
    assert_type(stage.peek(to_string=lambda word: word[:3], should_log=lambda word: word != ""), BatchStage[str])


def emitted(stage: BatchStage[str], emit: Callable[[str, Callable[[int], None]], None]) -> None:
    """What a function emits is known of a function with annotations."""
    assert_type(stage.map_multi(emit), BatchStage[int])


def several(stage: BatchStage[str], other: BatchStage[str]) -> None:
    """What keeps items keeps their type."""
    assert_type(stage.distinct(len).sorted(key=len, reverse=True).top(3, key=len), BatchStage[str])
    assert_type(stage.sorted(), BatchStage[str])
    assert_type(stage.top(3), BatchStage[str])
    assert_type(stage.limit(3), BatchStage[str])
    assert_type(stage.skip(3), BatchStage[str])
    assert_type(stage.take_while(bool), BatchStage[str])
    assert_type(stage.drop_while(bool), BatchStage[str])
    assert_type(stage.sample(0.5, seed=1), BatchStage[str])
    assert_type(stage.shuffle(seed=1).sample(n=3), BatchStage[str])
    assert_type(stage.shuffle(), BatchStage[str])
    assert_type(stage.unordered(), BatchStage[str])
    assert_type(stage.partition_by(4, key=len), BatchStage[str])
    assert_type(stage.rebalance(len).rebalance(), BatchStage[str])
    assert_type(stage.rebalance(), BatchStage[str])
    assert_type(stage.custom_transform("upper", processors.map(str.upper)), BatchStage[Any])
    assert_type(stage.cache(), BatchStage[str])
    assert_type(stage.merge(other), BatchStage[str])
    assert_type(stage.union(other, other), BatchStage[str])
    assert_type(stage + other, BatchStage[str])
    assert_type(stage.gather(window_fixed(3)), BatchStage[tuple[str, ...]])
    assert_type(stage.chunked(3), BatchStage[tuple[str, ...]])
    assert_type(stage.zip_with_index(), BatchStage[tuple[str, int]])
    assert_type(stage.enumerate(1), BatchStage[tuple[int, str]])
    assert_type(stage.pairwise(), BatchStage[tuple[str, str]])
    assert_type(stage.apply(lambda words: words.map(len)), BatchStage[int])
    assert_type(stage.apply(lambda words: words.grouping_key(len)), KeyedStage[int, str])


def joins(stage: BatchStage[Order], customers: BatchStage[Customer], ages: BatchStage[Entry[int, float]]) -> None:
    """The parts of pairs are what the stages give; those that may be missing are optional."""
    assert_type(
        stage.join(customers, on=(lambda o: o.customer, lambda c: c.id)),
        BatchStage[Entry[int, tuple[Order, Customer]]],
    )
    assert_type(
        stage.join(customers, on=(lambda o: o.customer, lambda c: c.id), how="left"),
        BatchStage[Entry[int, tuple[Order, Customer | None]]],
    )
    assert_type(ages.join(ages), BatchStage[Entry[int, tuple[float, float]]])
    assert_type(
        stage.cogroup(customers, on=(lambda o: o.customer, lambda c: c.id)),
        BatchStage[Entry[int, tuple[list[Order], list[Customer]]]],
    )
    assert_type(ages.cogroup(ages), BatchStage[Entry[int, tuple[list[float], list[float]]]])


def matched(stage: BatchStage[str], others: BatchStage[int], pairs: BatchStage[tuple[int, str]]) -> None:
    """By place, by membership, by what is nearest."""
    assert_type(stage.zip(others, strict=True), BatchStage[tuple[str, int]])
    assert_type(stage.zip_longest(others), BatchStage[tuple[str | None, int | None]])
    assert_type(stage.interleave(others), BatchStage[str | int])
    assert_type(stage.cross(others), BatchStage[tuple[str, int]])
    assert_type(stage.intersection(stage), BatchStage[str])
    assert_type(stage.subtract(stage), BatchStage[str])
    assert_type(pairs.semi_join(pairs), BatchStage[tuple[int, str]])
    assert_type(stage.anti_join(others, on=(len, abs)), BatchStage[str])
    assert_type(stage.asof_join(others, on=(len, abs)), BatchStage[tuple[str, int | None]])


def hash_joins(stage: BatchStage[Order], customers: BatchStage[Customer], ages: BatchStage[Entry[int, float]]) -> None:
    """`to` is given the item and its match, which may be None unless the join is an inner one."""
    assert_type(
        stage.hash_join(customers, on=(lambda o: o.customer, lambda c: c.id)),
        BatchStage[tuple[Order, Customer | None]],
    )
    assert_type(
        stage.hash_join(
            customers, on=(lambda o: o.customer, lambda c: c.id), to=lambda o, c: (o.amount, c.name if c else None)
        ),
        BatchStage[tuple[int, str | None]],
    )
    assert_type(
        stage.inner_hash_join(customers, on=(lambda o: o.customer, lambda c: c.id), to=lambda o, c: c.name),
        BatchStage[str],
    )
    assert_type(
        stage.inner_hash_join(customers, on=(lambda o: o.customer, lambda c: c.id)),
        BatchStage[tuple[Order, Customer]],
    )
    assert_type(
        stage.hash_join_all(
            [(customers, (lambda o: o.customer, lambda c: c.id)), (ages, JoinClause.join_map_entries(customer_of))],
            to=lambda o, c, age: str(age),
        ),
        BatchStage[str],
    )


def entries(stage: BatchStage[Order], ages: BatchStage[Entry[int, float]], pairs: BatchStage[tuple[int, str]]) -> None:
    """A join with the entries of a map knows the order from the stage, and the value from the entries."""
    on = JoinClause.join_map_entries(customer_of)
    assert_type(stage.hash_join(ages, on=on), BatchStage[tuple[Order, float | None]])
    assert_type(
        stage.hash_join(
            pairs, on=JoinClause.join_map_entries(lambda order: order.customer), to=lambda order, name: (order, name)
        ),
        BatchStage[tuple[Order, str | None]],
    )
    assert_type(
        stage.inner_hash_join(
            ages, on=JoinClause.join_map_entries(lambda order: order.customer), to=lambda order, age: order.amount + age
        ),
        BatchStage[float],
    )


def customer_of(order: Order) -> int:
    """Give the customer of an order."""
    return order.customer


def id_of(customer: Customer) -> int:
    """Give the number of a customer."""
    return customer.id


def name_of(customer: Customer) -> str:
    """Give the name of a customer."""
    return customer.name


def clauses(
    stage: BatchStage[Order], customers: BatchStage[Customer], clause: JoinClause[int, Order, Customer, str]
) -> None:
    """A clause knows what it is for, and what it hands on."""
    on = JoinClause.on_keys(customer_of, id_of)
    assert_type(on, JoinClause[int, Order, Customer, Customer])
    assert_type(on.projecting(name_of), JoinClause[int, Order, Customer, str])
    assert_type(stage.hash_join(customers, on=on), BatchStage[tuple[Order, Customer | None]])
    assert_type(stage.hash_join(customers, on=clause), BatchStage[tuple[Order, str | None]])
    assert_type(stage.inner_hash_join(customers, on=clause, to=lambda o, name: name.upper()), BatchStage[str])
    assert_type(clause.left_key, Callable[[Order], int])
    assert_type(clause.right_key, Callable[[Customer], int])
    assert_type(clause.projection, Callable[[Customer], str] | None)
    assert_type(clause.on_keys(customer_of, id_of), JoinClause[int, Order, Customer, Customer])
    assert_type(clause.join_map_entries(customer_of).left_key, Callable[[Order], int])
    assert_type(clause.projecting(name_of), JoinClause[int, Order, Customer, str])


def aggregates(stage: BatchStage[Order], others: BatchStage[Customer], words: BatchStage[str]) -> None:
    """The result of an operation is the item of the next stage."""
    assert_type(stage.aggregate(counting()), BatchStage[int])
    assert_type(stage.aggregate(summing_int(lambda order: order.amount)), BatchStage[int])
    assert_type(stage.aggregate(all_of(counting(), to_list())), BatchStage[tuple[int, list[Order]]])
    assert_type(words.aggregate(joining(", ")), BatchStage[str])
    assert_type(words.rolling_aggregate(counting()), BatchStage[int])
    assert_type(
        stage.co_aggregate(others, op=co_operation(counting(), summing_int(lambda c: c.id))),
        BatchStage[tuple[int, int]],
    )
    assert_type(stage.co_aggregate(others, words, op=to_bags(3)), BatchStage[tuple[list[Any], ...]])


def by_key(keyed: KeyedStage[str, Order], customers: KeyedStage[str, Customer], words: KeyedStage[str, str]) -> None:
    """Results come with their keys, or as `to` makes them."""
    assert_type(keyed.key, Callable[[Order], str])
    assert_type(keyed.aggregate(counting()), BatchStage[Entry[str, int]])
    assert_type(keyed.aggregate(counting(), to=lambda key, count: (count, key)), BatchStage[tuple[int, str]])
    assert_type(keyed.aggregate(summing_int(lambda order: order.amount)), BatchStage[Entry[str, int]])
    assert_type(keyed.top(3, key=lambda order: order.amount), BatchStage[Entry[str, list[Order]]])
    assert_type(keyed.distinct(), BatchStage[Order])
    assert_type(keyed.custom_transform("same", processors.noop()), BatchStage[Any])
    assert_type(keyed.rolling_aggregate(to_list()), BatchStage[Entry[str, list[Order]]])
    assert_type(
        keyed.co_aggregate(customers, op=co_operation(counting(), summing_int(lambda c: c.id))),
        BatchStage[Entry[str, tuple[int, int]]],
    )
    assert_type(
        keyed.co_aggregate(customers, words, op=co_operation(counting(), counting(), counting())),
        BatchStage[Entry[str, tuple[int, int, int]]],
    )
    assert_type(
        keyed.co_aggregate(
            customers,
            words,
            words,
            op=co_operation(counting(), counting(), counting(), joining()),
            to=lambda key, counts: key + counts[3],
        ),
        BatchStage[str],
    )


def keys_of(stage: BatchStage[Order]) -> None:
    """The key of a lambda is known."""
    assert_type(stage.grouping_key(lambda order: order.country), KeyedStage[str, Order])
    counts = stage.grouping_key(lambda order: order.country).aggregate(counting())
    assert_type(counts, BatchStage[Entry[str, int]])
    assert_type(counts.write_to(to_imap("counts")), SinkStage)


def stateful(stage: BatchStage[str], keyed: KeyedStage[int, str]) -> None:
    """The state is what `create` makes."""
    assert_type(stage.map_stateful(list[str], lambda seen, word: len(seen)), BatchStage[int])
    assert_type(stage.filter_stateful(set[str], lambda seen, word: word in seen), BatchStage[str])
    assert_type(stage.flat_map_stateful(list[str], lambda seen, word: seen), BatchStage[str])
    assert_type(keyed.map_stateful(list[str], lambda seen, key, word: (key, len(seen))), BatchStage[tuple[int, int]])
    assert_type(keyed.filter_stateful(set[str], lambda seen, key, word: word in seen), BatchStage[str])
    assert_type(keyed.flat_map_stateful(list[int], lambda seen, key, word: [key]), BatchStage[int])


def using(stage: BatchStage[str], service: Service[dict[str, int]]) -> None:
    """A function is given what the service made."""
    assert_type(stage.map_using(service, lambda known, word: known.get(word)), BatchStage[int | None])
    assert_type(stage.filter_using(service, lambda known, word: word in known), BatchStage[str])
    assert_type(stage.flat_map_using(service, lambda known, word: list(known)), BatchStage[str])
    assert_type(stage.map_using(imap_service("names"), lambda view, word: len(view)), BatchStage[int])
    assert_type(stage.map_using_imap("names", str.lower, lambda word, value: word), BatchStage[str])
    assert_type(Service(list[int]), Service[list[int]])
    assert_type(service.create, Callable[[], dict[str, int]])
    assert_type(service.destroy, Callable[[dict[str, int]], object] | None)
    assert_type(service.shared, bool)


def with_time(stage: BatchStage[str]) -> None:
    """A stage that ends may be run as one that does not; without timestamps it has no windows."""
    assert_type(stage.add_timestamps(len, allowed_lag=5), StreamStage[str])
    assert_type(stage.to_stream_stage(timestamp=lambda word: len(word)), StreamStage[str])
