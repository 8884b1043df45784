"""The program as a whole: its version, its help, and how it says that something went wrong."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from dstream.command import program as module
from dstream.command.program import program
from dstream.errors import SetupError


def test_the_version_loads_little(process):
    """It is there at once: no table, no Spark, no Arrow is imported for it."""
    code = "import sys; from dstream.command import main; sys.argv = ['dstream', '--version']\n"
    code += (
        "try: main()\nfinally: print(sorted({'rich', 'pyspark', 'pyarrow', 'IPython', 'fsspec'} & set(sys.modules)))"
    )
    ended = process("-c", code)

    assert ended.stdout.splitlines()[0].startswith("dstream ")
    assert ended.stdout.splitlines()[1] == "[]"


def test_an_error_of_dstream_is_one_message(command, monkeypatch):
    """It stands on stderr, with what to do; no traceback is shown, and no place in a pipeline."""

    @click.command()
    def broken() -> None:
        error = SetupError("there is no Java")
        error.add_note("Where: step 1")
        error.add_note("What to do: install it")
        raise error

    monkeypatch.setattr(module._Program, "get_command", lambda *_: broken)
    ended = command("broken")

    assert (ended.exit_code, ended.stdout) == (1, "")
    assert ended.stderr == "there is no Java\nWhat to do: install it\n"


def test_an_interrupt_ends_quietly(command, monkeypatch):
    """Ctrl-C is 130, as for every program, and says nothing."""

    @click.command()
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module._Program, "get_command", lambda *_: interrupted)
    ended = command("interrupted")

    assert (ended.exit_code, ended.output) == (130, "")


@pytest.mark.parametrize("name", program.list_commands(click.Context(program)))
def test_every_subcommand_has_a_help(command, name):
    """The help opens with one sentence, and needs nothing."""
    ended = command(name, "-h")

    assert ended.exit_code == 0
    assert ended.output.startswith(f"Usage: dstream {name}")


def test_the_library_does_not_import_the_command():
    """`import dstream` loads neither the command nor what it is made with."""
    code = "import dstream, reducers, sources, sys; print({'click', 'rich', 'dstream.command'} & set(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ended.stdout == "set()\n"
