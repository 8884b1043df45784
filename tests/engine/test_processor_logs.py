"""What processors log is heard where the caller hears it, also in workers."""

from __future__ import annotations

import logging
import pickle
from uuid import uuid4

import pytest

from dstream.base.logging import log_line
from dstream.core import DAG, AbstractProcessor, Edge, processors
from dstream.plan.processor_graph import GraphVertex, VertexGraph
from dstream.plan.steps import Step
from dstream.processors.graph_execution import ProcessorLogs
from dstream.processors.graph_operator import GraphOperator
from dstream.spi.suppliers import meta_supplier
from reducers import to_ilist
from sources import items

PROCESSORS = logging.getLogger("dstream.core")


def cut_off(monkeypatch):
    """Be as a worker is, without a handler. A test calls it, since pytest adds its own behind fixtures."""
    monkeypatch.setattr(PROCESSORS, "propagate", False)
    monkeypatch.setattr(PROCESSORS, "handlers", [])
    monkeypatch.setattr(PROCESSORS, "level", logging.NOTSET)


@pytest.fixture(autouse=True)
def _levels():
    """Loggers remember which levels are heard; no test leaves that behind."""
    yield
    PROCESSORS.manager._clear_cache()


def elsewhere(level, has_handlers=True):
    """Return what came from a caller with this level, which is another process."""
    return pickle.loads(pickle.dumps(ProcessorLogs(level, has_handlers, process=-1)))


def test_a_worker_writes_what_the_caller_hears_to_its_stderr(monkeypatch, capsys):
    """Once, however many tasks it runs; and no more than that."""
    cut_off(monkeypatch)
    for _ in range(3):
        elsewhere(logging.INFO).begin()
    PROCESSORS.getChild("words.0").info("Input from ordinal 0: to")
    PROCESSORS.getChild("words.0").debug("more")
    assert capsys.readouterr().err == "INFO dstream.core.words.0: Input from ordinal 0: to\n"
    elsewhere(logging.WARNING).begin()
    PROCESSORS.getChild("words.0").info("Input from ordinal 0: be")

    assert capsys.readouterr().err == ""


def test_a_worker_prints_what_was_asked_for_where_the_caller_has_no_logging(monkeypatch, capsys):
    """Also behind a job whose caller had set it up; what else processors log is not heard there either."""
    cut_off(monkeypatch)
    elsewhere(logging.INFO).begin()
    elsewhere(logging.WARNING, has_handlers=False).begin()
    log_line(PROCESSORS.getChild("words.0"), "Input from ordinal 0: to")
    PROCESSORS.getChild("words.0").info("more")

    assert capsys.readouterr().err == "dstream.core.words.0: Input from ordinal 0: to\n"


def test_a_worker_is_quiet_where_the_caller_hears_of_warnings_alone(monkeypatch, capsys):
    """Nothing that was asked for is printed past the logging of the user."""
    cut_off(monkeypatch)
    elsewhere(logging.WARNING).begin()
    log_line(PROCESSORS.getChild("words.0"), "Input from ordinal 0: to")

    assert capsys.readouterr().err == ""


def test_a_handler_of_the_users_is_enough(monkeypatch):
    """As where a function on the worker has set logging up: no line is written twice."""
    cut_off(monkeypatch)
    PROCESSORS.addHandler(theirs := logging.NullHandler())
    elsewhere(logging.INFO).begin()

    assert (PROCESSORS.handlers, PROCESSORS.level) == ([theirs], logging.INFO)


def test_nothing_changes_in_the_process_of_the_caller(monkeypatch):
    """Its handlers and levels are the user's."""
    cut_off(monkeypatch)
    PROCESSORS.setLevel(logging.INFO)
    logs = ProcessorLogs()
    PROCESSORS.setLevel(logging.ERROR)
    logs.begin()

    assert (logs.level, PROCESSORS.level, PROCESSORS.handlers) == (logging.INFO, logging.ERROR, [])


class Heard(AbstractProcessor):
    """Emits whether anybody would hear what it logs."""

    def try_process(self, ordinal, item):
        """Emit that."""
        return self.try_emit((item, self.logger.isEnabledFor(logging.INFO), self.logger.hasHandlers()))


@pytest.mark.parametrize(("level", "is_heard"), [(logging.INFO, True), (logging.WARNING, False)])
def test_processors_are_heard_on_both_engines(engine, caplog, level, is_heard):
    """As the level of their logger was when the job was submitted."""
    caplog.set_level(level, "dstream.core")
    dag, name = DAG(), f"heard-{level}-{uuid4().hex}"
    numbers = dag.new_vertex("numbers", processors.read(items(1, 2)))
    heard, sink = dag.new_vertex("heard", Heard), dag.new_vertex("sink", processors.write(to_ilist(name)))
    engine.context.new_job(dag.edge(Edge.between(numbers, heard)).edge(Edge.between(heard, sink))).join()

    assert sorted(engine.context.get_list(name)) == [(1, is_heard, True), (2, is_heard, True)]


def test_processors_of_epochs_are_heard_in_a_worker(monkeypatch, capsys):
    """Before the first of them is made, so also what it says in init()."""
    cut_off(monkeypatch)
    graph = VertexGraph((GraphVertex("heard", meta_supplier(Heard), 1, Step("heard", None, 1, 1)),), ())
    operator = GraphOperator(graph, 1, (), logs=elsewhere(logging.INFO))
    operator.new()
    PROCESSORS.getChild("heard.0").info("here")

    assert capsys.readouterr().err == "INFO dstream.core.heard.0: here\n"
