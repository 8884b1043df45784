"""`dstream submit`: a driver that stays, writes a log, and is started again when it dies."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dstream as ds
from dstream.command.submission import _Supervisor
from tests.command.conftest import environment

SUBMIT = ("-m", "dstream", "submit", "--engine", "local", "--log", "log")
SCRIPT = """
import os, sys, pathlib, signal
from reducers import to_ilist
from tests.jobs.planned import plan_of

def once(n):
    if n == 3 and not pathlib.Path("died").exists():
        pathlib.Path("died").touch()
        {how}
    return n

print("begins", sys.argv[1:], flush=True)
ctx.new_job(plan_of(ctx.stream([1, 2, 3]).map(once), to_ilist("out"))).join()
print("ends")
"""
REST = ("RUNNING", "COMPLETING", "COMPLETED")
KILLED = "os.kill(os.getpid(), signal.SIGKILL)"


def without_lines_of_jobs(log: str) -> tuple[str, list[str]]:
    """Divide a log into what the script and the supervisor say, and the lines of jobs without times and ids."""
    line = re.compile(r"^[0-9-]{10} [0-9:]{8} INFO (the job .*?)( of 0\S*)?\n", re.MULTILINE)
    return line.sub("", log), [found for found, _ in line.findall(log)]


@pytest.fixture
def script(tmp_path):
    """Write a script whose job stops once, in some way."""

    def write(how: str) -> str:
        (tmp_path / "nightly.py").write_text(SCRIPT.format(how=how))
        return "nightly.py"

    return write


@pytest.mark.parametrize(
    ("given", "gets"),
    [
        (["said.py", "--name", "sales", "a", "--log", "log", "--b", "-c", "--engine", "local"], ["a", "--b", "-c"]),
        (["--log", "log", "said.py", "--name=sales", "--", "--name", "x", "--", "-h"], ["--name", "x", "--", "-h"]),
    ],
)
def test_options_stand_on_either_side_of_the_script(process, tmp_path, given, gets):
    """The script gets what is no option of the command, and all behind `--`."""
    (tmp_path / "said.py").write_text("import os, sys\nprint(os.environ['DSTREAM_JOB_NAME'], sys.argv[1:])\n")
    ended = process("-m", "dstream", "submit", *given)

    assert (ended.returncode, ended.stdout) == (0, f"sales {gets}\n"), ended.stderr


def test_a_driver_that_is_killed_is_started_again(process, tmp_path, script):
    """The job goes on under its name, which is that of the script; the log has all that was said."""
    ended = process(*SUBMIT, script(KILLED), "a", "--b")
    log = (tmp_path / "log").read_text()
    said, lines = without_lines_of_jobs(log)

    assert (ended.returncode, ended.stdout) == (0, log), ended.stderr
    begins = "begins ['a', '--b']\n"
    assert said == f"{begins}dstream submit: the driver was killed by signal 9; started again in 1 s\n{begins}ends\n"
    assert lines == [
        f"the job 'nightly' is {each}" for each in ("STARTING: run 1", "RUNNING", "STARTING: run 2", *REST)
    ]
    with ds.connect(engine="local", storage=tmp_path / "dstream-data") as ctx:
        [job] = ctx.jobs()
        assert (job.name, job.status, ctx.get_list("out").copy()) == ("nightly", ds.JobStatus.COMPLETED, [1, 2, 3])
        assert (job.driver.log, job.metrics().runs) == (str(tmp_path / "log"), 2)


def test_a_driver_that_fails_is_started_again_if_that_is_wanted(process, tmp_path, script):
    """By itself only what was killed is: an exception of the user's comes again."""
    name = script("raise KeyError(n)")
    plain = process(*SUBMIT, "--name", "sales", name)
    assert (plain.returncode, "KeyError: 3" in plain.stdout, "started again" in plain.stdout) == (1, True, False)
    (tmp_path / "died").unlink()
    again = process(*SUBMIT, "--name", "sales", "--restart", "on-failure", name)

    assert (again.returncode, "ended with code 1; started again" in again.stdout) == (0, True), again.stdout
    with ds.connect(engine="local", storage=tmp_path / "dstream-data") as ctx:
        assert [job.status.name for job in ctx.jobs("sales")] == ["COMPLETED", "FAILED", "FAILED"]


def test_a_detached_driver_outlives_the_command(process, tmp_path, script):
    """The command says where it is and returns when the job can be found; its log is found by the name of the job."""
    ended = process(*SUBMIT, "--detach", "--name", "sales", script("pass"))
    assert ended.stdout.startswith("submitted 'sales' as process ")
    with ds.connect(engine="local", storage=tmp_path / "dstream-data") as ctx:
        ctx.job("sales").join(240)
        _wait(lambda: (tmp_path / "log").read_text().endswith("ends\n"))
    logs = process("-m", "dstream", "jobs", "logs", "sales")

    said, lines = without_lines_of_jobs(logs.stdout)
    assert (said, lines[-1]) == ("begins []\nends\n", "the job 'sales' is COMPLETED")


def test_a_detached_driver_that_fails_at_once_is_a_failure_of_the_command(process, tmp_path):
    """It would wait for a job that no one submits."""
    (tmp_path / "fails.py").write_text("1 // 0")
    ended = process(*SUBMIT, "--detach", "fails.py")

    assert ended.returncode == 1
    assert (
        ended.stderr == f"the script ended with code 1 before it submitted a job; {tmp_path / 'log'} has what it said\n"
    )


@pytest.mark.parametrize(("code", "is_again"), [(0, False), (1, True), (130, False), (-9, True)])
def test_a_driver_whose_job_was_cancelled_is_not_started_again(tmp_path, code, is_again):
    """On a failure it is; a cancel is none."""
    assert _Supervisor([], {}, tmp_path / "log", "on-failure")._is_wanted_again(code) == is_again


def test_a_supervisor_that_is_ended_ends_its_driver(process, tmp_path, terminal):
    """And starts none again."""
    (tmp_path / "waits.py").write_text("import os, time\nprint('pid', os.getpid(), flush=True)\ntime.sleep(100)")
    running = terminal(*SUBMIT, "--restart", "always", "waits.py")
    running.expect("pid ")
    driver = int(running.expect("\n"))
    os.kill(running.process, signal.SIGTERM)
    running.end()

    _wait(lambda: not Path(f"/proc/{driver}").exists())


def test_ctrl_c_cancels_the_job_that_a_driver_waits_for(terminal, tmp_path):
    """It reaches supervisor and driver alike, and nobody waits for what is not wanted any more."""
    text = """
import time
from reducers import to_ilist
from tests.jobs.planned import plan_of

def slow(n):
    print(f"item {n}", flush=True)
    time.sleep(0.1)
    return n

ctx.new_job(plan_of(ctx.stream(range(1000)).map(slow), to_ilist("out"))).join()
"""
    (tmp_path / "long.py").write_text(text)
    running = terminal(*SUBMIT, "--storage", "kept", "--restart", "always", "long.py")
    running.expect("item 1")
    running.type("\x03")
    code = running.end()

    with ds.connect(engine="local", storage=tmp_path / "kept") as ctx:
        assert (code, ctx.job("long").status) == (128 + signal.SIGINT, ds.JobStatus.CANCELLED)


COUNTS = """
import signal, time
heard = []
signal.signal(signal.SIGINT, lambda *_: heard.append(1))
print("listens", flush=True)
while not heard:
    time.sleep(0.01)
time.sleep(0.5)
print(f"heard {len(heard)} time(s)", flush=True)
"""


def test_ctrl_c_reaches_a_driver_once(terminal, tmp_path):
    """The terminal tells it; a second time would break off what it does to end."""
    (tmp_path / "counts.py").write_text(COUNTS)
    running = terminal(*SUBMIT, "counts.py")
    running.expect("listens")
    running.type("\x03")

    running.expect("heard 1 time(s)")
    assert running.end() == 0


def test_an_interrupt_of_the_supervisor_alone_reaches_its_driver(tmp_path):
    """There is no terminal that would tell both."""
    (tmp_path / "counts.py").write_text(COUNTS)
    with subprocess.Popen(
        [sys.executable, *SUBMIT, "counts.py"],
        cwd=tmp_path,
        env=environment(XDG_STATE_HOME=str(tmp_path / "state")),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "listens\n"
        running.send_signal(signal.SIGINT)
        assert (running.stdout.readline(), running.wait(60)) == ("heard 1 time(s)\n", 0)


def test_a_second_ctrl_c_cancels_as_the_first_does(process, tmp_path):
    """It may come before the end of the context has asked for anything; nobody waits for the job then."""
    text = """
import time
from reducers import to_ilist
from tests.jobs.planned import plan_of

def again(self, *, is_interrupted):
    raise KeyboardInterrupt

def slow(n):
    time.sleep(0.1)
    return n

type(ctx)._end = again
ctx.new_job(plan_of(ctx.stream(range(1000)).map(slow), to_ilist("out")), name="long")
raise KeyboardInterrupt
"""
    (tmp_path / "long.py").write_text(text)
    began = time.monotonic()
    ended = process("-m", "dstream", "run", "--engine", "local", "--storage", "kept", "long.py")

    assert (ended.returncode, time.monotonic() - began < 50) == (128 + signal.SIGINT, True), ended.stderr
    with ds.connect(engine="local", storage=tmp_path / "kept") as ctx:
        assert ctx.job("long").status == ds.JobStatus.CANCELLED


def test_a_script_that_cannot_be_read_is_refused_at_once(command):
    """Before anything is detached."""
    ended = command("submit", "--detach", "nowhere.py")

    assert (ended.exit_code, ended.output) == (2, "the script nowhere.py cannot be read: No such file or directory\n")


def _wait(is_so) -> None:
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)
