"""The pages about the command keep their word: what they show is what happens."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from dstream.command.program import program
from tests.command.conftest import LONGEST, environment

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = DOCS / "reference" / "command.md"
_TEXT = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CHECKER = doctest.OutputChecker()


def sessions(page: Path) -> list[tuple[str, str]]:
    """Return the commands of a page, each with what the page shows below it."""
    found = []
    for block in _TEXT.findall(page.read_text()):
        for piece in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = piece.partition("\n")
            found.append((command, output))
    return found


def all_commands(command: click.Command, *path: str) -> list[tuple[str, ...]]:
    """Return the words of every command and subcommand."""
    found = [path]
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            found += all_commands(command.get_command(ctx, name), *path, name)
    return found


@pytest.fixture
def bash(tmp_path):
    """Run a line as a shell would where dstream is installed, in one folder for all lines of a test."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "work").mkdir()
    entry = tmp_path / "bin" / "dstream"
    entry.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dstream "$@"\n')
    entry.chmod(0o700)
    variables = environment(PATH=f"{entry.parent}{os.pathsep}{os.environ['PATH']}", DSTREAM_ENGINE="local")
    del variables["DSTREAM_MASTER"]

    def run(line: str) -> str:
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=tmp_path / "work",
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        return done.stdout

    return run


def test_the_how_to_shows_what_happens(bash):
    """Every line of its sessions is typed, in order; `...` stands for what differs from machine to machine."""
    typed = sessions(DOCS / "how-to" / "use-the-command.md")
    assert len(typed) > 10

    for command, shown in typed:
        said = "".join(f"{line.rstrip()}\n" for line in bash(command).splitlines())
        assert _CHECKER.check_output(shown, said, doctest.ELLIPSIS), f"$ {command}\n{said}"


@pytest.mark.parametrize("path", all_commands(program), ids=" ".join)
def test_the_reference_has_the_help_of_every_command(path):
    """Letter by letter: an option that is added or renamed is so in the reference."""
    shown = dict(sessions(REFERENCE))
    said = CliRunner().invoke(program, [*path, "--help"], prog_name="dstream", terminal_width=80).output

    assert shown[" ".join(["dstream", *path, "--help"])] == "".join(f"{line.rstrip()}\n" for line in said.splitlines())


def test_the_reference_names_no_other_command():
    """What was removed is removed there."""
    known = {" ".join(["dstream", *path, "--help"]) for path in all_commands(program)}

    assert {command for command, _ in sessions(REFERENCE)} == known
