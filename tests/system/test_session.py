"""The life of a session, each in a process of its own: starting, sharing, refusing, ending without noise."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import uuid
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.servers.java_of_programs import JavaOfPrograms
from tests.system.conftest import Script, environment

LIFE = """
    import json, sys
    import dstream as ds

    SETTINGS = {"spark.driver.memory": "512m"}
    said = {"loaded before a job": "pyspark" in sys.modules}

    def refusal(action):
        try:
            action()
        except Exception as error:
            return [type(error).__name__, str(error)]

    def one_over(n):
        print("on a worker:", n)
        return 1 / n

    first = ds.connect("local[2]", config=SETTINGS)
    second = ds.connect("local[2]")
    said["first"] = first.stream([1, 2], 2).map(one_over).to_list()
    said["shared"] = first.spark.sparkContext is second.spark.sparkContext
    other = ds.connect("local[1]")
    said["other master"] = refusal(lambda: other.stream([1]).to_list())
    other.close()
    first.close()
    first.close()
    said["closed"] = refusal(lambda: first.stream([1]))
    said["second lives"] = second.stream([1, 2], 2).map(abs).count()
    said["failure"] = refusal(lambda: second.stream([4, 0], 2).map(one_over).to_list())
    second.close()

    for again in range(2):
        with ds.connect("local[1]", config=SETTINGS) as ctx:
            said[f"reopened {again}"] = ctx.stream([3, 1, 2], 2).sorted().to_list()

    said["default"] = ds.Stream.of("a", "b").map(str.upper).to_list()
    print(json.dumps(said))
"""

GUEST = """
    import json
    from pyspark.sql import SparkSession

    theirs = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    theirs.conf.set("spark.sql.shuffle.partitions", "7")
    import dstream as ds

    with ds.connect() as ctx:
        said = {"same": ctx.spark.sparkContext is theirs.sparkContext}
        said["distinct"] = ctx.stream(["b", None, "b", 1, 1.0], 3).distinct().to_list()
        try:
            ds.connect("local[2]").stream([1]).to_list()
        except ds.errors.IllegalStateError as error:
            said["other master"] = str(error)
    said["left running"] = theirs.range(3).count()
    said["settings"] = theirs.conf.get("spark.sql.shuffle.partitions")
    theirs.stop()
    print(json.dumps(said))
"""

ONE_JOB = """
    import dstream as ds
    print(ds.connect("local[1]").stream([1, 2]).to_list())
"""


@pytest.fixture(scope="module")
def life(script: Script) -> tuple[dict[str, Any], str, str]:
    """What a script says that opens and closes many contexts and never closes the last; its stderr; its mark."""
    mark = uuid.uuid4().hex
    ended = script(LIFE, env=environment(DSTREAM_TEST_MARK=mark))
    assert ended.stdout.count("\n") == 1, ended.stdout + ended.stderr
    return json.loads(ended.stdout), ended.stderr, mark


def test_the_streams_and_the_output_are_the_scripts_own(life: tuple[dict[str, Any], str, str]) -> None:
    """Spark says nothing while jobs run, fail and end; what functions print on workers arrives on stderr."""
    # Two workers write at the same time, so their lines may stand inside each other: the characters count.
    expected = "".join(f"on a worker: {n}\n" for n in (0, 1, 2, 4))

    assert sorted(life[1]) == sorted(expected)


def test_importing_loads_no_pyspark(life: tuple[dict[str, Any], str, str]) -> None:
    """`import dstream` starts nothing and loads no PySpark."""
    assert life[0]["loaded before a job"] is False


def test_contexts_share_spark(life: tuple[dict[str, Any], str, str]) -> None:
    """Two open contexts run on one Spark, which lives until the last of them is closed."""
    assert life[0]["first"] == [1.0, 0.5]
    assert life[0]["shared"] is True
    assert life[0]["second lives"] == 2


def test_another_master_is_refused(life: tuple[dict[str, Any], str, str]) -> None:
    """A second master beside an open context is an IllegalStateError that names the first."""
    kind, text = life[0]["other master"]

    assert kind == "IllegalStateError"
    assert "local[2]" in text


def test_a_closed_context_refuses(life: tuple[dict[str, Any], str, str]) -> None:
    """A context that was closed, twice even, makes no streams."""
    kind, text = life[0]["closed"]

    assert (kind, "closed" in text) == ("IllegalStateError", True)


def test_a_failed_job_raises_the_users_exception(life: tuple[dict[str, Any], str, str]) -> None:
    """A function that divides by zero on a worker is a ZeroDivisionError here."""
    assert life[0]["failure"] == ["ZeroDivisionError", "division by zero"]


def test_contexts_open_again_with_other_settings(life: tuple[dict[str, Any], str, str]) -> None:
    """After the last context is closed the next one starts Spark anew, with another master."""
    assert [life[0]["reopened 0"], life[0]["reopened 1"]] == [[1, 2, 3], [1, 2, 3]]


def test_the_default_context_opens_when_it_is_needed(life: tuple[dict[str, Any], str, str]) -> None:
    """A stream made from no context opens one, which ends with the script."""
    assert life[0]["default"] == ["A", "B"]


def test_no_process_is_left_behind(life: tuple[dict[str, Any], str, str]) -> None:
    """Neither a JVM nor a worker outlives the script."""
    left = [process for process in psutil.process_iter() if _environment(process).get("DSTREAM_TEST_MARK") == life[2]]

    _, alive = psutil.wait_procs(left, timeout=10)
    assert alive == []


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return dict(process.environ())
    except psutil.Error:
        return {}


def test_a_session_of_the_user_is_used_and_left_running(script: Script, java: JavaOfPrograms) -> None:
    """A Spark session that runs already is shared, keeps its settings, and outlives the context."""
    ended = script(GUEST, env=environment(**java()))

    said = json.loads(ended.stdout)
    assert "local[1]" in said.pop("other master")
    assert said == {"same": True, "distinct": ["b", None, 1], "left running": 3, "settings": "7"}


def _only_on_path(folder: Path, **programs: str) -> dict[str, str]:
    """Return an environment whose PATH has these programs and bash, and no other."""
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(stat.S_IRWXU)
    for name in ("bash", "sh", "dirname", "ps"):
        Path(folder, name).symlink_to(
            next(f"{place}/{name}" for place in ("/bin", "/usr/bin") if os.path.exists(f"{place}/{name}"))
        )
    return environment(PATH=str(folder), JAVA_HOME=None)


def _assert_short(ended: subprocess.CompletedProcess[str], says: str) -> None:
    error = ended.stderr.splitlines()[-1]
    assert error.startswith("dstream.errors.SetupError: Spark needs Java 17 or newer")
    assert says in error
    assert "pyspark" not in ended.stderr
    assert "During handling" not in ended.stderr


def test_no_java_is_one_clear_sentence(script: Script, tmp_path: Path) -> None:
    """Without a Java the error says so and how to get one; no traceback of PySpark's comes with it."""
    ended = script(ONE_JOB, env=_only_on_path(tmp_path))

    _assert_short(ended, "there is none on this machine")


def test_an_old_java_is_named(script: Script, tmp_path: Path) -> None:
    """A Java that is too old is named with its path and its version."""
    java = "#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n"
    ended = script(ONE_JOB, env=_only_on_path(tmp_path, java=java))

    _assert_short(ended, f"{tmp_path}/java is Java 11")


def test_a_jvm_that_does_not_start_is_a_setup_error(script: Script) -> None:
    """Settings that the JVM refuses are a SetupError that carries the JVM's own words; they stand nowhere else."""
    ended = script(ONE_JOB.replace('"local[1]"', '"local[1]", config={"spark.driver.memory": "1"}'))

    message = ended.stderr.partition("dstream.errors.SetupError: ")[2]
    assert message.startswith("the Java virtual machine did not start: ")
    assert "Too small maximum heap" in message
    assert ended.stdout == ""
