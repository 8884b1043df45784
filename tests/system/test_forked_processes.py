"""Processes that are forked while Spark runs here."""

from __future__ import annotations

import subprocess
import sys

import pytest

ENDING = """
import os, sys
import dstream as ds
from dstream import IntStream

with ds.connect("local[1]") as ctx:
    kept = IntStream.range(0, 10).map_to_obj(str).cache()
    assert kept.count() == 10
    shuffles = "spark.sql.shuffle.partitions"
    before = ctx.spark.conf.get(shuffles)
    loop = IntStream.range(0, 20).map_to_obj(str).sorted().parallel(4).configure({shuffles: "7"})
    for number, _ in enumerate(loop):
        if number == 3:
            child = os.fork()
            if child == 0:
                del kept
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
            assert ctx.spark.conf.get(shuffles) == before
    print(number, kept.count(), IntStream.range(0, 20).map_to_obj(str).count())
"""

WORKING = """
import contextlib, io, multiprocessing
import dstream as ds
from dstream import IntStream
from dstream.errors import EngineError

def counted(n):
    return IntStream.range(0, n).map_to_obj(str).count()

def attempt(what):
    try:
        return what()
    except EngineError as error:
        return f"{error}; {ds.failure(error).advice}"

def in_child(n):
    numbers = IntStream.range(0, n).map_to_obj(str)
    refused = {attempt(lambda: counted(n)), attempt(lambda: list(loop)), attempt(lambda: list(unread))}
    drawn = io.StringIO()
    with contextlib.redirect_stdout(drawn):
        numbers.explain()
    context.close()
    refused.add(attempt(lambda: ds.connect("local[1]").stream(range(n)).map(str).count()))
    with ds.connect(engine="local") as local:
        return refused, local.stream(range(n)).map(str).count(), "map_to_obj(str)" in drawn.getvalue()

if __name__ == "__main__":
    context = ds.connect("local[1]")
    loop = iter(IntStream.range(0, 400).map_to_obj(str).sorted().parallel(4))
    next(loop)
    unread = iter(IntStream.range(0, 9).map_to_obj(str))
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        answers = pool.map_async(in_child, [1, 2, 3, 4], chunksize=1)
        assert [counted(n) for n in range(5, 15)] == list(range(5, 15))
        refusals, counts, drawn = zip(*answers.get(timeout=60))
    assert sum(1 for _ in loop) == 399
    context.close()
    print(*set.union(*refusals), counts, drawn, sep=chr(10))
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], str, int]:
    """The lines that a program wrote, one of them in its first part; its other stream, and its exit code."""
    file = tmp_path_factory.mktemp("forking") / "forking.py"
    file.write_text(ENDING + WORKING)
    # Since 3.12 Python warns of every fork beside threads, which PySpark has.
    command = [sys.executable, "-W", "ignore:This process:DeprecationWarning", str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    return ran.stdout.splitlines(), ran.stderr, ran.returncode


def test_a_forked_process_ends_without_touching_spark(ran: tuple[list[str], str, int]) -> None:
    """It leaves the context and a loop, and ends, as any other; what its parent reads and keeps is as before."""
    assert (ran[0][:1], *ran[1:]) == (["19 10 20"], "", 0)


def test_a_forked_process_does_not_take_the_answers_of_its_parent(ran: tuple[list[str], str, int]) -> None:
    """What it asks of Spark is refused before Spark is asked; here, and on the local engine, work goes on."""
    _, refusal, *others = ran[0]

    assert refusal.startswith("Spark cannot run the job: this process was forked from the one that Spark works for")
    assert "connect(engine='local')" in refusal
    assert others == ["(1, 2, 3, 4)", "(True, True, True, True)"]
