"""`dstream run`: as `python` would run the script, with a context."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path

import pytest

RUN = ("-m", "dstream", "run")

SHOWS = """
import json, sys
print(json.dumps([sys.argv, sys.path[0], __file__, __name__, sys.modules["__main__"].__file__, __cached__, __doc__]))
"""

ON_SPARK = """
'''A script.'''
from dataclasses import dataclass
STEP = 10

@dataclass
class Pair:
    left: int

def more(n):
    return Pair(n + STEP)

print(ctx.stream([1, 2], 2).map(more).map(lambda pair: pair.left).to_list())
print(Stream.of(1).count() if "Stream" in globals() else __doc__)
"""

FAILS = """
def divide(n):
    return 1 / n

def outer():
    try:
        divide(0)
    except ZeroDivisionError as error:
        raise KeyError("outer") from error

outer()
"""


CANCELLED = """
from concurrent.futures import wait
from reducers import to_ilist
from tests.jobs.planned import Gate, plan_of

gate = Gate()
job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("out")))
job.cancel()
gate.is_open.set()
job.join()
"""


@pytest.fixture
def script_here(folder, monkeypatch):
    """Write `script.py` into the current folder, to be run within this process."""

    def write(text: str) -> None:
        (folder / "script.py").write_text(text)

    for name, value in (("argv", sys.argv), ("path", [*sys.path])):
        monkeypatch.setattr(sys, name, value)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setenv("DSTREAM_JOB_NAME", "")
    return write


def written(folder: Path, text: str, name: str = "script.py") -> str:
    """Write a script below the folder; return its relative path."""
    (folder / "below").mkdir(exist_ok=True)
    (folder / "below" / name).write_text(text)
    return f"below/{name}"


def test_a_script_sees_what_python_shows_it(process, tmp_path):
    """Arguments, search path and file are the same, and all behind `--` is its own."""
    script = written(tmp_path, SHOWS)
    arguments = ("--engine", "x", "--", "-h", "--master=3")
    plain = process(script, *arguments)
    ours = process(*RUN, "--engine", "local", script, "--", *arguments)

    assert plain.stdout.startswith('[["below/script.py", "--engine", "x", "--", "-h", "--master=3"], ')
    assert (ours.stdout, ours.stderr, ours.returncode) == (plain.stdout, "", 0)


def test_options_stand_on_either_side_of_a_script_that_is_run(process, tmp_path):
    """As for `dstream submit`; the script gets what is no option of the command."""
    said = "import os, sys; print(ctx.engine, os.environ['DSTREAM_JOB_NAME'], sys.argv[1:])"
    ended = process(*RUN, written(tmp_path, said), "a", "--name", "sales", "--b", "-c", "--engine", "local")

    assert (ended.stdout, ended.returncode) == ("local sales ['a', '--b', '-c']\n", 0), ended.stderr


@pytest.mark.parametrize("command_", ["run", "submit"])
def test_an_option_in_the_place_of_the_script_is_refused(command, command_):
    """It is no file that cannot be read."""
    ended = command(command_, "--workers=3", "script.py")

    assert (ended.exit_code, re.search("No such option.*--workers=3", ended.output) is None) == (2, False), ended.output


def test_a_script_whose_job_is_cancelled_ends_without_a_traceback(command, script_here):
    """The user has asked for it: one line, and the exit code of Ctrl-C."""
    script_here(CANCELLED)
    ended = command("run", "--engine", "local", "--name", "sales", "script.py")

    words = "the job 'sales' was cancelled; the script ends where it waits for it\n"
    assert (ended.output, ended.exit_code) == (words, 130)


def test_functions_of_a_script_run_on_spark(process, tmp_path):
    """They use classes and values of the script; nothing is said beside what the script says."""
    ended = process(*RUN, written(tmp_path, ON_SPARK))

    assert (ended.stdout, ended.stderr, ended.returncode) == ("[11, 12]\nA script.\n", "", 0)


def test_a_failing_script_shows_its_own_traceback(process, tmp_path):
    """The traceback is, letter by letter, the one that Python prints."""
    script = written(tmp_path, FAILS)
    plain, ours = process(script), process(*RUN, "--engine", "local", script)

    assert "The above exception was the direct cause" in plain.stderr
    assert (ours.stderr, ours.returncode) == (plain.stderr, 1)


def test_a_script_that_is_no_python_is_shown_as_python_does(process, tmp_path):
    """A mistake in the syntax shows the line of the script alone."""
    script = written(tmp_path, "x = = 1\n")
    plain, ours = process(script), process(*RUN, "--engine", "local", script)

    assert (ours.stderr, ours.returncode) == (plain.stderr, 1)
    assert "SyntaxError" in ours.stderr


def test_exit_codes_pass(process, tmp_path):
    """What the script says to the shell is what the shell hears; the context is closed by then."""
    script = written(
        tmp_path, "import atexit, sys; atexit.register(lambda: print(ctx)); sys.exit(int(sys.argv[1]) or 'a text')"
    )
    seven, text = (process(*RUN, "--engine", "local", script, code) for code in ("7", "0"))

    assert seven.returncode == 7
    assert re.fullmatch("<dstream context on local, storage .*, closed>\n", seven.stdout)
    assert (text.returncode, text.stderr) == (1, "a text\n")


def test_a_missing_script_is_one_sentence(command):
    """The exit code is Python's own for it."""
    ended = command("run", "nowhere.py")

    assert (ended.exit_code, ended.output) == (2, "the script nowhere.py cannot be read: No such file or directory\n")


def test_a_folder_is_no_script(command, folder):
    """It is refused in the same words."""
    assert command("run", str(folder)).output.endswith("cannot be read: Is a directory\n")


def test_options_reach_the_context(command, folder, script_here):
    """The storage of the option is the storage of `ctx`."""
    script_here("ctx.get_list('names').append('Ada')\nprint(ctx.engine)")
    ended = command("run", "--engine", "local", "--storage", "elsewhere", "script.py")

    assert (ended.output, ended.exit_code) == ("local\n", 0)
    assert (folder / "elsewhere" / "names").is_dir()


def test_an_interrupt_ends_a_script_quietly(terminal, tmp_path):
    """Ctrl-C in a running script is exit code 130, and no traceback."""
    script = written(tmp_path, "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.01)")
    running = terminal(*RUN, "--engine", "local", script)
    running.expect("ready\n")
    running.type("\x03")

    assert running.end() == 128 + signal.SIGINT
    assert running.rest == "^C"
