"""The progress line as a user sees it: real scripts, with and without a terminal, and a notebook."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from tests.system.conftest import LONGEST, environment

SLOW = """
    import sys, time
    import dstream as ds

    def slow(n):
        time.sleep(0.15)
        return n

    with ds.connect("local[2]", config={"spark.driver.memory": "512m"}) as ctx:
        slowly = ctx.stream(range(40), 20).map(slow)
        print("counted", slowly.count())
        for item in slowly.limit(5).sorted():
            print("item", item)
        print("and out")
"""

IN_A_PIPE = """
    import sys, time
    import dstream as ds

    def slow(n):
        time.sleep(0.2)
        return n

    for asked in (None, True):
        print("asked" if asked else "", end="\\n" if asked else "", file=sys.stderr, flush=True)
        with ds.connect("local[2]", progress=asked, config={"spark.driver.memory": "512m"}) as ctx:
            print(ctx.stream(range(20), 10).map(slow).count())
"""

INTERRUPTED = """
    import time
    import dstream as ds

    with ds.connect("local[2]", config={"spark.driver.memory": "512m"}) as ctx:
        try:
            ctx.stream(range(400), 20).map(lambda n: time.sleep(0.2)).count()
        except KeyboardInterrupt:
            print("interrupted")
"""

GUEST = """
    import json
    from pyspark.sql import SparkSession

    theirs = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    jobs = theirs.sparkContext
    import dstream as ds

    NAMES = ("spark.job.description", "spark.jobGroup.id", "spark.job.tags", "spark.job.interruptOnCancel")
    with ds.connect(progress=True) as ctx:
        before = [jobs.getLocalProperty(name) for name in NAMES]
        ctx.stream(range(9), 3).sorted().to_list()
        next(iter(ctx.stream(range(9), 3).distinct()))
        after = [jobs.getLocalProperty(name) for name in NAMES]
    theirs.range(3).count()
    newest = jobs._jsc.sc().statusStore().jobsList(None).apply(0)
    print(json.dumps([before, after, newest.description().isEmpty(), newest.jobGroup().isEmpty()]))
    theirs.stop()
"""

LINE = re.compile(r"(\d+)/(\d+) tasks")


def run_on_terminal(path: Path, variables: dict[str, str], interrupt_at: bytes | None = None) -> tuple[str, int]:
    """Run a script under a pseudo-terminal to its end; interrupt it when a text was seen."""
    ours, its = pty.openpty()
    env = environment(TERM="xterm", **variables)
    process = subprocess.Popen([sys.executable, str(path)], stdout=its, stderr=its, env=env)
    os.close(its)
    watchdog = threading.Timer(LONGEST, process.kill)
    watchdog.start()
    seen = b""
    while data := _read(ours):
        seen += data
        if interrupt_at is not None and interrupt_at in seen:
            process.send_signal(signal.SIGINT)
            interrupt_at = None
    watchdog.cancel()
    os.close(ours)
    return seen.replace(b"\r\r\n", b"\r\n").decode(), process.wait(LONGEST)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says so when the script has ended.
        return b""


@pytest.fixture
def on_terminal(tmp_path, java):
    """Run a text as a script under a pseudo-terminal."""

    def run(text, **how):
        path = tmp_path / "orders.py"
        path.write_text(textwrap.dedent(text))
        return run_on_terminal(path, java(), **how)

    return run


def test_a_terminal_shows_how_far_a_job_is(on_terminal):
    """The user's call and line, tasks that grow, and at the end nothing but what the script printed."""
    seen, status = on_terminal(SLOW)
    lines = re.findall("\x1b7\r\n(.*?)\x1b\\[K\x1b8", seen)
    done = [int(found[1]) for line in lines if (found := LINE.search(line))]

    assert status == 0
    assert any(re.match(r"count\(.*\) orders\.py:11  ", line) for line in lines)
    assert len({count for count in done if count}) > 2
    assert any(re.search(r"  \d+ items  \d:\d\d$", line) for line in lines)
    assert _left_on_screen(seen) == ["counted 40", *[f"item {n}" for n in range(5)], "and out"]


def _left_on_screen(seen):
    """Return what a terminal shows at the end; every line that was drawn must have been erased."""
    drawn = re.sub("\x1bD\x1b\\[A\x1b7\r\n.*?\x1b\\[K\x1b8", "<line>", seen)
    erased = re.sub("(<line>)+\x1b\\[J", "", drawn)
    return erased.split("\r\n")[:-1]


def test_a_terminal_is_clean_after_an_interrupt(on_terminal):
    """Ctrl-C while the line is there."""
    seen, status = on_terminal(INTERRUPTED, interrupt_at=b"tasks")

    assert status == 0
    assert _left_on_screen(seen)[-1].endswith("interrupted")
    assert "<line>" not in "".join(_left_on_screen(seen))


def test_a_pipe_shows_nothing(script, java):
    """Unless it was asked for: then whole lines without codes."""
    ended = script(IN_A_PIPE, env=environment(**java()))
    quiet, told = ended.stderr.split("asked\n")

    assert (ended.returncode, ended.stdout, quiet) == (0, "20\n20\n", "")
    assert re.search(r"^count\(.*\) script\.py:12  .*\d:\d\d$", told, re.MULTILINE)
    assert "\x1b" not in told


def test_a_session_of_the_user_keeps_no_trace(script, java):
    """Neither words nor groups nor tags on their own jobs."""
    before, after, no_words, no_group = json.loads(script(GUEST, env=environment(**java())).stdout)

    assert before == after
    assert (no_words, no_group) == (True, True)


def test_a_notebook_shows_one_line_and_takes_it_away(tmp_path):
    """In the cell that runs, by a display that changes in place."""
    import nbformat
    from nbclient import NotebookClient

    cells = [
        "import time, dstream as ds\nctx = ds.connect(engine='local')",
        "ctx.stream(range(12)).map(lambda n: time.sleep(0.2)).count()",
        "ctx.stream([1]).count()",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    seen = []
    client = NotebookClient(notebook, timeout=LONGEST, kernel_name="python3")
    process = client.process_message
    client.process_message = lambda message, *rest: (seen.append(message), process(message, *rest))[1]
    client.execute(env=environment())

    shown = [m["content"]["data"]["text/plain"] for m in seen if m["msg_type"].endswith("display_data")]
    assert [line for line in shown if re.match(r"count\(.*\) cell 2, line 1  \d+ items  \d:\d\d", line)]
    assert shown[-1] == ""
    assert [output.data["text/plain"] for output in notebook.cells[1].outputs] == ["", "12"]
    assert [output.data["text/plain"] for output in notebook.cells[2].outputs] == ["1"]
