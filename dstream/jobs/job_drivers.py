"""`Driver`: the process that runs a job, and whether it is still there."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import socket
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Driver", "driver_here", "forget_driver", "is_gone"]


@dataclass(frozen=True, slots=True)
class Driver:
    """Who runs a job.

    Attributes:
        token: of this driver of this job alone.
        host: the name of the machine.
        machine: tells processes with one number apart: it is that of the running system, inside one container.
        process: the number of the process.
        started: when the process began, in the system's own words; empty where it says nothing.
        log: the file that it writes what it says into; None if it has none.
    """

    token: str
    host: str
    machine: str
    process: int
    started: str
    log: str | None = None


_living: set[str] = set()
"""The tokens of drivers in this process."""


def driver_here() -> Driver:
    """Return a new driver in this process; it is there until it is forgotten."""
    process = os.getpid()
    log = os.environ.get("DSTREAM_JOB_LOG") or None
    driver = Driver(uuid.uuid4().hex, socket.gethostname(), _machine(), process, _started(process), log)
    _living.add(driver.token)
    return driver


def forget_driver(driver: Driver) -> None:
    """Say that a driver of this process has ended."""
    _living.discard(driver.token)


def is_gone(driver: Driver) -> bool | None:
    """Say whether a driver has ended; None if that cannot be seen from here."""
    if driver.machine != _machine() or driver.host != socket.gethostname():
        return None
    if driver.process == os.getpid() and driver.started == _started(os.getpid()):
        return driver.token not in _living
    return not _is_running(driver.process) or _started(driver.process) != driver.started


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # Somebody else's.
        return True
    return True


def _started(process: int) -> str:
    """Return when a process began; a zombie has ended."""
    with suppress(OSError, IndexError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[_START]
    return ""


_START = 19
"""The place of the start among the fields that follow the name of the program, in proc(5)."""


@functools.cache
def _machine() -> str:
    """Return what processes have in common that see each other's numbers."""
    known = [platform.node()]
    with suppress(OSError):
        known.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        known.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]
