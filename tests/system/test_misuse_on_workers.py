"""A context in a module that the workers import: no check of captures can see it."""

from __future__ import annotations

import pytest

from tests.system.conftest import environment

JOBS = """
import dstream as ds

ctx = None


def connected(n):
    return ds.connect().engine


def handle(n):
    global ctx
    from dstream.session.context import Context

    ctx = Context(None, "spark", None, None)
    return ctx.get_map("ages")[n]


def stream(n):
    from dstream.session.context import Context

    return Context(None, "spark", None, None).stream([n]).to_list()


def local(n):
    return ds.Stream.of(n, n).to_list()


def streams(n):
    return ds.Stream.of(n, n)


def default(n):
    return ds.default_context().engine
"""
EAGER = """
import dstream as ds

ctx = ds.connect("local[2]", config={"spark.driver.memory": "512m"})


def same(n):
    return n
"""
SCRIPT = """
import os
import dstream as ds
import eager, jobs

numbers = eager.ctx.stream([7], 2)
for fn in (jobs.connected, jobs.handle, jobs.stream, eager.same):
    try:
        numbers.map(fn).to_list()
    except ds.errors.IllegalStateError as error:
        print(fn.__name__, "|", error, "|", error.__notes__[2], "|", len(error.__notes__))
print(numbers.map(jobs.local).to_list(), numbers.flat_map(jobs.streams).to_list(), numbers.map(jobs.default).to_list())
"""


@pytest.fixture(scope="module")
def lines(script, java):
    """Run the script once; return what it printed."""
    done = script(SCRIPT, beside={"jobs.py": JOBS, "eager.py": EAGER}, env=environment(**java()))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(("number", "what"), [(0, "connect()"), (1, "a context"), (2, "a context"), (3, "connect()")])
def test_a_context_on_a_worker_is_refused_in_one_sentence(lines, number, what):
    """Opened or used there, by a function or by the import of its module; with what to do instead, and the notes."""
    _, message, advice, notes = lines[number].split(" | ")

    assert message.startswith(what)
    assert "was called on a Spark worker" in message
    assert "connect and read in the driver only" in message
    assert advice.startswith("What to do: read what the function needs before")
    assert (message.count(". "), notes) == (0, "3")


def test_streams_without_a_context_run_on_the_spot(lines):
    """On the local engine, inside the worker."""
    assert lines[4] == "[[7, 7]] [7, 7] ['local']"
