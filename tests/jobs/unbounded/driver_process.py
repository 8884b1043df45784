"""`DriverProcess`: a driver of the job of `killed_windows` in a session of its own, killed with all it started."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tests.jobs.unbounded.killed_windows import TAKEN_OVER, Terms
from tests.servers.kafka_broker import dies_with_its_parent

__all__ = ["DriverProcess", "any_runs"]

_ROOT = Path(__file__).parents[3]
_LONGEST = 600.0
_LAST = 4000
_QUICK = {**os.environ, "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""Java starts fast so, and little of it runs long enough to be worth compiling well."""


class DriverProcess:
    """A driver that runs."""

    def __init__(self, terms: Terms) -> None:
        command = [sys.executable, "-m", "tests.jobs.unbounded.killed_windows", terms.to_json()]
        self._log = Path(terms.folder, "log")
        with self._log.open("a") as file:
            pipe: Any = subprocess.PIPE
            self._process = subprocess.Popen(
                command,
                cwd=_ROOT,
                env=_QUICK,
                stdout=pipe,
                stderr=file,
                text=True,
                start_new_session=True,
                preexec_fn=dies_with_its_parent,
            )

    def runs(self, within: float = _LONGEST) -> bool:
        """Wait until it has published an epoch; False if it ended before, or does not come to it in time."""
        return any_runs([self], within) and self.output.readline().strip() == "running"

    def lives(self) -> bool:
        """Say whether it has not ended."""
        return self._process.poll() is None

    def told(self) -> str:
        """Return where its threads are, and what else it has told last."""
        self.send(signal.SIGUSR1)
        time.sleep(1)
        return self._log.read_text()[-_LAST:]

    def send(self, number: int) -> None:
        """Send it a signal, if it is there."""
        self._process.send_signal(number)

    def is_stopped(self) -> bool:
        """Wait until it is stopped, or has ended, and say which."""
        while self._process.poll() is None:
            if psutil.Process(self._process.pid).status() == psutil.STATUS_STOPPED:
                return True
            time.sleep(0.01)
        return False

    def ended(self) -> int:
        """Wait for its end, and return its exit code.

        Raises:
            RuntimeError: it failed, or does not end.
        """
        try:
            code = self._process.wait(_LONGEST)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"a driver does not end\n{self.told()}") from None
        if code not in (0, TAKEN_OVER, -signal.SIGKILL):
            raise RuntimeError(f"a driver failed with {code}\n{self._log.read_text()[-_LAST:]}")
        return code

    def started(self, program: str) -> list[psutil.Process]:
        """Return the processes that it has started in whose command line a text stands, oldest first."""
        return [each for each in self._session() if program in " ".join(each.cmdline())]

    def close(self) -> None:
        """Kill it and what it has started."""
        for each in self._session():
            with suppress(psutil.NoSuchProcess):
                each.kill()
        self._process.wait()
        self.output.close()

    @property
    def output(self) -> Any:
        """What it says on its standard output."""
        return self._process.stdout

    def _session(self) -> list[psutil.Process]:
        found = []
        for each in psutil.process_iter():
            with suppress(ProcessLookupError, psutil.Error):
                if os.getsid(each.pid) == self._process.pid and each.status() != psutil.STATUS_ZOMBIE:
                    found.append(each)
        return sorted(found, key=lambda each: each.create_time())


def any_runs(drivers: Sequence[DriverProcess], within: float = _LONGEST) -> bool:
    """Wait until one of some drivers has published an epoch, or has ended; False if none does in time."""
    told, _, _ = select.select([each.output for each in drivers], [], [], within)
    return bool(told)
