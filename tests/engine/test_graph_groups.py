"""Graphs whose last vertex gives results by key to a map: what moves, what is counted, and that nothing differs."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import Any
from uuid import uuid4

import pytest

from collectors import counting, summing_int, to_list, to_set
from dstream.core import DAG, AbstractProcessor, Edge, entry_key, processors, whole_item
from dstream.core.processors.groups import GroupingProcessor
from dstream.engine.spark.run.backend import SparkBackend
from dstream.explain.drawing import drawn
from dstream.plan.stages import Stages, exactly
from dstream.session.connection import stages_on
from dstream.spi import Collector
from dstream.values import Entry
from reducers import to_ilist, to_imap
from sources import Items

KEYS = [0, 1, 2.0, 3.5, True, False, -0.0, float("nan"), "1", "a", "", (1, "a"), (1.0, "a"), (True, "b"), b"1", 2**70]
Last = Callable[[Edge], Edge]


def mixed(size: int, seed: int) -> list[Any]:
    """Return keys of all kinds, some of them equal to others of another kind."""
    chance = Random(seed)
    return [chance.choice(KEYS) for _ in range(size)]


def counts_of(items: Iterable[Any]) -> dict[Any, int]:
    """Return how often each item comes, as a dictionary counts, with all NaN as one."""
    return dict(Counter("NaN" if item != item else item for item in items))


def named_nan(found: dict[Any, Any]) -> dict[Any, Any]:
    """Return the same, with a name for the NaN."""
    return {"NaN" if key != key else key: value for key, value in found.items()}


def in_one_stage(
    items: Any,
    name: str,
    way: Last = lambda edge: edge.partitioned(whole_item),
    last: Any = None,
    sink: Any = None,
    parallelism: int = -1,
) -> DAG:
    """Return a graph that counts items, with one vertex before the one that counts."""
    dag = DAG()
    read = dag.new_vertex("read", processors.read(items))
    same = dag.new_vertex("same", processors.map(whole_item))
    counted = last or processors.aggregate_by_key([whole_item], counting())
    counts = dag.new_vertex("counts", counted).local_parallelism(parallelism)
    written = dag.new_vertex("written", processors.write(sink or to_imap(name)))
    dag.edge(Edge.between(read, same)).edge(way(Edge.between(same, counts)))
    return dag.edge(Edge.between(counts, written))


def in_two_stages(
    items: Any, name: str, way: Last = lambda edge: edge, parallelism: int = -1, operation: Any = None
) -> DAG:
    """Return a graph that counts items in two stages."""
    operation = counting() if operation is None else operation
    dag = DAG()
    read = dag.new_vertex("read", processors.read(items))
    same = dag.new_vertex("same", processors.map(whole_item))
    local = dag.new_vertex("local", processors.accumulate_by_key([whole_item], operation))
    total = dag.new_vertex("total", processors.combine_by_key(operation)).local_parallelism(parallelism)
    written = dag.new_vertex("written", processors.write(to_imap(name)))
    dag.edge(Edge.between(read, same)).edge(way(Edge.between(same, local)))
    dag.edge(Edge.between(local, total).distributed().partitioned(entry_key))
    return dag.edge(Edge.between(total, written))


@pytest.mark.parametrize("parallelism", [1, 2, 5])
@pytest.mark.parametrize("made", [in_one_stage, in_two_stages])
def test_counts_by_keys_of_all_kinds_are_those_of_plain_python(engine, made, parallelism):
    """Equal keys of other types are one key, wherever they come from."""
    items, name = mixed(3000, parallelism), f"counted-{uuid4().hex}"

    engine.context.new_job(made(Items(items, 3), name, parallelism=parallelism)).join()

    assert named_nan(engine.context.get_map(name).copy()) == counts_of(items)


def test_lists_have_all_items_of_their_keys(engine):
    """In containers that are changed in place, read by a vertex without one before it; keys None go to no map."""
    items, name = mixed(500, 7), f"listed-{uuid4().hex}"
    dag = DAG()
    read = dag.new_vertex("read", processors.read(Items(list(enumerate(items)), 4)))
    lists = dag.new_vertex("lists", processors.aggregate_by_key([SECOND], to_list()))
    written = dag.new_vertex("written", processors.write(to_imap(name)))
    dag.edge(Edge.between(read, lists).partitioned(SECOND)).edge(Edge.between(lists, written))

    engine.context.new_job(dag).join()

    found = named_nan(engine.context.get_map(name).copy())
    assert {key: len(pairs) for key, pairs in found.items()} == counts_of(items)
    assert sorted(place for pairs in found.values() for place, _ in pairs) == list(range(500))


SECOND = operator.itemgetter(1)


def by_chance(seed: int, name: str) -> tuple[DAG, dict[Any, Any]]:
    """Return a graph whose last vertices group by key, made by chance, and what it writes."""
    chance, dag, operation = Random(seed), DAG(), [counting(), summing_int(hash), to_set()][seed % 3]
    items = [chance.randrange(40) for _ in range(chance.choice([0, 1, 300, 3000]))]
    end = dag.new_vertex("read", processors.read(Items(items, chance.randint(1, 5))))
    key = chance.choice([whole_item, operator.neg, abs])

    def then(name: str, supplier: Any, way: Last = lambda edge: edge) -> None:
        nonlocal end
        before, end = end, dag.new_vertex(name, supplier)
        end.local_parallelism(chance.choice([-1, 1, 2, 3, 5]))
        dag.edge(way(Edge.between(before, end)))

    for number in range(chance.randint(0, 2)):
        then(f"same {number}", chance.choice([processors.map(whole_item), Passing]), chance.choice(WAYS))
    partitioner = chance.choice([None, None, by_its_digit])
    if chance.random() < 0.5:
        then("local", processors.accumulate_by_key([key], operation), chance.choice(WAYS))
        then("total", processors.combine_by_key(operation), lambda edge: edge.partitioned(entry_key, partitioner))
    else:
        grouping = processors.aggregate_by_key([key], operation)
        then("total", grouping, lambda edge: edge.partitioned(key, partitioner))
    end = end.local_parallelism(chance.choice([1, 2, 4]))
    written = dag.new_vertex("written", processors.write(to_imap(name)))
    groups: dict[Any, list[Any]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return dag.edge(Edge.between(end, written)), {key: operation.collect(some) for key, some in groups.items()}


WAYS: list[Last] = [lambda edge: edge, Edge.isolated, lambda edge: edge.partitioned(whole_item), Edge.all_to_one]


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_graphs_by_chance_write_what_plain_python_gives(local_context, first):
    """For ten graphs each."""
    for seed in range(first, first + 10):
        dag, expected = by_chance(seed, name := f"chance-{uuid4().hex}")
        local_context.new_job(dag).join()

        assert local_context.get_map(name).copy() == expected, f"seed {seed}"


@pytest.mark.parametrize("seed", range(100, 108))
def test_graphs_by_chance_write_the_same_on_spark(spark_context, seed):
    """Whether the results move again or not."""
    dag, expected = by_chance(seed, name := f"chance-{uuid4().hex}")
    spark_context.new_job(dag).join()

    assert spark_context.get_map(name).copy() == expected


def text_of(stages: Stages) -> str:
    """Return what a reader sees, in one line."""
    return " ".join(str(drawn(stages, "text")).split())


def stages_of(dag: DAG) -> Stages:
    """Return what is said of a graph on two cores."""
    return stages_on(2, dag.plan().several([None]), None)


MOVED_ONCE = "what the tasks have of a key meets in the task that writes its bucket"


@pytest.mark.parametrize(
    "made",
    [
        lambda items: in_one_stage(items, "never"),
        lambda items: in_two_stages(items, "never"),
        lambda items: in_two_stages(items, "never", lambda edge: edge.partitioned(whole_item)),
    ],
    ids=["one", "two", "two-partitioned"],
)
def test_containers_move_once(made):
    """To the task that writes their bucket; where the key of the edge is that of the vertex, and of the map."""
    stages = stages_of(made(Items(range(99), 4)))

    assert stages.shuffles == exactly(1)
    assert MOVED_ONCE in text_of(stages)


class Passing(AbstractProcessor):
    """Emits what comes."""

    def try_process(self, ordinal: int, item: Any) -> bool:
        return self.try_emit(item)


def test_what_a_vertex_behind_the_groups_emits_moves_again():
    """Nobody knows its keys."""
    dag = in_one_stage(Items(range(99), 4), "never")
    passing = DAG()
    for each in dag:
        passing.vertex(each)
    behind = passing.new_vertex("behind", Passing)
    for each in (*dag.outbound_edges("read"), *dag.outbound_edges("same")):
        passing.edge(each)
    passing.edge(Edge.between(dag.get_vertex("counts"), behind))
    passing.edge(Edge.between(behind, dag.get_vertex("written")))

    assert stages_of(passing).shuffles == exactly(2)


@pytest.mark.parametrize(
    "given",
    [
        {"way": lambda edge: edge.partitioned(str)},
        {"way": lambda edge: edge.partitioned(whole_item, lambda key, count: hash(key) % count)},
        {"last": processors.aggregate_by_key([whole_item], counting(), lambda key, count: Entry(key % 2, count))},
        {"last": processors.peek_output(processors.aggregate_by_key([whole_item], counting()))},
        {"sink": to_imap("never", entry_key, SECOND)},
    ],
    ids=["key", "partitioner", "to", "peeked", "key of the map"],
)
def test_other_results_move_again(given):
    """Where a key of the map may come from more than one processor, or the user looks at what processors emit."""
    stages = stages_of(in_one_stage(Items(range(99), 4), "never", **given))

    assert stages.shuffles == exactly(2)
    assert MOVED_ONCE not in text_of(stages)


def test_results_of_two_sinks_move_again():
    """Others read them, too."""
    dag = in_one_stage(Items(range(99), 4), "never")
    other = dag.new_vertex("other", processors.write(to_ilist("never-a-list")))
    dag.edge(Edge.from_(dag.get_vertex("counts"), 1).to(other))

    assert MOVED_ONCE not in text_of(stages_on(2, dag.plan().several([None, None]), None))


def test_a_custom_partitioner_gives_what_it_gave(engine):
    """Also one that brings equal keys of other types to several processors: the last result of a key stays."""
    name = f"partitioned-{uuid4().hex}"
    way = {"way": lambda edge: edge.partitioned(whole_item, by_its_digit)}

    engine.context.new_job(in_one_stage(Items(list(range(50)) * 2, 3), name, **way, parallelism=3)).join()

    assert engine.context.get_map(name).copy() == dict.fromkeys(range(50), 2)


def by_its_digit(key: int, count: int) -> int:
    """Return the number of a processor."""
    return key % 10 % count


def test_a_broadcast_counts_what_it_did(engine):
    """Each processor that accumulates has all items, and the last ones add them up."""
    name = f"broadcast-{uuid4().hex}"
    dag = in_two_stages(Items(range(20), 3), name, Edge.broadcast, parallelism=2)
    dag.get_vertex("local").local_parallelism(2)

    engine.context.new_job(dag).join()

    assert engine.context.get_map(name).copy() == dict.fromkeys(range(20), 2)


@pytest.mark.parametrize("made", [in_one_stage, in_two_stages])
def test_a_job_shuffles_once(spark_context, monkeypatch, made):
    """As it was said."""
    shuffled = []
    moving = SparkBackend.shuffled
    monkeypatch.setattr(SparkBackend, "shuffled", lambda *given: shuffled.append(given) or moving(*given))

    spark_context.new_job(made(Items(range(99), 4), f"moved-{uuid4().hex}")).join()

    assert len(shuffled) == 1


@pytest.mark.parametrize("made", [in_one_stage, in_two_stages])
def test_the_local_engine_makes_no_processors_for_the_last_groups(local_context, monkeypatch, made):
    """It reduces in one loop; what users wrote beside them runs in the executor."""
    monkeypatch.setattr(GroupingProcessor, "__init__", _refused)
    name = f"looped-{uuid4().hex}"

    local_context.new_job(made(Items(range(9), 4), name)).join()

    assert local_context.get_map(name).copy() == dict.fromkeys(range(9), 1)


def _refused(*given: Any, **named: Any) -> None:
    raise AssertionError("nobody makes such a processor")


def test_the_edges_of_both_vertices_are_counted(engine):
    """Whoever does their work."""
    name = f"counted-edges-{uuid4().hex}"
    job = engine.context.new_job(in_two_stages(Items([n % 7 for n in range(300)], 3), name, parallelism=2))
    job.join()

    stages = job.metrics().stages
    sent = stages["local"].items_out
    assert (stages["same"].items_out, stages["local"].items_in) == (300, 300)
    assert 7 <= sent <= 21
    assert (stages["total"].items_in, stages["total"].items_out, stages["written"].items_out) == (sent, 7, 7)


def failing_on(what: str) -> Collector[Any, Any, Any]:
    """Return what adds numbers, and fails in one of its functions."""
    functions = {"accumulate": lambda total, n: total + 1 // (n - 3), "finish": lambda total: 1 // (total - total)}
    failing = functions[what]
    add = failing if what == "accumulate" else operator.add
    return Collector(int, add, operator.add, failing if what == "finish" else abs)


@pytest.mark.parametrize(
    ("what", "vertex", "where"), [("accumulate", "local", "on the item 3"), ("finish", "total", "key")]
)
def test_a_failure_names_the_vertex_that_the_user_wrote(engine, what, vertex, where):
    """And the item, or the key."""
    dag = in_two_stages(Items(range(1, 9), 2), f"never-{uuid4().hex}", operation=failing_on(what))

    with pytest.raises(ZeroDivisionError) as caught:
        engine.context.new_job(dag).join()

    notes = " ".join(caught.value.__notes__)
    assert f"vertex '{vertex}' at tests/engine/test_graph_groups.py" in notes
    assert where in notes


@pytest.mark.parametrize("bad", [5, (1, 2, 3)])
def test_what_is_no_entry_is_refused(engine, bad):
    """Of a vertex that combines containers; one of another length as well."""
    dag = DAG()
    read = dag.new_vertex("read", processors.read(Items([Entry(1, 2), bad], 2)))
    total = dag.new_vertex("total", processors.combine_by_key(counting()))
    written = dag.new_vertex("written", processors.write(to_imap(f"never-{uuid4().hex}")))
    dag.edge(Edge.between(read, total).partitioned(entry_key)).edge(Edge.between(total, written))

    with pytest.raises(TypeError, match="must be entries") as caught:
        engine.context.new_job(dag).join()

    assert "vertex 'total'" in " ".join(caught.value.__notes__)


def test_a_source_that_gives_none_is_refused(engine):
    """By the vertex that gets it."""
    dag = DAG()
    read = dag.new_vertex("read", processors.read(Items([1, None, 2], 2)))
    counts = dag.new_vertex("counts", processors.aggregate_by_key([whole_item], counting()))
    written = dag.new_vertex("written", processors.write(to_imap(f"never-{uuid4().hex}")))
    dag.edge(Edge.between(read, counts).partitioned(whole_item)).edge(Edge.between(counts, written))

    with pytest.raises(TypeError, match="None came to the vertex 'counts'"):
        engine.context.new_job(dag).join()


def test_vertices_beside_the_groups_run_all_the_same(engine):
    """What does not lead to the sink reads what it reads."""
    name = f"beside-{uuid4().hex}"
    dag = in_one_stage(Items(range(20), 3), name)
    beside = dag.new_vertex("beside", processors.filter(bool)).local_parallelism(1)
    dag.edge(Edge.from_(dag.get_vertex("same"), 1).to(beside))
    job = engine.context.new_job(dag)
    job.join()

    assert engine.context.get_map(name).copy() == dict.fromkeys(range(20), 1)
    assert job.metrics().stages["beside"].items_in == 20
