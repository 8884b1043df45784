"""The process from which Spark forks workers on this machine: what it loads, and what each worker has of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark.daemon
import pytest

import dstream.engine.tasks.daemon as worker_daemon
from dstream.engine.spark.session import settings
from dstream.engine.spark.session.settings import Settings
from dstream.engine.tasks.daemon import Collecting

ROOT = Path(__file__).parents[2]
DAEMON = "spark.python.daemon.module"

_FORKS = """
import os, sys
import pyspark.daemon

def manager():
    print(sorted(open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")))
    import gc, random, numpy
    print(gc.get_freeze_count() > 10_000, len(gc.get_objects()) < 1000)
    print(type(pyspark.daemon.gc).__name__)
    numpy.random.rand()
    for _ in range(2):
        pid = os.fork()
        if not pid:
            print(random.random(), numpy.random.rand(), file=sys.stderr)
            os._exit(0)
        os.waitpid(pid, 0)

pyspark.daemon.manager = manager
from dstream.engine.tasks import daemon
daemon.main()
"""


@pytest.fixture(scope="module")
def forks():
    """What a daemon says that forks two workers."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-c", _FORKS], env=environment, capture_output=True, text=True, check=True)


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="threads of a process are counted in /proc")
def test_the_daemon_has_one_thread(forks):
    """A lock that another thread held when a worker is forked would be held there for ever."""
    assert forks.stdout.splitlines()[0].count("\\n") == 1


_IMPORTS = """
import dstream.engine.tasks.daemon as daemon
daemon.MODULES = ()
daemon.gc = type("Gc", (), {"collect": lambda: 0, "freeze": lambda: exit(__import__("pyspark").__file__)})
daemon.main()
"""


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_the_daemon_imports_the_installed_pyspark(tmp_path, is_elsewhere):
    """Which Python has compiled once; the zip of another Spark stays before it."""
    home = Path(pyspark.__file__).parent
    lib = home / "python" / "lib"
    if is_elsewhere:
        lib = tmp_path / "python" / "lib"
        shutil.copytree(home / "python" / "lib", lib)
    path = os.pathsep.join([*map(str, sorted(lib.glob("*.zip"))), *sys.path, str(ROOT)])

    ran = subprocess.run(
        [sys.executable, "-c", _IMPORTS], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )

    assert ran.stderr.strip().startswith(str(lib / "pyspark.zip" if is_elsewhere else home / "__init__.py"))


def test_workers_look_for_no_garbage_in_what_was_loaded(forks):
    """They look at the end of each task, and all that was loaded stays."""
    assert forks.stdout.splitlines()[1] == "True True"


def test_workers_look_for_garbage_a_twentieth_of_the_time():
    """Behind a task of a second every time, behind tasks of a tenth of a look every 200th time."""
    now, looks = [100.0], []

    def look():
        looks.append(now[0])
        now[0] += 0.5

    ours = Collecting(look, lambda: now[0])
    for _ in range(400):
        now[0] += 0.05
        ours.collect()
    assert (len(looks), looks[1] - looks[0]) == (2, pytest.approx(10.55))
    looks.clear()
    for _ in range(3):
        now[0] += 10.1
        ours.collect()
    assert len(looks) == 3


def test_spark_asks_ours_at_the_end_of_a_task(forks):
    """What PySpark's module knows as `gc` is what looks."""
    assert forks.stdout.splitlines()[2] == "Collecting"


def test_each_worker_draws_numbers_of_its_own(forks):
    """Neither Python's generator nor NumPy's goes on where the daemon's stood."""
    first, second = (line.split() for line in forks.stderr.splitlines())

    assert all(one != other for one, other in zip(first, second, strict=True))


def test_what_cannot_be_loaded_fails_where_it_is_needed(monkeypatch):
    """The daemon forks workers all the same."""
    forked = []
    monkeypatch.setattr(worker_daemon, "MODULES", ("nowhere",))
    monkeypatch.setattr(pyspark.daemon, "manager", lambda: forked.append(True))
    monkeypatch.setattr(pyspark.daemon, "gc", worker_daemon.gc)
    monkeypatch.setattr(worker_daemon.gc, "freeze", lambda: None)
    monkeypatch.setattr(worker_daemon.os, "environ", {})
    monkeypatch.setattr(worker_daemon.os, "register_at_fork", lambda **hooks: None)
    worker_daemon.main()

    assert forked == [True]


@pytest.mark.parametrize(
    ("master", "config", "daemon"),
    [
        ("local[2]", {}, worker_daemon.__name__),
        ("local[2]", {DAEMON: "mine"}, None),
        ("local[2]", {"spark.executorEnv.PYTHONPATH": "/elsewhere"}, None),
        ("local-cluster[1,1,1024]", {}, None),
        ("spark://host:7077", {}, None),
    ],
)
def test_workers_elsewhere_are_forked_by_sparks_own_daemon(master, config, daemon):
    """Our modules come there with the first job, so a daemon could not load them before."""
    defaults = {**settings.defaults(master, Settings(master, config, "OFF", 2**20)), **config}

    assert defaults.get(DAEMON) == (config.get(DAEMON) or daemon)


def test_a_worker_loads_nothing_more_for_a_small_job(java):
    """All that the first job needs is there before the fork."""
    script = """
import dstream as ds
def loaded(_):
    import sys
    return {*sys.modules}
with ds.connect("local[1]", storage="memory:", progress=False) as ctx:
    names = ctx.stream([1]).map(loaded).to_list()[0]
import subprocess, sys
code = "import sys, pyspark.daemon as p; p.manager = lambda: print(*sys.modules); "
code += "import dstream.engine.tasks.daemon as d; d.main()"
here = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
ours = ("dstream", "pyspark", "numpy", "pyarrow")
print(sorted(name for name in names - {*here} if name.partition(".")[0] in ours))
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DSTREAM_")}
    environment |= {"PYTHONPATH": str(ROOT), **java()}
    ran = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)

    assert ran.stdout == "[]\n", ran.stderr
