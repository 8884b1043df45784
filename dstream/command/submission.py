"""`dstream submit`: a script in a supervised driver with a log and restarts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal

import click

from dstream.command.jobs import log_of, noted
from dstream.command.program import INTERRUPTED, SAYING, connected, engine_options, fail, name_option
from dstream.command.run import check_is_script, compiled
from dstream.errors import IllegalStateError
from dstream.jobs import Job
from dstream.session import Context

__all__ = ["submit"]


Restart = Literal["always", "on-failure"]
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_LONG_RUN = 60.0
"""Seconds after which a driver was well, so that the next pause is the first again."""


@click.command(context_settings={**SAYING, "ignore_unknown_options": True})
@engine_options
@name_option
@click.option(
    "--detach", is_flag=True, help="Return when the job can be found; the driver goes on when this terminal is closed."
)
@click.option(
    "--restart",
    type=click.Choice(["always", "on-failure"]),
    help="When the driver is started again beside when it is killed: when it fails, or whenever it ends.",
)
@click.option("--log", metavar="FILE", type=click.Path(path_type=Path), help="Where it writes what it says.")
@click.argument("script")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def submit(
    script: str,
    args: tuple[str, ...],
    engine: str | None,
    master: str | None,
    storage: str | None,
    name: str | None,
    detach: bool,
    restart: Restart | None,
    log: Path | None,
) -> None:
    """Run a script, again when its driver dies.

    SCRIPT runs as `dstream run SCRIPT ARGS` runs it. A job that it submits is called NAME, or as SCRIPT is, unless
    the script says otherwise; a driver that was started again goes on with it.

    Options may stand before or behind SCRIPT. It gets those that are none of these, and all that follows `--`.
    """
    check_is_script(script)
    compiled(script)
    called = name or Path(script).stem
    written = (log or log_of(called)).absolute()
    try:
        written.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        noted(called, written)
    except OSError as error:
        fail(f"the log {error.filename} cannot be written: {error.strerror}")
    options = [each for pair in _options(engine=engine, master=master, storage=storage) for each in pair]
    if detach:
        again = [*options, "--name", called, "--log", str(written), *(["--restart", restart] if restart else [])]
        _detach([sys.executable, "-m", "dstream", "submit", *again, "--", script, *args], called, written, storage)
        return
    environment = {**os.environ, "DSTREAM_JOB_NAME": called, "DSTREAM_JOB_LOG": str(written)}
    command = [sys.executable, "-m", "dstream", "run", *options, "--", script, *args]
    raise SystemExit(_Supervisor(command, environment, written, restart).run())


def _options(**options: str | None) -> list[tuple[str, str]]:
    return [(f"--{name}", value) for name, value in options.items() if value is not None]


def _detach(command: Sequence[str], called: str, log: Path, storage: str | None) -> None:
    """Start a process that does not end with this terminal, and wait until its job can be found."""
    with connected("local", storage=storage) as context:
        # An earlier driver may have written into the same log.
        known = {job.driver.token for job in _jobs_of(log, context)}
        null: Any = subprocess.DEVNULL
        # It is to outlive this process.
        started = subprocess.Popen(command, stdin=null, stdout=null, stderr=null, start_new_session=True)
        click.echo(f"submitted {called!r} as process {started.pid}; it writes into {log}")
        until = time.monotonic() + _PATIENCE
        while all(job.driver.token in known for job in _jobs_of(log, context)):
            if (code := started.poll()) is not None:
                if code:
                    fail(f"the script ended with code {code} before it submitted a job; {log} has what it said")
                return
            if time.monotonic() > until:
                click.echo(f"no job of it is in {context.running_storage().url} after {_PATIENCE:.0f} s", err=True)
                return
            time.sleep(_BETWEEN_LOOKS)


_PATIENCE, _BETWEEN_LOOKS = 60.0, 0.2
"""Seconds: Spark may start before the script submits its job, or it may submit none, or into another storage."""


def _jobs_of(log: Path, context: Context) -> Iterator[Job]:
    """Yield the jobs whose drivers write into a log; one whose record is damaged is none of them."""
    for job in context.jobs():
        with suppress(IllegalStateError):
            if job.driver.log == str(log):
                yield job


class _Supervisor:
    """Supervisor of a driver, which starts it again as long as it has to.

    The driver writes into the log itself, so that it continues if this process is killed.
    """

    def __init__(self, command: Sequence[str], environment: dict[str, str], log: Path, restart: Restart | None) -> None:
        self._command = command
        self._environment = environment
        self._log = log
        self._restart = restart
        self._is_asked_to_end = threading.Event()
        self._driver: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        """Return the exit code of the last driver."""
        with _appending(self._log) as log, _Follower(self._log, log.tell()):
            signal.signal(signal.SIGTERM, self._end)
            signal.signal(signal.SIGINT, self._interrupted)
            pause = _FIRST_PAUSE
            while True:
                began = time.monotonic()
                code = self._run_once(log)
                if self._is_asked_to_end.is_set() or not self._is_wanted_again(code):
                    # A shell reports a process that a signal has ended by the same code.
                    return code if code >= 0 else 128 - code
                pause = _FIRST_PAUSE if time.monotonic() - began > _LONG_RUN else pause
                log.write(f"dstream submit: the driver {_how(code)}; started again in {pause:.0f} s\n".encode())
                if self._is_asked_to_end.wait(pause):
                    return code if code >= 0 else 128 - code
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _run_once(self, log: BinaryIO) -> int:
        with subprocess.Popen(self._command, env=self._environment, stdout=log, stderr=log) as self._driver:
            if self._is_asked_to_end.is_set():  # while it was started
                self._driver.terminate()
            return self._driver.wait()

    def _is_wanted_again(self, code: int) -> bool:
        has_failed = code not in {0, INTERRUPTED}  # A job that was cancelled is not wanted any more.
        return self._restart == "always" or code < 0 or (self._restart == "on-failure" and has_failed)

    def _interrupted(self, number: int, frame: object) -> None:
        """End as the driver does: Ctrl-C at a terminal reaches both; a second signal would interrupt its end."""
        if _is_at_a_terminal():
            self._is_asked_to_end.set()
        else:
            self._end(number, frame)

    def _end(self, number: int, frame: object) -> None:
        """End the driver, and then this process."""
        self._is_asked_to_end.set()
        if self._driver is not None and self._driver.poll() is None:
            self._driver.send_signal(number)


def _is_at_a_terminal() -> bool:
    """Return whether the keys of a terminal, Ctrl-C too, reach the group of this process."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:  # it has none
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:  # it was closed
        return False
    finally:
        os.close(terminal)


def _how(code: int) -> str:
    return f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"


def _appending(path: Path) -> BinaryIO:
    """Open the log, which only this user may read: the output of a script may be secret."""
    try:
        # Unbuffered, since the driver writes into the same file.
        return open(path, "ab", buffering=0, opener=lambda name, flags: os.open(name, flags, 0o600))
    except OSError as error:
        fail(f"the log {path} cannot be written: {error.strerror}")


class _Follower:
    """Follower of a file, which shows lines as they are written."""

    def __init__(self, path: Path, start: int) -> None:
        self._file = path.open("rb")
        self._file.seek(start)
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def _follow(self) -> None:
        while not self._has_ended.wait(0.05):
            self._copy()

    def _copy(self) -> None:
        data = self._file.read()
        if data:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *exc_info: object) -> None:
        self._has_ended.set()
        self._thread.join()
        self._copy()  # The driver may have written since the last look.
        self._file.close()
