"""What a whole process tree costs: CPU seconds and peak memory of the driver, the JVM and the workers.

CPU is read from the kernel's accounts before and after a piece of work, and the difference counts.
The account of the tree is, summed over all living processes of it,

    user + system + children's user + children's system

where the last two are what *ended and awaited* children left to their parent. A worker that ends
between the two readings moves its whole life from "living" to "its parent's children", so the sum
neither loses nor doubles it. PySpark's daemon does not await its workers, which would lose them;
`worker_daemon` keeps them as zombies. Two limits: the kernel counts other processes in ticks of 10 ms, so a short
job on them is repeated inside one measurement; and a process that leaves the tree (adopted by init while it
lives) is lost, which neither Spark nor Dask does.

`check_accounts` burns a known amount of CPU in this process, in a child that lives on and in a child
that ends, and `check_worker_accounts` in a worker of Spark that is killed. Both compare with
`resource.getrusage`.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psutil

import dstream as ds

__all__ = ["Memory", "check_accounts", "check_worker_accounts", "cpu_seconds", "sampled_memory", "settle"]

_SAMPLE_EVERY = 0.05
_IDLE_SHARE = 0.05
_LONGEST_SETTLING = 3.0


def cpu_seconds(*, with_jvm: bool = True) -> float:
    """Return the CPU seconds of this process and all below it since they began.

    Args:
        with_jvm: False leaves out the JVM and what it started, for work that does not use it.
    """
    return sum(map(_cpu_of, _tree(with_jvm)))


def _cpu_of(process: psutil.Process) -> float:
    if process.pid == os.getpid():
        # Not in ticks of 10 ms, since the work of this process may be shorter.
        return _own_cpu() + _seconds_of(resource.RUSAGE_CHILDREN)
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)


def _tree(with_jvm: bool) -> list[psutil.Process]:
    """Return the processes from this one down; a zombie that nobody awaited yet is among them."""
    this = psutil.Process()
    processes = [this, *this.children(recursive=True)]
    if with_jvm:
        return processes
    left_out = {below.pid for process in processes if _is_jvm(process) for below in _with_all_below(process)}
    return [process for process in processes if process.pid not in left_out]


def _is_jvm(process: psutil.Process) -> bool:
    try:
        return bool(process.name() == "java")
    except psutil.NoSuchProcess:
        return False


def _with_all_below(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


@dataclass
class Memory:
    """The most memory that a tree occupied, in bytes; pages that processes share count once."""

    peak: int = 0
    _ended: threading.Event = field(default_factory=threading.Event, repr=False)

    def watch(self, with_jvm: bool) -> None:
        """Sample until told to end."""
        while True:
            self.peak = max(self.peak, sum(map(_proportional_memory, _tree(with_jvm))))
            if self._ended.wait(_SAMPLE_EVERY):
                return


def _proportional_memory(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0


@contextmanager
def sampled_memory(*, with_jvm: bool = True) -> Iterator[Memory]:
    """Watch the memory of the tree meanwhile. Sampling costs CPU: never do it while CPU is measured."""
    memory = Memory()
    thread = threading.Thread(target=memory.watch, args=(with_jvm,), daemon=True)
    thread.start()
    try:
        yield memory
    finally:
        memory._ended.set()
        thread.join()


def settle() -> None:
    """Wait until the tree is idle, so that no work pays for what the work before it left behind."""
    until = time.monotonic() + _LONGEST_SETTLING
    while time.monotonic() < until:
        before = cpu_seconds()
        time.sleep(0.2)
        if cpu_seconds() - before <= _IDLE_SHARE * 0.2 + 0.01:
            return


def check_accounts(seconds: float = 0.5) -> tuple[float, float]:
    """Burn `seconds` here, in a child that lives on, and in one that ends; return (measured, true) CPU seconds.

    The truth is what each process says of itself with `resource.getrusage`.
    """
    spawning = multiprocessing.get_context("spawn")
    with spawning.Pool(1) as living:
        living.apply(_burn, (0.0,))
        own_before, before = _own_cpu(), cpu_seconds(with_jvm=False)
        true = living.apply(_burn, (seconds,)) + _burn(seconds)
        pipe, other_end = spawning.Pipe()
        ending = spawning.Process(target=_burn_and_tell, args=(seconds, other_end))
        ending.start()
        true += pipe.recv()
        ending.join()
        measured = cpu_seconds(with_jvm=False) - before
        # Between the readings this process also worked outside of its burn: starting, pickling, reading accounts.
        return measured, true + _own_cpu() - own_before - seconds


def check_worker_accounts(ctx: ds.Context, seconds: float = 0.5) -> tuple[float, float]:
    """Burn `seconds` in a worker of Spark and kill it; return the least that must be, and what was measured.

    Spark does not notice, and the next job on that worker fails: let this be the last one of `ctx`.
    """
    before = cpu_seconds()
    worker, burnt = ctx.stream([seconds], 1).map(lambda wanted: (os.getpid(), _burn(wanted))).to_list()[0]
    os.kill(worker, signal.SIGKILL)
    time.sleep(0.5)
    return burnt, cpu_seconds() - before


def _burn(seconds: float) -> float:
    before = _own_cpu()
    while _own_cpu() - before < seconds:
        sum(range(1000))
    return _own_cpu() - before


def _burn_and_tell(seconds: float, pipe: Any) -> None:
    _burn(seconds)
    pipe.send(_own_cpu())


def _own_cpu() -> float:
    return _seconds_of(resource.RUSAGE_SELF)


def _seconds_of(whose: int) -> float:
    usage = resource.getrusage(whose)
    return usage.ru_utime + usage.ru_stime
