"""What the tests of the pages share: how their code is found and run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers.java_of_programs import JavaOfPrograms
from tests.servers.loaded_python import LoadedPython

ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(
    r"""
    (?P<excluded> ^[ ]*<!--[ ]not[ ]run:[ ]*\S.*?-->[ ]*\n (?:[ ]*\n)? )?
    ^(?P<indent>[ ]*) ```(?P<language>\w*)[^\n]*\n
    (?P<code> .*?)
    ^(?P=indent) ```[ ]*$
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    code: str
    first_line: int
    excluded: bool


class Page:
    """A Markdown page seen as the code in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.blocks = [self._block(match) for match in _BLOCK.finditer(self.text)]

    def _block(self, match: re.Match[str]) -> Block:
        return Block(
            language=match["language"],
            code=textwrap.dedent(match["code"]),
            first_line=self.text.count("\n", 0, match.start("code")),
            excluded=match["excluded"] is not None,
        )

    def python(self) -> list[Block]:
        """Return the blocks of Python that are to be run."""
        return [block for block in self.blocks if block.language in {"python", "py", "python3"} and not block.excluded]


@pytest.fixture
def page() -> Callable[[str], Page]:
    """Read the page at a path below the root of the repository."""
    return lambda path: Page(ROOT / path)


@pytest.fixture
def run_blocks(tmp_path: Path, java: JavaOfPrograms, loaded_python: LoadedPython) -> Callable[..., str]:
    """Run blocks of one page as one script, in an empty folder; return what it printed.

    With a Java of its own a page has a Python of its own, too.
    """

    def run(blocks: list[Block], has_own_java: bool = False, **variables: str) -> str:
        script, folder = tmp_path / "page.py", tmp_path / "empty"
        script.write_text(script_of(blocks), encoding="utf-8")
        folder.mkdir()
        env = {**os.environ, "PYTHONPATH": str(ROOT), **({} if has_own_java else java()), **variables}
        if has_own_java:
            command = [sys.executable, script]
            done = subprocess.run(
                command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300
            )
        else:
            done = loaded_python.run(script, cwd=folder, env=env)
        assert done.returncode == 0, f"the page's code failed; its lines are those of the page:\n{done.stderr}"
        return done.stdout

    return run


@pytest.fixture
def output_of(loaded_python: LoadedPython) -> Callable[..., str]:
    """Run a sample in a folder, on the local engine if it lets its user choose; return what it printed."""

    def run(sample: str, *arguments: str, folder: Path, **variables: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "DSTREAM_MASTER": "local[1]", **variables}
        for name in ("DSTREAM_ENGINE", "DSTREAM_STORAGE"):
            environment.pop(name, None)
        done = loaded_python.run(ROOT / "docs" / "samples" / sample, *arguments, cwd=folder, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def script_of(blocks: list[Block]) -> str:
    """Put each block on the lines where the page has it, so that a traceback points into the page."""
    lines: list[str] = []
    for block in blocks:
        lines += [""] * (block.first_line - len(lines))
        lines += block.code.splitlines()
    return "\n".join(lines) + "\n"
