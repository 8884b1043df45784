"""A program in a process of its own, while somebody watches how much memory its processes occupy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

__all__ = ["Peaks", "Program", "answering", "started", "watched"]

_ROOT = Path(__file__).parents[2]
_SAMPLE_EVERY = 0.05
_LONGEST_ANSWER = 900.0
_WORKER = "pyspark.worker"
"""The argument by which PySpark's daemon and its workers are known: a fork on its way to Java is a `python` too."""


@dataclass
class Peaks:
    """The most bytes that were seen resident in the program itself, and in any one of its Python workers."""

    driver: int = 0
    worker: int = 0

    def look(self, pid: int) -> None:
        """Look at all processes below `pid`, and at that itself."""
        for process in _tree(pid):
            try:
                size, is_worker = process.memory_info().rss, _WORKER in process.cmdline()
            except psutil.Error:
                continue
            if process.pid == pid:
                self.driver = max(self.driver, size)
            elif is_worker:
                self.worker = max(self.worker, size)


def _tree(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []


@dataclass
class Program:
    """A module that runs, is asked line by line, and answers each line with one line of JSON."""

    process: subprocess.Popen[str]

    def ask(self, *words: object) -> Any:
        """Send some words and return the answer.

        Raises:
            RuntimeError: the program failed, or took a quarter of an hour and was ended.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        too_long = threading.Timer(_LONGEST_ANSWER, self.process.kill)
        too_long.start()
        print(*words, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        too_long.cancel()
        if not answer:
            raise RuntimeError(f"a program of the benchmarks gave no answer to {words}")
        return json.loads(answer)

    @contextmanager
    def watching(self) -> Iterator[Peaks]:
        """Sample the memory meanwhile."""
        peaks, ended = Peaks(), threading.Event()

        def sample() -> None:
            while not ended.wait(_SAMPLE_EVERY):
                peaks.look(self.process.pid)

        thread = threading.Thread(target=sample, daemon=True)
        thread.start()
        try:
            yield peaks
        finally:
            ended.set()
            thread.join()


@contextmanager
def started(module: str, *arguments: object, root: Path = _ROOT, files: Path | None = None) -> Iterator[Program]:
    """Run a module of the benchmarks, or another one by its full name, until the context ends.

    Args:
        module: its name.
        arguments: what it gets.
        root: the checkout from which it comes.
        files: the folder for its temporary files; None: that of this program.
    """
    environment = {**os.environ, "PYTHONPATH": str(root)}
    if files is not None:
        files.mkdir(parents=True, exist_ok=True)
        environment["TMPDIR"] = str(files)
    name = module if "." in module else f"tests.benchmarks.{module}"
    command = [sys.executable, "-m", name, *map(str, arguments)]
    with subprocess.Popen(
        command, env=environment, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Program(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()


def watched(module: str, *words: object) -> tuple[Any, Peaks]:
    """Run a module for one answer; return it, and the memory meanwhile."""
    with started(module) as program, program.watching() as peaks:
        return program.ask(*words), peaks


def answering(answer: Callable[[Sequence[str]], object]) -> None:
    """Be such a module: answer every line that comes in, until no more come."""
    for line in sys.stdin:
        print(json.dumps(answer(line.split())), flush=True)
