"""A machine without Java: by default everything runs there that does not ask for Spark itself."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap

import pytest

from tests.system.conftest import LONGEST, environment

NO_JAVA = {"PATH": "", "JAVA_HOME": None, "DSTREAM_CONFIG": ""}
TEXT = "The whale and the sea.\nThe sea and the ship.\n"

STREAMS = """
    import json, operator, re, sys
    from pathlib import Path

    import dstream as ds
    from collectors import counting, grouping_by
    from reducers import to_files, to_imap
    from sources import text_files

    Path("sea.txt").write_text(sys.argv[1])
    said = {}
    with ds.connect() as ctx:
        words = ctx.read(text_files("sea.txt")).flat_map(lambda line: re.findall(r"\\w+", line.lower()))
        counts = words.collect(to_imap("counts", lambda word: word, lambda word: 1, operator.add))
        said["file"] = counts["the"], counts.stream().map(lambda entry: entry.value).sorted().to_list()
        said["many"] = ctx.stream(range(100_000)).map_to_int(lambda n: n % 7).sum()
        said["unknown"] = ctx.stream(iter(range(100_000))).filter(lambda n: n % 2).count()
        said["groups"] = ctx.stream(range(50_000)).collect(grouping_by(lambda n: n % 3, counting()))
        words.collect(to_files("out"))
        said["written"] = ctx.read(text_files("out")).count()
        try:
            ctx.stream([1]).map(str).to_df()
        except ds.errors.SetupError as error:
            said["frame"] = str(error)
        print(ctx)
    print(json.dumps(said))
"""

JOBS = """
    import json, time
    from pathlib import Path

    import dstream as ds
    from reducers import to_ilist
    from sources import stream_of, watch_files

    Path("in").mkdir()
    bounded, unbounded = ds.Pipeline(), ds.Pipeline()
    bounded.read_from(stream_of("abc")).map(str.upper).write_to(to_ilist("letters"))
    unbounded.read_from(watch_files("in", "*.txt")).write_to(to_ilist("lines"))
    with ds.connect() as ctx:
        ctx.new_job(bounded).join()
        job = ctx.new_job(unbounded)
        Path("in/.a").write_text("a\\nb\\n")
        Path("in/.a").rename("in/a.txt")
        while len(ctx.get_list("lines")) < 2:
            time.sleep(0.05)
        job.cancel()
        print(json.dumps([list(ctx.get_list("letters")), list(ctx.get_list("lines"))]))
"""


def run(folder, *command):
    """Run Python in a folder of a machine without Java; return what it wrote."""
    ended = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment(**NO_JAVA),
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture
def program(tmp_path):
    """Run a text as a program; return the lines that it printed."""

    def run_text(text, *arguments):
        (tmp_path / "program.py").write_text(textwrap.dedent(text))
        return run(tmp_path, "program.py", *arguments).splitlines()

    return run_text


def test_streams_and_collections_need_no_java(program):
    """Files, many items, those of unknown number, groups, maps, files that are written; a DataFrame is Spark's."""
    shown, said = program(STREAMS, TEXT)

    said = json.loads(said)
    assert re.match(r"<dstream context on auto \(small plans in this process, others on Spark\)", shown)
    assert re.match(r"the plan of \.to_df\(\) needs Spark: .* Java 17", said.pop("frame"))
    assert said == {
        "file": [4, [1, 1, 2, 2, 4]],
        "many": sum(n % 7 for n in range(100_000)),
        "unknown": 50_000,
        "groups": {"0": 16667, "1": 16667, "2": 16666},
        "written": 10,
    }


def test_jobs_need_no_java(program):
    """One that ends, and one that does not."""
    assert json.loads(program(JOBS)[-1]) == [["A", "B", "C"], ["a", "b"]]


def test_the_command_needs_no_java(tmp_path):
    """It counts words, runs a script and reports that Spark is not there, without an error."""
    (tmp_path / "sea.txt").write_text(TEXT)
    (tmp_path / "shout.py").write_text("print(ctx.engine, ctx.stream(['a']).map(str.upper).to_list())")

    assert run(tmp_path, "-m", "dstream", "wordcount", "sea.txt", "--top", "1").split() == ["4", "the"]
    assert run(tmp_path, "-m", "dstream", "run", "shout.py") == "auto ['A']\n"
    assert "not checked  Java" in run(tmp_path, "-m", "dstream", "doctor")
