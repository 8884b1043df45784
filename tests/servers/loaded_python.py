"""One Python that has loaded what scripts need, as dstream: each script runs in a process that is forked from it.

Nine tenths of the CPU of a short script are the start of Python and imports. What a script imports itself it has to
name all the same; tests of what imports load, and of how processes start and end, start a Python of their own.
`serving_functions()` forks a process for each function instead, any number of them at the same time.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["LoadedPython", "running_python", "serving_functions"]

_REPOSITORY = Path(__file__).parents[2]
_LOADED = [
    *("collectors", "reducers", "sources", "dstream.testing", "dstream.jobs.unbounded", "dstream.pipeline"),
    *("dstream.engine.inprocess", "dstream.engine.local", "dstream.storage.lake", "dstream.connectors.files"),
    *("dstream.connectors.collections", "dstream.plan.failure_messages", "dstream.filesystem.discovery"),
    *("dstream.schema.decoders", "fastavro", "msgpack", "pandas", "pyarrow.compute", "pyarrow.parquet"),
]
"""Most scripts need these."""
_PROGRAM = """
from tests.servers.loaded_python import next_script

exec(*next_script())
"""
_SERVER = """
from tests.servers.loaded_python import serve_functions

serve_functions()
"""


class LoadedPython:
    """Python runs; `run()` runs a script in a copy of it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(
        self, script: Path, *arguments: str, cwd: Path, env: Mapping[str, str], timeout: float = 300.0
    ) -> subprocess.CompletedProcess[str]:
        """Run a script to its end, as `subprocess.run` does that captures its output as text."""
        command = [str(script), *arguments]
        assert self._process.stdin is not None
        with tempfile.TemporaryDirectory() as folder:
            out, said = Path(folder, "out"), Path(folder, "said")
            request = {"command": command, "cwd": str(cwd), "env": dict(env), "out": str(out), "said": str(said)}
            print(json.dumps(request), file=self._process.stdin, flush=True)
            child = int(self._answer(timeout))
            try:
                status = int(self._answer(timeout))
            except TimeoutError:
                os.kill(child, signal.SIGKILL)
                self._answer(timeout)
                raise
            return subprocess.CompletedProcess(command, status, out.read_text(), said.read_text())

    def _answer(self, timeout: float) -> str:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], timeout)[0]:
            raise TimeoutError(f"the script has not ended within {timeout} s")
        return self._process.stdout.readline()


@contextmanager
def running_python(modules: Sequence[str] = _LOADED) -> Iterator[LoadedPython]:
    """Start Python with some modules, and without what steers dstream and Spark; end it at the end."""
    with _started(_PROGRAM, *modules) as process:
        yield LoadedPython(process)


@contextmanager
def serving_functions(modules: Sequence[str]) -> Iterator[str]:
    """Start Python with some modules, and give the socket at which it runs functions; end it at the end.

    Each connection is a process. It is sent the environment, a function and its arguments as one pickle, and answers
    with pickles: its id, `("said", value)` for each value that a generator yields, and at last `("returned", value)` or
    `("raised", traceback)`. The connection ends with the process.
    """
    with tempfile.TemporaryDirectory(prefix="dstream-") as folder:  # The path of a socket has a hundred characters.
        address = f"{folder}/functions"
        with _started(_SERVER, address, *modules) as process:
            assert process.stdout is not None
            process.stdout.readline()
            yield address


@contextmanager
def _started(program: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    known = {name: value for name, value in os.environ.items() if not name.startswith(("DSTREAM_", "PYSPARK_"))}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env={**known, "PYTHONPATH": str(_REPOSITORY)},
        stdin=pipe,
        stdout=pipe,
        text=True,
        bufsize=0,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def next_script() -> tuple[types.CodeType, dict[str, object]]:
    """Serve requests, and return in each forked process: its code, and the namespace of its own `__main__`."""
    _load(sys.argv[1:])
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            return _become(request["command"], request["cwd"], request["env"], request["out"], request["said"])
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    os._exit(0)  # The interpreter of the server itself has nothing to run.


def _load(modules: Sequence[str]) -> None:
    """Load modules, and freeze them: a look for garbage would copy them in each process."""
    for name in modules:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


def _become(
    command: Sequence[str], cwd: str, env: Mapping[str, str], out: str, said: str
) -> tuple[types.CodeType, dict[str, object]]:
    """Make this process one that has been started as `python script ...` in a folder."""
    for descriptor, path, flags in [
        (0, os.devnull, os.O_RDONLY),
        (1, out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        (2, said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    ]:
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    script = command[0]
    sys.argv[:], sys.path[0] = command, str(Path(script).parent)
    main = types.ModuleType("__main__")
    main.__file__ = script
    sys.modules["__main__"] = main
    return compile(Path(script).read_text(encoding="utf-8"), script, "exec"), vars(main)


def serve_functions() -> None:
    """Fork a process for each connection until the input ends; return in each of them once its function has ended."""
    address, *modules = sys.argv[1:]
    _load(modules)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Nobody waits for them here: they leave no zombies.
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        print("ready", flush=True)
        while listener in select.select([listener, sys.stdin], [], [])[0]:
            connection = listener.accept()[0]
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                listener.close()
                _run_function(connection)
                return
            connection.close()


def _run_function(connection: socket.socket) -> None:
    sys.stdout = sys.stderr
    stream = connection.makefile("rwb")

    def say(*answer: Any) -> None:
        stream.write(pickle.dumps(answer))
        stream.flush()

    say("runs", os.getpid())
    environment, function, arguments = pickle.load(stream)
    os.environ.clear()
    os.environ.update(environment)
    try:
        said = function(*arguments)
        say("returned", _last_of(said, say) if hasattr(said, "send") else said)
    except Exception:
        say("raised", traceback.format_exc())


def _last_of(generator: Any, say: Any) -> Any:
    """Say what a generator yields, and give what it returns."""
    while True:
        try:
            say("said", next(generator))
        except StopIteration as stop:
            return stop.value
