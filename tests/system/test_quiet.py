"""Nothing of Spark's reaches a user who did not ask: what programs and the prompt show, letter by letter."""

from __future__ import annotations

import subprocess
import sys

from tests.servers.java_of_programs import JavaOfPrograms
from tests.system.conftest import LONGEST, Script, environment

JOBS = """
    import warnings
    import dstream as ds

    def doubled(n):
        return 2 * n

    ctx = ds.connect("local[2]")
    print(ctx.stream(range(4), 2).map(doubled).to_list())
    print(sorted(ctx.stream("abca", 2).distinct().to_list()), ctx.stream([3, 1, 2], 2).sorted().limit(2).to_list())
    numbers = ctx.get_list("numbers")
    numbers.extend([1, 2])
    print(ctx.stream([], 2).count(), numbers.to_df().count())
"""
SAID = "[0, 2, 4, 6]\n['a', 'b', 'c'] [1, 2]\n0 2\n"


def test_a_script_on_spark_says_what_it_says(script: Script, tmp_path) -> None:
    """From start to end, with jobs that shuffle, sort and read a collection, and a context that nobody closes."""
    ended = script(JOBS, env=environment(DSTREAM_STORAGE=str(tmp_path)))

    assert (ended.stdout, ended.stderr, ended.returncode) == (SAID, "", 0)


def test_a_line_of_python_says_what_it_says(java: JavaOfPrograms, tmp_path) -> None:
    """`python -c` too, where a warning would be an error; Java's own words are those of the test above."""
    code = "import dstream as ds; print(ds.Stream.of(1, 2).map(lambda n: n + 1).to_list())"
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env=environment(DSTREAM_MASTER="local[1]", **java()),
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )

    assert (ended.stdout, ended.stderr, ended.returncode) == ("[2, 3]\n", "", 0)


def test_a_setting_brings_messages_back(script: Script) -> None:
    """`log_level="INFO"` shows what Spark does, on stderr; its variable too, as those of all settings do."""
    ended = script('import dstream as ds\nprint(ds.connect("local[1]", log_level="info").stream([1]).to_list())')

    assert ended.stdout == "[1]\n"
    assert " INFO DAGScheduler: " in ended.stderr
