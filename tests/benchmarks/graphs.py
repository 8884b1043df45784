"""C1: what graphs of vertices cost beside pipelines that do the same, and how many items the executor moves.

Their storage is a lake in a folder of the local disk. What is written replaces what the run before wrote.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any

import dstream as ds
from collectors import counting, frequencies, mapping
from dstream import Entry, Pipeline
from dstream.core import DAG, AbstractProcessor, Edge, entry_key, processors, whole_item
from reducers import replacing, to_imap, to_nothing
from sources import Range, items, text_files
from tests.benchmarks.corpus import corpus
from tests.benchmarks.harness import Bench, Case, Contestant, Detail
from tests.benchmarks.pipelines import context_of, documents, inverted_index, scores, words
from tests.benchmarks.process_tree import cpu_seconds

__all__ = ["graphs_of_processors"]

_GOAL = 1.3


def graphs_of_processors(bench: Bench) -> list[Case]:
    """Return C1: a word count on both engines, TF-IDF on Spark, and the executor alone."""
    return [
        _word_count(bench, "Spark", bench.size(100, 2), on_spark=True),
        _word_count(bench, "local engine", bench.size(20, 2), on_spark=False),
        _tf_idf(bench),
        _executor(bench),
    ]


def _word_count(bench: Bench, where: str, megabytes: int, *, on_spark: bool) -> Case:
    text = str(corpus(bench.folder, megabytes))
    ctx = context_of(bench, f"core-words-{'spark' if on_spark else 'local'}", on_spark=on_spark)

    def of(name: str, job: Any, goal: float | None = None) -> Contestant:
        return Contestant(name, lambda: ctx.new_job(job).join(), goal, uses_spark=on_spark, check=lambda: _counted(ctx))

    return Case(
        "C1",
        f"word count, {megabytes} MB, {where}",
        of("dstream graph, accumulate and combine", _words_in_two_stages(text)),
        [of("dstream pipeline", _words_of_pipeline(text), _GOAL)],
        [of("dstream graph, aggregate", _words_in_one_stage(text))],
    )


def _counted(ctx: ds.Context) -> list[Any]:
    counts = ctx.get_map("counts").copy()
    return [len(counts), sum(counts.values()), sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:50]]


def _words_of_pipeline(text: str) -> Pipeline:
    made = Pipeline()
    found = made.read_from(text_files(text)).flat_map(str.split).grouping_key(whole_item).aggregate(counting())
    found.write_to(replacing(to_imap("counts")))
    return made


def _words_in_one_stage(text: str) -> DAG:
    dag = DAG()
    lines = dag.new_vertex("lines", processors.read(text_files(text)))
    found = dag.new_vertex("words", processors.flat_map(str.split))
    counts = dag.new_vertex("counts", processors.aggregate_by_key([whole_item], counting()))
    sink = dag.new_vertex("sink", processors.write(replacing(to_imap("counts"))))
    dag.edge(Edge.between(lines, found)).edge(Edge.between(found, counts).partitioned(whole_item))
    return dag.edge(Edge.between(counts, sink))


def _words_in_two_stages(text: str) -> DAG:
    dag = DAG()
    lines = dag.new_vertex("lines", processors.read(text_files(text)))
    found = dag.new_vertex("words", processors.flat_map(str.split))
    local = dag.new_vertex("local", processors.accumulate_by_key([whole_item], counting()))
    total = dag.new_vertex("total", processors.combine_by_key(counting()))
    sink = dag.new_vertex("sink", processors.write(replacing(to_imap("counts"))))
    dag.edge(Edge.between(lines, found)).edge(Edge.between(found, local))
    dag.edge(Edge.between(local, total).partitioned(entry_key))
    return dag.edge(Edge.between(total, sink))


def _tf_idf(bench: Bench) -> Case:
    megabytes = bench.size(100, 2)
    paths = documents(bench.folder, megabytes)
    ctx = context_of(bench, "core-tf-idf", on_spark=True)

    def some() -> list[Any]:
        index = ctx.get_map("index")
        found = sorted(index.keys())
        return [len(found), [(word, index[word]) for word in found[:: max(len(found) // 50, 1)]]]

    return Case(
        "C1",
        f"TF-IDF, {megabytes} MB in {len(paths)} documents",
        Contestant("dstream graph", lambda: ctx.new_job(_index_of_graph(paths)).join(), check=some),
        [Contestant("dstream pipeline", lambda: ctx.new_job(inverted_index(paths)).join(), _GOAL, check=some)],
    )


class _Scores(AbstractProcessor):
    """Scores the documents of each word of edge 0; edge 1 says how many documents there are."""

    def try_process1(self, item: int) -> bool:
        self._total = item
        return True

    def try_process0(self, item: Entry[str, dict[str, int]]) -> bool:
        return self.try_emit(Entry(item.key, scores(self._total, item.value)))


def _index_of_graph(paths: list[str]) -> DAG:
    dag = DAG()
    of_word = mapping(operator.itemgetter(0), frequencies())
    names = dag.new_vertex("names", processors.read(items(*paths)))
    total = dag.new_vertex("total", processors.aggregate(counting())).local_parallelism(1)
    lines = dag.new_vertex("lines", processors.read(text_files(paths, with_path=True)))
    found = dag.new_vertex("words", processors.flat_map(words))
    local = dag.new_vertex("local", processors.accumulate_by_key([operator.itemgetter(1)], of_word))
    holding = dag.new_vertex("holding", processors.combine_by_key(of_word))
    scored = dag.new_vertex("scores", _Scores)
    sink = dag.new_vertex("sink", processors.write(replacing(to_imap("index"))))
    dag.edge(Edge.between(names, total)).edge(Edge.from_(total).to(scored, 1).broadcast().priority(-1))
    dag.edge(Edge.between(lines, found)).edge(Edge.between(found, local))
    dag.edge(Edge.between(local, holding).partitioned(entry_key))
    return dag.edge(Edge.between(holding, scored)).edge(Edge.between(scored, sink))


_MOVED = 1_000_000
"""So many items a second and core three vertices are to move."""


def _executor(bench: Bench) -> Case:
    count = bench.size(3_000_000, 50_000)
    ctx = context_of(bench, "core-moving", on_spark=False)
    graph, pipeline = _moving_graph(count), _moving_pipeline(count)
    return Case(
        "C1",
        f"{count / 1e6:g} M items through three vertices, local engine",
        Contestant(
            "dstream graph: filter, map, filter",
            lambda: ctx.new_job(graph).join(),
            uses_spark=False,
            detail=lambda: _speed(lambda: ctx.new_job(graph).join(), count),
        ),
        [Contestant("dstream pipeline", lambda: ctx.new_job(pipeline).join(), uses_spark=False)],
    )


_STEPS: tuple[Callable[[Any], Any], ...] = (functools.partial(operator.le, 0), operator.neg, bool)


def _moving_graph(count: int) -> DAG:
    dag = DAG()
    stages = [
        dag.new_vertex("numbers", processors.read(Range(1, count + 1))),
        dag.new_vertex("first", processors.filter(_STEPS[0])),
        dag.new_vertex("second", processors.map(_STEPS[1])),
        dag.new_vertex("third", processors.filter(_STEPS[2])),
        dag.new_vertex("sink", processors.write(to_nothing())),
    ]
    for before, behind in itertools.pairwise(stages):
        dag.edge(Edge.between(before, behind))
    return dag


def _moving_pipeline(count: int) -> Pipeline:
    made = Pipeline()
    kept = made.read_from(Range(1, count + 1)).filter(_STEPS[0]).map(_STEPS[1]).filter(_STEPS[2])
    kept.write_to(to_nothing())
    return made


def _speed(run: Callable[[], object], count: int) -> Detail:
    before = cpu_seconds(with_jvm=False)
    run()
    moved = count / (cpu_seconds(with_jvm=False) - before)
    return Detail(f"{moved / 1e6:.2f} M items a CPU second, goal {_MOVED / 1e6:g}", moved >= _MOVED)
