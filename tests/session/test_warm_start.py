"""A start beside the caller: who waits for it, where its errors come, and that it leaves no thread."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from unittest.mock import MagicMock

import pytest
from pyspark import java_gateway

import dstream as ds
from dstream.base.environment import inside_a_worker
from dstream.command.program import connected
from dstream.engine.spark.port.errors import cancelling, keeping_cancellation
from dstream.engine.spark.session import launch, startup
from dstream.engine.spark.session.settings import Settings
from dstream.errors import EngineError, SetupError
from dstream.session import connection
from dstream.session.warmup import WarmStart

ROOT = Path(__file__).parents[2]


class Engine:
    """An engine that notes what becomes of it."""

    def __init__(self):
        self.noted = []

    def close(self):
        self.noted.append("closed")


class Starts:
    """Starts engines, when a test lets them start."""

    def __init__(self, *errors):
        self.may_end = threading.Event()
        self.errors = list(errors)
        self.engines = []
        self.may_end.set()

    def __call__(self):
        assert self.may_end.wait(10)
        if self.errors:
            raise self.errors.pop(0)
        self.engines.append(Engine())
        return self.engines[-1]


def warm(starts):
    """Begin to start an engine, whose warming up is noted."""
    return WarmStart(starts, lambda engine: engine.noted.append("active"), lambda engine: engine.noted.append("warm"))


def threads():
    """Return how many threads of warm starts there are."""
    return sum(thread.name == "dstream-warm-start" for thread in threading.enumerate())


def test_whoever_needs_the_engine_waits_for_it():
    """It is one engine, known to the thread that asked for it, and warmed up once."""
    starts = Starts()
    starts.may_end.clear()
    start = warm(starts)
    assert starts.engines == []

    starts.may_end.set()
    engine = start()
    start.close()
    assert starts.engines == [engine]
    assert sorted(engine.noted) == ["active", "warm"]
    assert threads() == 0


def test_an_engine_that_was_lost_is_started_again():
    """After the first one has been given, a call starts another."""
    start = warm(Starts())

    assert start() is not start()
    start.close()


def test_an_error_of_the_start_comes_where_the_engine_is_needed():
    """Once, with the line that needs it; the next call tries again."""
    start = warm(Starts(SetupError("Spark did not start")))
    with pytest.raises(SetupError, match=r"^Spark did not start$") as caught:
        start()

    assert caught.traceback[0].path == Path(__file__)
    assert isinstance(start(), Engine)
    start.close()


def test_an_engine_that_nobody_needed_is_closed():
    """Also one whose start is not at its end yet."""
    starts = Starts()
    starts.may_end.clear()
    start = warm(starts)
    closing = threading.Thread(target=start.close)
    closing.start()
    while not start._is_closed:
        pass
    starts.may_end.set()
    closing.join(10)

    assert (starts.engines[0].noted, threads()) == (["closed"], 0)


def test_an_engine_is_closed_when_it_is_warm():
    """A job that has begun to warm it up ends before."""
    starts, may_warm = Starts(), threading.Event()

    def warming(engine):
        may_warm.wait(10)
        engine.noted.append("warm")

    start = WarmStart(starts, bool, warming)
    while not start._started.done():
        pass
    closing = threading.Thread(target=start.close)
    closing.start()
    may_warm.set()
    closing.join(10)

    assert starts.engines[0].noted == ["warm", "closed"]


def test_an_error_that_nobody_met_is_nobodys():
    """Closing a context whose Spark did not start is no failure."""
    start = warm(Starts(SetupError("Spark did not start")))
    start.close()

    assert threads() == 0


def test_a_warming_up_that_fails_is_left_to_the_first_job():
    """It says more about it."""
    starts = Starts()
    start = WarmStart(starts, bool, lambda engine: 1 / 0)

    assert start() is starts.engines[0]
    start.close()


def test_ctrl_c_leaves_the_start_alone(monkeypatch):
    """The caller stops waiting; the next one gets the engine."""
    starts = Starts()
    starts.may_end.clear()
    start = warm(starts)

    def interrupted():
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(start._started, "result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            start()
    starts.may_end.set()

    assert start() is starts.engines[0]
    start.close()


def test_a_forked_process_does_not_wait_for_a_thread_of_its_parent(monkeypatch):
    """It would wait for ever."""
    start = warm(Starts())
    with monkeypatch.context() as patch:
        patch.setattr("os.getpid", lambda: -1)
        start.close()
        with pytest.raises(EngineError, match="forked"):
            start()

    start.close()
    assert threads() == 0


@pytest.fixture
def begun(monkeypatch):
    """The masters for which a start has begun; no Spark starts."""
    masters = []
    monkeypatch.setattr(launch, "check_machine", lambda master, config: None)
    monkeypatch.setattr(connection, "_started_beside", lambda start, master, *_: masters.append(master) or start)
    return masters


def test_other_engines_start_nothing(folder, begun, monkeypatch):
    """The local engine needs no Spark, and `auto` only for some streams, also beside those who type."""
    ds.connect("local[1]", "local", warm=True).close()
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    ds.connect("local[1]", "auto").close()

    assert begun == []


def test_auto_starts_spark_beside_who_asks_for_it(folder, begun):
    """The first plan that needs Spark finds it."""
    ds.connect("local[1]", "auto", warm=True).close()

    assert begun == ["local[1]"]


def test_spark_starts_beside_those_who_type(folder, begun, monkeypatch):
    """Not beside a program, unless it asks for it; a setting stands over that."""
    ds.connect("local[1]").close()
    assert begun == []

    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    ds.connect("local[2]").close()
    ds.connect("local[3]", warm=False).close()
    monkeypatch.setenv("DSTREAM_WARM", "0")
    ds.connect("local[4]").close()
    ds.connect("local[5]", warm=True).close()
    assert begun == ["local[2]", "local[5]"]


def test_a_notebook_is_a_prompt(monkeypatch):
    """And so is IPython in a terminal."""
    monkeypatch.delattr(sys, "ps1", raising=False)
    monkeypatch.setitem(sys.modules, "IPython", type("IPython", (), {"get_ipython": staticmethod(lambda: "shell")}))

    assert connection._is_at_a_prompt()


@pytest.mark.parametrize("running", ["local[2]", "yarn"])
def test_a_cluster_is_one_by_whatever_says_so(monkeypatch, running):
    """The master, `spark-submit`, or the Spark that runs."""
    monkeypatch.setattr(launch, "_session_of_the_user", lambda: None)
    monkeypatch.setattr(launch, "_running", None)
    monkeypatch.setattr(launch, "submitted", lambda name: None)
    found = [launch.is_cluster(master) for master in (running, "spark://host:7077", "sc://host:15002", None)]
    monkeypatch.setattr(launch, "submitted", lambda name: running)
    found.append(launch.is_cluster(None))
    monkeypatch.setattr(launch, "submitted", lambda name: None)
    session = SimpleNamespace(sparkContext=SimpleNamespace(master=running))
    monkeypatch.setattr(launch, "_session_of_the_user", lambda: session)
    found.append(launch.is_cluster(None))

    is_cluster = running == "yarn"
    assert found == [is_cluster, True, True, False, is_cluster, is_cluster]


def test_a_spark_that_runs_already_is_not_started(monkeypatch):
    """Nor one on a server, or of a Java process that somebody else has started."""
    monkeypatch.setattr(launch, "_session_of_the_user", lambda: None)
    monkeypatch.setattr(launch, "_running", None)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    assert launch.starts_here("local[2]")
    assert not launch.starts_here("sc://host:15002")

    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert not launch.starts_here("local[2]")
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT")
    monkeypatch.setattr(launch, "_session_of_the_user", object)
    assert not launch.starts_here("local[2]")


_USES = """
import threading, time
import dstream as ds
ctx = ds.connect("local[1]", storage="memory:", progress=False, warm=True)
before = time.perf_counter()
names = [thread.name for thread in threading.enumerate()]
print("dstream-warm-start" in names)
print(ctx.stream([1, 2]).map(lambda n: n * n).to_list(), ctx.spark.getActiveSession() is not None)
ctx.close()
print([thread.name for thread in threading.enumerate() if thread.name == "dstream-warm-start"])
ds.connect("local[1]", storage="memory:", progress=False, warm=True)
"""


def test_spark_starts_beside_a_program_and_ends_with_it():
    """The first job finds it; the second start is not used, and the end of the program ends it without a word."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DSTREAM_CONFIG": ""}
    ran = subprocess.run([sys.executable, "-c", _USES], env=environment, capture_output=True, text=True, timeout=300)

    assert (ran.stdout, ran.stderr, ran.returncode) == ("True\n[1, 4] True\n[]\n", "", 0)


def test_the_shell_of_the_command_is_a_prompt(folder, begun, monkeypatch):
    """Its context is there before anything is typed; a setting stands over that, and other commands start nothing."""
    connected("spark", "local[1]", is_for_a_prompt=True).close()
    connected("spark", "local[2]").close()
    monkeypatch.setenv("DSTREAM_WARM", "0")
    connected("spark", "local[3]", is_for_a_prompt=True).close()
    monkeypatch.delenv("DSTREAM_WARM")
    connected("auto", "local[4]", is_for_a_prompt=True).close()

    assert begun == ["local[1]"]


def test_what_a_thread_has_half_imported_is_not_asked(monkeypatch):
    """A stream may be shown while Spark starts beside it."""
    monkeypatch.setitem(sys.modules, "pyspark.sql", ModuleType("pyspark.sql"))
    monkeypatch.setitem(sys.modules, "pyspark.taskcontext", ModuleType("pyspark.taskcontext"))
    monkeypatch.setattr(launch, "_running", None)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)

    assert (launch.starts_here("local[2]"), launch.known_cores("local[2]", {})) == (True, 2)
    assert not inside_a_worker()


def test_the_end_of_a_program_waits_for_no_warm_up():
    """There is no job left that it would help; the start itself ends, so that nothing of it is left."""
    code = (
        "import time\n"
        "from dstream.session.warmup import WarmStart\n"
        "start = lambda: time.sleep(0.5) or print('started', flush=True)\n"
        "WarmStart(start, print, lambda engine: print('warm', flush=True))\n"
    )
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True) == "started\n"


def test_a_start_that_has_not_ended_is_stopped():
    """Closing does not wait for Spark; a start that has ended is not changed."""
    starts = Starts(SetupError("stopped"))
    starts.may_end.clear()
    start = WarmStart(starts, bool, bool, starts.may_end.set)
    start.close()
    assert (starts.engines, threads()) == ([], 0)

    ended = WarmStart(starts, bool, bool, lambda: pytest.fail("it was stopped"))
    ended._thread.join(10)
    ended.close()
    assert starts.engines[0].noted == ["closed"]


_JAVA = """#!/bin/sh
case "$*" in
*-version*) echo 'openjdk version "17.0.1"' >&2 ;;
*launcher.Main*) printf '\\0\\n' && printf 'sh\\0' && printf -- '-c\\0' && printf 'echo > {begun}; exec sleep 60\\0' ;;
esac
"""
_ENDS = """
import sys, time
from pathlib import Path
import dstream as ds
ctx = ds.connect(warm=True)
print(ctx.stream([1, 2]).map(lambda n: n * n).to_list())
while sys.argv[1] and not Path(sys.argv[1]).exists():
    time.sleep(0.01)
"""


@pytest.mark.parametrize("has_begun", [True, False])
def test_the_end_of_a_program_stops_the_start_of_java(tmp_path, has_begun):
    """It waits for no Java that starts, and leaves no folder."""
    begun, home, temporary = tmp_path / "begun", tmp_path / "home", tmp_path / "t"
    (home / "bin").mkdir(parents=True)
    temporary.mkdir()
    java = home / "bin" / "java"
    java.write_text(_JAVA.format(begun=begun))
    java.chmod(0o700)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAVA_HOME": str(home), "TMPDIR": str(temporary)}
    command = [sys.executable, "-c", _ENDS, str(begun) if has_begun else ""]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=50, cwd=tmp_path)

    assert (ran.stdout, ran.stderr, ran.returncode) == ("[1, 4]\n", "", 0)
    assert list(temporary.iterdir()) == []


def test_ctrl_c_ends_the_java_that_starts():
    """Where the main thread waits for it, as a plan does that needs Spark."""
    javas = []

    def start():
        with startup._stoppable().watching():
            javas.append(java_gateway.Popen(["sleep", "60"], stdin=subprocess.PIPE))
            raise KeyboardInterrupt

    begun = startup.StoppableStart()
    with pytest.raises(KeyboardInterrupt):
        begun.run(start)

    assert (javas[0].wait(10), begun.has_ended_java) == (-signal.SIGTERM, True)
    assert java_gateway.Popen is subprocess.Popen


def test_ctrl_c_in_a_later_start_ends_no_start_behind_it():
    """As where Spark was lost, and whoever waited for the next one thought better of it for a while."""
    endings = [None, KeyboardInterrupt, None]

    def start():
        with startup._stoppable().watching():
            java = java_gateway.Popen(["sleep", "60"], stdin=subprocess.PIPE)
            ending = endings.pop(0)
            if ending is not None:
                raise ending
        return java

    begun = startup.StoppableStart()
    first = begun.run(start)
    with pytest.raises(KeyboardInterrupt):
        begun.run(start)
    last = begun.run(start)
    assert (first.poll(), last.poll(), begun.has_ended_java) == (None, None, False)
    for each in (first, last):
        each.kill()
        each.communicate()


def test_a_start_that_is_stopped_at_its_very_end_gives_no_session():
    """Its Java ends, although Python has all that it wanted of it."""

    def start():
        with startup._stoppable().watching():
            java_gateway.Popen(["sleep", "60"], stdin=subprocess.PIPE)
            begun.stop()

    begun = startup.StoppableStart()
    with pytest.raises(SetupError, match="was stopped"):
        begun.run(start)


def test_ctrl_c_ends_a_java_that_waits_for_packages_to_be_loaded(monkeypatch):
    """The modules may take longer to load than Java to start."""
    javas = []

    @contextmanager
    def java(conf, log_level):
        javas.append(java_gateway.Popen(["sleep", "60"], stdin=subprocess.PIPE))
        yield

    @contextmanager
    def loading():
        yield
        raise KeyboardInterrupt

    monkeypatch.setattr(startup, "find_java", lambda: None)
    monkeypatch.setattr(startup, "_quiet_jvm", java)
    monkeypatch.setattr(startup, "_loading_beside", loading)
    monkeypatch.setattr(startup, "forget_java", lambda: None)
    monkeypatch.setattr("pyspark.sql.SparkSession", MagicMock())
    with pytest.raises(KeyboardInterrupt):
        startup.started(None, Settings("local[1]", {}, "OFF", None, False, None, "auto", False))
    assert javas[0].wait(10) == -signal.SIGTERM


def test_a_start_that_has_ended_is_not_stopped():
    """Its Java may have other users."""
    javas = []

    def start():
        with startup._stoppable().watching():
            javas.append(java_gateway.Popen(["sleep", "60"]))

    begun = startup.StoppableStart()
    begun.run(start)
    begun.stop()
    assert (javas[0].poll(), begun.has_ended_java) == (None, False)
    javas[0].kill()
    javas[0].wait()


@pytest.mark.parametrize(
    ("path", "error", "is_shown"),
    [
        ("/lib/py4j/java_gateway.py", KeyboardInterrupt, False),
        ("/lib/py4j/java_gateway.py", ValueError, True),
        ("/home/mine.py", KeyboardInterrupt, True),
    ],
)
def test_py4j_logs_no_interrupt(path, error, is_shown):
    """It is raised anyway; other records are as they were."""
    record = logging.LogRecord("root", logging.ERROR, path, 1, "Exception", (), (error, error(), None))

    assert startup._is_news(record) == is_shown
    stopped = startup.StoppableStart()
    stopped.stop()
    assert stopped.run(lambda: startup._is_news(record)) == ("py4j" not in path)


@pytest.fixture
def python_handler():
    """Set Python's own handler of Ctrl-C: PySpark and asyncio leave theirs behind."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_a_plan_keeps_its_handler_of_ctrl_c_while_spark_starts(python_handler):
    """PySpark's own cancels through a connection that may be waiting, and logs what comes of that."""
    before = python_handler
    with cancelling(), keeping_cancellation():
        ours = signal.getsignal(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert ours is not before
    with cancelling():
        with keeping_cancellation():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGINT) is ours
    assert signal.getsignal(signal.SIGINT) is before


def test_explain_without_a_context_starts_nothing(monkeypatch):
    """Also where contexts begin to start Spark when they are made."""
    monkeypatch.setenv("DSTREAM_WARM", "1")
    monkeypatch.setenv("DSTREAM_ENGINE", "auto")
    monkeypatch.setattr(connection, "_started_beside", lambda *_: pytest.fail("Spark begins to start"))
    monkeypatch.setattr(connection.contexts, "default", lambda: None)
    connection._default_stages(ds.Stream.of(1, 2, 3)._node, None)
