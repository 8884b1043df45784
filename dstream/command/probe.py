"""Slow checks of `dstream doctor`, each in a process with a time limit, and the findings of all checks.

`python -m dstream.command.probe storage` prints its findings as JSON; so does `spark`.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Literal, NamedTuple

from dstream.base.urls import without_secrets
from dstream.session import connect
from dstream.session.configuration import configured, local_folder

__all__ = ["Finding", "Probe", "State"]


State = Literal["ok", "not ok", "not checked"]


class Finding(NamedTuple):
    """One line.

    Attributes:
        name: what was looked at.
        state: whether it works; what is not needed, or depends on something that does not work, is not checked.
        seen: what was seen there.
        advice: what to do, if there is something to do.
    """

    name: str
    state: State
    seen: str
    advice: str = ""


class Probe:
    """A check that runs beside this process from now on."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_ended = False
        # An empty entry is the current folder, whose modules may hide others.
        path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "dstream.command.probe", name],
            env={**os.environ, "PYTHONPATH": path, **_fast_start()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # A group of processes, which ends as a whole with the JVM in it.
        )

    def findings(self, seconds: float) -> list[Finding]:
        """Wait for the findings, at most `seconds`."""
        try:
            output, complaint = self._process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return [Finding(self._name, "not ok", f"no answer in {seconds:g} s", "raise --limit if it is slow")]
        finally:
            self.end()
        if self._process.returncode == 0 and output:
            # Libraries may print lines of their own before.
            return [Finding(*each) for each in json.loads(output.splitlines()[-1])]
        last = (complaint.strip().splitlines() or ["it said nothing"])[-1]
        return [Finding(self._name, "not ok", f"the check ended unexpectedly: {without_secrets(last)}")]

    def end(self) -> None:
        """End the process with all that it started, such as a JVM; a second call does nothing.

        A JVM that has answered is asked to end, and removes its folders after this process has ended.
        """
        if self._is_ended:
            return
        self._is_ended = True
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL if self._process.returncode is None else signal.SIGTERM)
        with self._process:  # closes its pipes
            self._process.wait()


def _fast_start() -> dict[str, str]:
    """Return options that let Java start in half the time and run slower later; options of the user win.

    Spark is started by another Java, which has options of its own.
    """
    fast = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    return {name: f"{fast} {os.environ.get(name, '')}" for name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS")}


def _storage() -> Iterator[Finding]:
    """Write a value into a collection of its own, read it, and remove it again."""
    url = configured({})["storage"]
    with connect(engine="local") as ctx:
        count, shown = len(ctx.collections()), ctx.running_storage().url
    with _place_of_trial(url) as (place, name), connect(engine="local", storage=place) as ctx:
        trial = ctx.get_map(name)
        try:
            trial["key"] = "value"
            if trial["key"] != "value":
                raise RuntimeError("what was written was not read again")
        finally:
            trial.destroy()
    yield Finding("storage", "ok", f"{shown}: {count} collections; writing and reading work")


@contextmanager
def _place_of_trial(url: str) -> Iterator[tuple[str, str]]:
    """Give a storage and a name. In a folder it is another folder, which leaves no trace."""
    folder = os.path.abspath(url.removeprefix("file://")) if url.startswith("file://") else local_folder(url)
    if folder is None:
        yield url, f"dstream-doctor-{uuid.uuid4().hex}"
        return
    # A storage makes its folder when it is used; the trial must not leave one.
    while not os.path.exists(folder):
        folder = os.path.dirname(os.path.abspath(folder))
    trial = tempfile.mkdtemp(prefix=".dstream-doctor-", dir=folder)
    try:
        yield trial, "trial"
    finally:
        shutil.rmtree(trial)


def _spark() -> Iterator[Finding]:
    """Start Spark and let a function travel to its workers and back.

    A Spark of this process is not closed: it ends with the process, without being waited for.
    """
    started = time.perf_counter()
    ctx = connect(engine="spark")
    threading.Thread(target=_load_packages, daemon=True).start()
    spark = ctx.spark
    master, seconds = spark.conf.get("spark.master"), time.perf_counter() - started
    yield Finding("Spark", "ok", f"{spark.version}, {master}, started in {seconds:.1f} s")
    is_here = master == "local" or master.startswith("local[")
    tasks = 1 if is_here else 2
    yield _workers(ctx.stream(range(tasks), partitions=tasks).map(_on_a_worker).to_list())
    if not is_here:
        ctx.close()


def _load_packages() -> None:
    """Load the packages of the first job while Java starts; if one cannot be loaded, the job reports it."""
    with suppress(ImportError):
        importlib.import_module("pandas")
        importlib.import_module("pyarrow")


def _workers(seen: list[tuple[str, str, float]]) -> Finding:
    versions = sorted({version for version, _, _ in seen})
    places = ", ".join(sorted({executable for _, executable, _ in seen}))
    memory = min(gigabytes for _, _, gigabytes in seen)
    bound = configured({})["worker_memory"] / 2**20
    python = f"Python {', '.join(versions)} at {places}"
    what = f"{python}, {memory:.1f} GB of memory; each moves data to disk at {bound:,.0f} MB"
    if versions != [platform.python_version()]:
        return Finding("workers", "not ok", what, f"set PYSPARK_PYTHON to a Python {platform.python_version()}")
    return Finding("workers", "ok", what)


def _on_a_worker(_: int) -> tuple[str, str, float]:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return platform.python_version(), sys.executable, memory / 2**30


_PROBES: dict[str, Callable[[], Iterator[Finding]]] = {"storage": _storage, "spark": _spark}


def _found(name: str) -> list[Any]:
    findings: list[Finding] = []
    try:
        findings.extend(_PROBES[name]())
    except Exception as error:
        message = without_secrets(str(error).partition("\n")[0])
        findings.append(Finding(name, "not ok", message or type(error).__name__))
    return findings


if __name__ == "__main__":
    print(json.dumps(_found(sys.argv[1])), flush=True)
    os._exit(0)  # Without the exit handlers, which wait for the JVM.
