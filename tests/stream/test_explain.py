"""`explain()`, and the picture that a notebook shows: what is said, and that nothing runs for it."""

from __future__ import annotations

import json
import operator
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass

import pytest

import dstream as ds
import reducers
from collectors import counting, grouping_by, summing
from dstream import Pipeline, Stream, where
from dstream.engine.spark.session import launch
from dstream.errors import IllegalStateError, UnsupportedError
from dstream.explain.drawing import Drawing
from dstream.gatherers import fold, scan, window_sliding
from dstream.plan import ForEachPartition
from dstream.session.connection import stages_on
from dstream.session.context import Context
from dstream.spi import Gatherer
from dstream.windows import tumbling
from reducers import sink_from, to_files, to_kafka, to_nothing
from sources import stream_of, text_files


def refuse(*args):
    """Fail, whoever calls it."""
    raise AssertionError("nothing runs when a stream is looked at")


@pytest.fixture
def unstarted():
    """A context whose engine fails to start: what is explained on it needs none."""
    return Context(refuse, "spark", refuse, lambda node, into: stages_on(4, node, into))


@dataclass(frozen=True)
class Untouchable:
    """A source that fails when it is asked for its splits."""

    ordered = True
    bounded = True
    in_caller = False

    def splits(self, parallelism):
        return refuse(parallelism)


def test_explain_prints_the_stages(unstarted, capsys):
    """Each stage with its calls and their lines, each shuffle with its reason, and what the whole costs."""
    answer = unstarted.stream(["b", "a"], 2).map(str.upper).sorted(key=len).map(len).explain()
    lines = capsys.readouterr().out.splitlines()

    assert answer is None
    assert lines[0] == "to_list() on Spark with 4 cores: 2 jobs, 1 shuffle"
    assert "  job 1: .sorted(key=len): sample of keys" in lines
    assert "stage 3: 1 to 2 tasks (one for each 10,000 items), in order, job 2" in lines
    assert "  <- stage 2, shuffle: .sorted(key=len): items are cut into ranges of keys" in lines
    assert any(line.startswith("  .map(str.upper)") and "test_explain.py:" in line for line in lines)


def test_explain_runs_no_function_and_reads_nothing(engine):
    """No step, no key, no source: not even a generator is pulled."""
    stream = engine.context.read(Untouchable()).map(refuse).distinct(key=refuse).sorted(key=refuse).peek(refuse)
    pulled = engine.context.stream(refuse(n) for n in range(3))

    for each in (stream, pulled + stream, stream.limit(3).flat_map(refuse)):
        assert "stage 1" in each.explain("svg")
        assert each._repr_html_().startswith("<div>")


_NOTHING_STARTS = """
import sys, dstream as ds
from dstream import Stream
from reducers import to_imap
with ds.connect("local[3]", storage="nowhere") as ctx:
    stream = ctx.stream(range(100)).map(abs).distinct()
    stream.explain(into=to_imap("m", abs, abs))
    print(repr(ctx))
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("pyspark", "py4j", "rich", "IPython")))
Stream.of(1, 2).sorted().explain()
from dstream.session.contexts import contexts
import os
print(contexts.default(), os.path.exists("nowhere"))
"""


def test_explain_starts_nothing(tmp_path):
    """No JVM, no PySpark, no context, no storage; the cores are those that the master names.

    Three partitions send distinct items forward, in one shuffle, and entries to the buckets of the map in another one.
    """
    done = subprocess.run(
        [sys.executable, "-c", _NOTHING_STARTS], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
    )
    lines = done.stdout.splitlines()

    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0].endswith("on Spark with 3 cores: 1 job, 2 shuffles")
    assert {"<dstream context on spark, master local[3], storage nowhere, open>", "[]", "None False"} <= set(lines)
    assert any(line.startswith("to_list() in this process") for line in lines)


def test_explain_names_the_end(unstarted):
    """A collector or a reducer ends the stream in its own way."""
    words = unstarted.stream(["a", "b", "a"], 3)

    assert "a key meet in one place" in words.explain("dot", into=grouping_by(str, counting()))
    assert "1 job, 0 shuffles" in words.explain("dot", into=counting())
    assert "each key goes to its bucket" in words.explain("dot", into=reducers.to_imap("m", str, len))
    assert "each task writes its items, in place" in words.explain("dot", into=reducers.to_ilist("l"))


def test_explain_says_what_runs_in_the_driver(unstarted, capsys):
    """The function of a `peek` sees the items in this process."""
    unstarted.stream([1, 2], 2).peek(print).explain()

    assert ".peek(print)" in (out := capsys.readouterr().out)
    assert "# runs in this process, after the job, on what passed here" in out


def test_explain_on_one_partition_moves_nothing(unstarted):
    """`sequential()` and a single partition need no shuffle."""
    for stream in (unstarted.stream([3, 1], 2).sorted().sequential(), unstarted.stream([3, 1], 1).sorted().distinct()):
        text = stream.explain("dot")
        assert "1 job, 0 shuffles" in text
        assert "here, where all items stand" in text


def test_explain_says_what_nobody_knows_yet(unstarted, capsys):
    """The number of files is known only when they are looked up: a range, and when it holds."""
    unstarted.read(text_files("/nowhere/*.txt")).distinct().explain()
    out = capsys.readouterr().out

    assert "0 to 2 shuffles" in out
    assert "stage 1: 0 or more tasks (one for each split of the source), in order" in out
    assert "shuffle (if there is more than one partition)" in out
    assert "read(text_files('/nowhere/*.txt'))" in out


def test_explain_without_known_cores_says_what_decides(capsys):
    """A master that has all cores of a machine is not asked how many these are."""
    context = Context(refuse, "spark", refuse, lambda node, into: stages_on(None, node, into))
    context.stream(range(1000)).explain()

    assert "stage 1: 1 to 1,000 tasks (one for each core)" in capsys.readouterr().out


def test_explain_on_the_local_engine_is_one_process(local_context, capsys):
    """All calls are fused, sorting too, and nothing is shuffled."""
    local_context.stream([3, 1]).map(abs).sorted().distinct().limit(1).explain()
    out = capsys.readouterr().out

    assert out.startswith("to_list() on the local engine\n  everything runs in this process, one item at a time\n")
    assert [word in out for word in ("stage 1", "stage 2", "shuffle")] == [True, False, False]


@pytest.mark.parametrize("format", ["dot", "mermaid", "svg", "html"])
def test_explain_returns_a_drawing(engine, capsys, format):
    """Every other format returns a text and prints nothing."""
    drawing = (engine.stream([1]).map(abs) + engine.stream([2])).explain(format)

    assert (type(drawing), drawing.kind, capsys.readouterr().out) == (Drawing, format, "")


def test_explain_refuses_what_it_does_not_know(local_context):
    """A format, or an end, that there is not."""
    stream = local_context.stream([1])

    with pytest.raises(ValueError, match="format must be one of 'text', 'dot', 'mermaid', 'svg', 'html', not 'png'"):
        stream.explain("png")
    with pytest.raises(TypeError, match="into must be a collector or a reducer, not int"):
        stream.explain(into=3)


def test_explain_refuses_what_could_never_run(unstarted):
    """A closed stream, an endless one that is sorted or collected: the same errors as when it runs."""
    endless, closed, orphan = Stream.iterate(1, abs), unstarted.stream([1]), unstarted.stream([2])
    closed.close()

    for stream, into in ((closed, None), (endless.sorted(), None), (endless, counting())):
        with pytest.raises(IllegalStateError):
            stream.explain(into=into)
    unstarted.close()
    with pytest.raises(IllegalStateError, match="this context is closed"):
        orphan.explain()


def test_explain_of_an_endless_stream_is_that_of_a_loop(capsys):
    """Nothing lists it, so a loop over it is explained."""
    Stream.iterate(1, abs).map(str).explain()

    assert "to_list() is refused" in capsys.readouterr().out


@pytest.mark.parametrize("format", ["mermaid", "html"])
def test_explain_of_large_plans_is_bounded(unstarted, format):
    """A thousand steps of one kind or another, and diamonds one after another, are a picture of bounded size."""
    fused = waves = parts = levels = unstarted.stream([1, 2], 2)
    for _ in range(1_250):  # More than Python has frames.
        fused, waves, parts = fused.map(abs), waves.drop_while(bool), parts + unstarted.stream([1])
    for _ in range(1_250):
        levels = levels.map(abs) + levels.filter(bool)

    pictures = [stream.explain(format) for stream in (fused, waves, parts, levels)]
    assert max(map(len, pictures)) < 100_000
    assert all("more stages" in picture for picture in pictures[1:])


def test_explain_of_20000_steps_takes_a_moment(unstarted):
    """Neither recursion nor repeated work: a second or two of this machine."""
    stream = unstarted.stream([1, 2], 2)
    for _ in range(20_000):
        stream = stream.map(abs)
    start = time.process_time()

    assert "19,993 more calls" in stream.explain("svg")
    assert time.process_time() - start < 5


def test_a_stream_shows_its_picture_in_a_notebook(engine):
    """`_repr_html_` is the picture."""
    shown = engine.stream([1]).map(abs)._repr_html_()

    assert "<svg" in shown
    assert ".map(abs)" in shown


def test_a_stream_that_cannot_be_drawn_shows_its_chain(engine):
    """An exception in drawing does not break the display."""
    stream = engine.stream(["<b>"]).map(abs)
    stream.close()
    endless = Stream.iterate(1, abs).sorted()

    assert stream._repr_html_().startswith("<pre>stream(list).map(abs)\n\nIllegalStateError: stream has already been")
    assert endless._repr_html_().startswith("<pre>Stream.iterate(1, abs).sorted()\n\nIllegalStateError: an infinite")


def test_a_node_that_nobody_explains_is_refused(unstarted):
    """Nothing falls through: a node without a handler says so."""
    stream = Stream(ForEachPartition(unstarted.stream([1])._node, print), unstarted)
    with pytest.raises(UnsupportedError, match=r"does not run \.for_each_partition\(print\)"):
        stream.explain()


@pytest.mark.parametrize(
    ("master", "config", "cores"),
    [
        ("local[4]", {}, 4),
        ("local[3,2]", {}, 3),
        ("local", {}, 1),
        ("local[*]", {}, None),
        ("spark://host:7077", {}, None),
        (None, {}, None),
        ("local[4]", {"spark.default.parallelism": "7"}, 7),
    ],
)
def test_the_cores_are_those_that_the_settings_name(monkeypatch, master, config, cores):
    """What the master does not say stays open."""
    monkeypatch.setattr(launch, "_running", None)
    monkeypatch.setattr(launch, "_session_of_the_user", lambda: None)

    assert launch.known_cores(master, config) == cores


def test_the_cores_of_a_running_spark_are_asked(spark_context):
    """A session that runs already knows them, whatever the settings say."""
    spark_context.stream([1], 1).to_list()
    with ds.connect(engine="spark") as beside:
        drawing = beside.stream([1, 2], 2).explain("dot")

    assert "on Spark with 2 cores" in drawing


def test_explain_says_what_decides_how_a_join_runs(unstarted, capsys):
    """The size of a side is known when it runs; what happens to a hot key is said."""
    left, right = unstarted.stream([(1, "a")], 3), unstarted.stream([(1, "b")], 2)
    left.join(right, how="left").explain()
    out = " ".join(capsys.readouterr().out.split())

    assert "2 to 3 jobs, 0 to 1 shuffle" in out
    assert "the right side comes to this process (if it is at most 4 MB)" in out
    assert "shuffle (if no side is at most 4 MB): .join(..., how='left'): equal keys of both sides meet" in out
    assert "a hot key is split then" in out


def test_explain_says_that_a_collector_splits_a_hot_key(unstarted, capsys):
    """What is combined before the shuffle is no burden for one task."""
    unstarted.stream(range(9), 3).explain(into=grouping_by(abs, counting()))

    assert "a hot key is split: each task sends one container for it, not its items" in capsys.readouterr().out


def _routes(stream, capsys, **arguments):
    """Return what stands behind each call of a stream."""
    stream.explain(**arguments)
    lines = capsys.readouterr().out.splitlines()
    return [line.partition("  # ")[2] for line in lines if line.startswith("  .")]


def test_explain_names_the_route_of_each_function(unstarted, capsys):
    """Calls that run none for each item have no route."""
    stream = unstarted.stream(["a"]).map(textwrap.dedent).map(lambda value: value[0]).map(abs).unordered()

    assert _routes(stream, capsys) == ["Python: calls textwrap.dedent", "inlined", "Python: calls abs", ""]


def test_explain_says_why_a_function_has_its_route(unstarted, capsys):
    """With the place, and what to write instead."""
    first = unstarted.stream(["a"]).map(lambda value: (part for part in value))
    stream = first.filter(lambda value: len(value) > 1).map(len)
    line = first._node.step.where.line
    reasons = _routes(stream, capsys, routes=True)

    assert reasons[0].startswith("Python: has a generator expression that no call uses up. The function is called ")
    assert reasons[0].endswith(f"test_explain.py:{line}. Instead: a list comprehension can be read.")
    assert reasons[1].startswith("inlined. Python evaluates it in the loop of the task, since ")
    assert reasons[2].startswith("Python: calls len. len is written in C, and is called for each item, since ")


def _or_zero(value):
    try:
        return int(value)
    except ValueError:
        return 0


def _total(values):
    total = 0
    for each in values:
        if each > 2:
            return each
        total += each
    return total


class _OwnError(Exception):
    pass


def _checked(value):
    if value is None:
        raise _OwnError
    return value


@dataclass
class _Sale:
    price: int

    def doubled(self):
        return self.price * 2


@pytest.mark.parametrize(
    ("fn", "name", "why"),
    [
        (_or_zero, "has a `try`", "The function has a `try`"),
        (_total, "has statements that are no expression", "The function has statements that are no expression"),
        (_checked, "raises an exception of its own", "The function raises an exception of its own"),
        (_Sale.doubled, "calls a method of its items' class", "The function calls a method of its items' class"),
        (_Sale, "calls tests.stream.test_explain._Sale", "tests.stream.test_explain._Sale is a class"),
    ],
)
def test_explain_says_why_a_loop_calls_a_function_that_is_analyzed(unstarted, capsys, fn, name, why):
    """Not each of these is written in C."""
    own = (lambda sale: sale.doubled()) if fn is _Sale.doubled else fn
    stream = unstarted.stream(["a"]).map(lambda value: _Sale(value)).map(own)

    assert _routes(stream, capsys, routes=True)[1] == (
        f"Python: {name}. {why}, and is called for each item, since the items before it come one by one."
    )


def test_explain_says_why_no_source_is_read(unstarted, capsys, tmp_path):
    """In whole sentences: the reason stands behind the function, with the remedy."""
    file, names = tmp_path / "changed.py", {}
    file.write_text("fn = lambda x: x + 1\n")
    exec(compile(file.read_text(), str(file), "exec"), names)
    file.write_text("fn = lambda x: x + 2\n")
    stream = unstarted.stream([1]).map(eval("lambda n: n + 1", {})).map(names["fn"])

    assert _routes(stream, capsys, routes=True) == [
        "Python: has no readable source. The function is called for each item, since it has no readable source at "
        "<string>:1. Instead: write it in a file, or in a cell of a notebook.",
        "Python: has a source that changed after it was loaded. The function is called for each item, since it has a "
        f"source that changed after it was loaded at {file}:1. Instead: load it again.",
    ]


def test_explain_says_what_runs_as_columns(unstarted, capsys):
    """From a source that has columns up to the first step that takes items; a list has them if its steps do enough."""
    numbers = unstarted.stream(range(99_999)).map(lambda n: n * 3).filter(lambda n: n % 2).map(str)
    few, many = unstarted.stream([1] * 9), unstarted.stream([1] * 99_999)
    listed = many.map(lambda n: n * 3)
    worth_it, too_few = (one.map(lambda n: (n * 3 + 1) % 7 - 2 * (n - 1)) for one in (many, few))

    assert _routes(numbers.map(lambda text: text + "1"), capsys) == ["columns"] * 4
    assert _routes(listed, capsys) == ["inlined"]
    assert _routes(worth_it, capsys) == ["columns if all items are int and those of a task take at most 1 MB"]
    assert "a task has fewer than 4,096 items" in _routes(too_few, capsys, routes=True)[0]


def test_explain_names_no_routes_where_functions_are_called(capsys):
    """Nothing is read on the local engine, nor with `columns="off"`."""
    off = Context(refuse, "spark", refuse, lambda node, into: stages_on(4, node, into, columns="off"))
    with ds.connect(engine="local") as local:
        for context in (off, local):
            assert _routes(context.stream(["a"]).map(json.loads).map(lambda n: n + 1), capsys, routes=True) == ["", ""]


def test_explain_names_what_stands_around_a_function(unstarted, capsys):
    """Objects of dstream's own, which call it."""
    numbers = unstarted.stream([1])
    streams = {
        "followed by a call that handles its failures": numbers.map(lambda n: n + 1).ignore(ValueError),
        "calls where('n') > 1": numbers.filter(where("n") > 1),
        "emits its items one by one": numbers.map_multi(lambda n, emit: emit(n)),
        "stands in a call that does more with each item": numbers.key_by(abs).flat_map_values(range),
    }
    for reason, stream in streams.items():
        assert any(reason in route for route in _routes(stream, capsys)), reason


def test_explain_draws_routes_in_all_formats(unstarted):
    """Also in those that a notebook shows."""
    stream = unstarted.stream(["a"]).map(lambda value: value.lower())

    assert all("inlined" in stream.explain(kind) for kind in ("dot", "svg", "html"))
    assert all("in the loop of the task" in stream.explain(kind, routes=True) for kind in ("dot", "html"))


@pytest.mark.parametrize(
    ("gatherer", "named"),
    [
        (fold(lambda: 0, lambda total, n: total + n), "fn"),
        (scan(lambda: 0, operator.add, operator.add), "fn"),
        (fold(lambda: 0, lambda total, n: total + n, operator.add), "fn"),
        (Gatherer.of(integrator=lambda _, n, downstream: downstream.push(n)), "integrator"),
        (Gatherer.of(list, integrator=lambda _, n, down: down.push(n), combiner=operator.add), "integrator"),
        (window_sliding(3), ""),
    ],
)
def test_explain_says_that_gatherers_call_functions(unstarted, gatherer, named):
    """In one partition as in several; those that only cut windows have none."""
    for stream in (unstarted.stream(range(9)), unstarted.stream(range(9)).parallel(1)):
        said = stream.gather(gatherer).explain("dot")
        assert (f"{named}: Python: gather() takes items one by one" in said) == bool(named)


def test_explain_says_that_sinks_call_functions(unstarted, tmp_path):
    """Each function by the name of its argument, also inside of a format; those that take no item are left out."""
    kafka = to_kafka("t", {"bootstrap.servers": "h:1"}, key=str, value=lambda n: f"{n}")
    files = to_files(tmp_path, format="json", partition_by={"half": lambda n: n % 2})
    own = sink_from(list, lambda made, n: made.append(n), flush=lambda made: made.clear(), destroy=lambda made: None)
    numbers = unstarted.stream([1, 2])

    assert "key, value: Python: to_kafka() takes items one by one" in numbers.explain("dot", into=kafka)
    assert "partition_by: Python: to_files() takes items one by one" in numbers.explain("dot", into=files)
    assert "receive: Python: sink_from() takes items one by one" in numbers.explain("dot", into=own)
    assert "Python:" not in numbers.explain("dot", into=to_nothing())


def test_explain_says_that_steps_with_a_state_call_functions():
    """States and joins do; timestamps, and the keys and values of windows, are read as expressions."""
    pipeline = Pipeline()
    events = pipeline.read_from(stream_of([1, 2])).add_timestamps(lambda n: n)
    by_key = events.grouping_key(lambda n: n % 2)
    by_key.window(tumbling(10)).aggregate(summing(lambda n: n * 2)).write_to(to_nothing())
    by_key.map_stateful(list, lambda state, key, n: n, ttl=5, on_evict=lambda *gone: None).write_to(to_nothing())
    events.join_within(events, on=(abs, lambda n: -n), before=1, after=1).write_to(to_nothing())
    stages = stages_on(4, pipeline.plan().several([None] * 3), None).stages
    said = " ".join(call.note for stage in stages for call in stage.calls)

    assert "fn: Python: the items before it come one by one" in said
    assert "aggregate() takes items one by one" not in said
    assert "key, fn, on_evict: Python: map_stateful() takes items one by one" in said
    assert "left_key, right_key: Python: join_within() takes items one by one" in said


def test_a_stream_is_drawn_as_it_was_written(capsys):
    """A chain of calls is a stage, a stream that two read has an arrow to both, and nothing says how it would run."""
    words = Stream.of("sea", "whale").map(str.upper)
    (words.filter(str.isalpha) + words.map(len)).draw()
    printed = capsys.readouterr().out

    assert [line.strip() for line in printed.splitlines() if "<-" in line] == [
        "<- stage 1",
        "<- stage 1",
        "<- stage 2",
        "<- stage 3",
    ]
    assert printed.startswith("Stream\n\nstage 1\n  Stream.of('sea', 'whale')  ")
    assert "task" not in printed
