"""Vertices at the ends of graphs: of sources and sinks, of buffers and of the log."""

from __future__ import annotations

import logging

import pytest

import dstream as ds
from collectors import counting
from dstream.core import DAG, Edge, Watermark, processors, whole_item
from dstream.errors import UnsupportedError
from dstream.processors.blocks import GraphArrival
from dstream.testing.protocol import RUNS, ProcessorRun
from reducers import to_ilist, to_imap
from sources import text_files
from tests.core.processors.four_runs import emitted_in_four_runs
from tests.processors.graphs_by_hand import edge, run_of, vertex


def word_count(path):
    """Return the graph of the documentation."""
    dag = DAG()
    lines = dag.new_vertex("lines", processors.read(text_files(path)))
    words = dag.new_vertex("words", processors.flat_map(str.split))
    local = dag.new_vertex("local", processors.accumulate_by_key([whole_item], counting()))
    total = dag.new_vertex("total", processors.combine_by_key(counting()))
    sink = dag.new_vertex("sink", processors.write(to_imap("counts")))
    dag.edge(Edge.between(lines, words))
    dag.edge(Edge.between(words, local).partitioned(whole_item))
    dag.edge(Edge.between(local, total).distributed().partitioned(lambda entry: entry.key))
    return dag.edge(Edge.between(total, sink))


def test_a_job_counts_words(tmp_path):
    """From a source to a sink."""
    (tmp_path / "a.txt").write_text("a b\nb c b\n")
    with ds.connect(engine="local", storage="memory:") as ctx:
        ctx.new_job(word_count(str(tmp_path / "*.txt"))).join()

        assert dict(ctx.get_map("counts").items()) == {"a": 1, "b": 3, "c": 1}


def test_read_and_write_show_their_calls():
    """In pictures and messages."""
    assert repr(processors.read(text_files("x"))) == "read(...)"
    assert repr(processors.write(to_ilist("x"))) == "write(to_ilist('x'))"


def test_what_is_neither_source_nor_sink_is_refused():
    """When the vertex is made."""
    with pytest.raises(TypeError, match="must be a source"):
        processors.read([1, 2])
    with pytest.raises(TypeError, match="must be a sink"):
        processors.write([])


def test_a_source_inside_of_a_pipeline_is_refused():
    """It makes no processors."""
    with pytest.raises(UnsupportedError, match="makes no processors of its own"):
        run_of([vertex("v", processors.read(text_files("x")))], [edge("v", "out")])


def test_a_buffer_is_flushed_behind_each_block_and_destroyed():
    """Jet: WriteBufferedPTest.when_writeBuffered_then_bufferFlushed."""
    log = []
    end = processors.write_buffered(
        lambda context: log.append(f"new {context.vertex}"),
        lambda buffer, item: log.append(f"add {item}"),
        lambda buffer: log.append("flush"),
        lambda buffer: log.append("destroy"),
    )
    run_of([vertex("end", end)], [edge("in", "end")], [GraphArrival(0, 0, None, [1, 2])])

    assert log == ["new end", "add 1", "add 2", "flush", "destroy"]


def test_a_buffer_is_destroyed_after_a_failure():
    """Once."""
    log = []
    end = processors.write_buffered(lambda context: 0, lambda buffer, item: 1 // item, len, log.append)
    one = ProcessorRun(end, RUNS[0])
    with pytest.raises(ZeroDivisionError) as caught:
        one.process(0, 0)
    one.processor.close(caught.value)
    one.processor.close(caught.value)

    assert log == [0]


def test_a_buffer_waits_in_a_thread_of_its_own():
    """Jet: it is not cooperative; it emits nothing, and a watermark goes by."""
    end = processors.write_buffered(lambda context: [], list.append, len)

    assert emitted_in_four_runs(end, [1, Watermark(2)]) == [Watermark(2)]
    assert not ProcessorRun(end, RUNS[0]).processor.is_cooperative


def test_the_log_has_items_and_watermarks(caplog):
    """Jet: WriteLoggerPTest."""
    caplog.set_level(logging.INFO, "dstream.core")
    run_of(
        [vertex("end", processors.write_logger(hex))],
        [edge("in", "end")],
        [GraphArrival(0, 0, None, [15, Watermark(7)])],
    )

    assert [(each.name, each.getMessage()) for each in caplog.records] == [
        ("dstream.core.end.0", "0xf"),
        ("dstream.core.end.0", "Watermark(timestamp=7)"),
    ]


def yielding(*given):
    """Yield what came, to nobody."""
    yield given


@pytest.mark.parametrize("name", ["receive", "flush", "destroy"])
def test_a_buffer_takes_no_function_that_yields(name):
    """Nothing would run its lines, and all items would be lost."""
    given = dict.fromkeys(("create", "receive", "flush", "destroy"), print) | {name: yielding}
    with pytest.raises(TypeError, match=f"{name} must give a result, and a function that yields gives a generator"):
        processors.write_buffered(**given)


@pytest.mark.parametrize("make", [processors.write_logger, lambda fn: processors.peek_input(processors.noop(), fn)])
def test_a_text_comes_from_no_function_that_yields(make):
    """The log would have generators."""
    with pytest.raises(TypeError, match="to_string must give a result, and a function that yields gives a generator"):
        make(yielding)
