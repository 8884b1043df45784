"""PySpark's worker daemon, except that the CPU accounts of workers that ended are not lost.

PySpark (4.3) ignores SIGCHLD in its daemon, so the kernel forgets what a worker cost as soon as it
ends, and Spark ends workers that were idle for a minute: whole seconds went missing from a case.
Here such a worker stays behind as a zombie, whose accounts can be read. Nothing else changes, and
all contestants on Spark use this daemon.
"""

from __future__ import annotations

import signal
from typing import Any

from pyspark.daemon import manager

__all__: list[str] = []

_set_handler = signal.signal


def _keeping_the_ended(number: int, handler: Any) -> Any:
    return _set_handler(number, signal.SIG_DFL if number == signal.SIGCHLD else handler)


if __name__ == "__main__":
    signal.signal = _keeping_the_ended  # type: ignore[assignment]
    manager()
