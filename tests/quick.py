"""The plug-in of `make quick`: skips what starts a program, as Spark is one, and leaves out what took long before.

So a test belongs to `make quick` by itself: there is no list to keep. What took long is remembered in the cache of
pytest, in the environment, until the file of the test changes.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator, Iterable
from typing import Any

import pytest

LONG = 0.15
"""Seconds of CPU in this process. One test in thirty takes more, and all of those take two thirds of the CPU."""
_LIGHT = ("redis-server", "sh")
"""Programs that start within milliseconds."""
_CACHE = "quick/long"
_PROPERTY = "quick"


def pytest_configure(config: pytest.Config) -> None:
    """Watch what is run."""
    config.pluginmanager.register(LongTests(config), "quick-long-tests")


def pytest_collection_finish() -> None:
    """Watch from here on: pytest itself has started what it needs."""
    sys.addaudithook(_skip_programs)


def _skip_programs(event: str, arguments: Iterable[Any]) -> None:
    """Skip the test that starts a program, or whose fixture does; code under test does not catch that."""
    if event == "subprocess.Popen":
        program = os.path.basename(os.fsdecode(next(iter(arguments))))
        if program not in _LIGHT:
            pytest.skip(f"starts {program}: make test runs it")


class LongTests:
    """Measures tests in the processes that run them, and remembers the long ones in the process that reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._cache = getattr(config, "cache", None)
        self._is_worker = hasattr(config, "workerinput")
        self._long: dict[str, int] = {} if self._cache is None else self._cache.get(_CACHE, {})

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what took long, unless its file has changed since."""
        left = [item for item in items if self._long.get(item.nodeid) == _changed_at(item)]
        items[:] = [item for item in items if self._long.get(item.nodeid) != _changed_at(item)]
        config.hook.pytest_deselected(items=left)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Measure a test; its report takes that along, also from another process."""
        began = time.process_time()
        try:
            yield
        finally:
            item.user_properties.append((_PROPERTY, (time.process_time() - began, _changed_at(item))))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note whether a test took long."""
        for seconds, changed_at in [value for name, value in report.user_properties if name == _PROPERTY]:
            if seconds > LONG and report.when == "call":
                self._long[report.nodeid] = changed_at

    def pytest_sessionfinish(self) -> None:
        """Remember the tests that took long."""
        if self._cache is not None and not self._is_worker:
            self._cache.set(_CACHE, self._long)


_stat = os.stat  # As it is before a test lets it fail.


def _changed_at(item: pytest.Item) -> int:
    return _stat(item.path).st_mtime_ns
