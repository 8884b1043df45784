"""The plug-in of `make quick`: skips what starts a program, as Spark is one, and leaves out the tests of `slow.txt`.

A new test belongs to `make quick` by itself. `make quick ARGS=--renew` leaves nothing out, measures each test, and
writes the list anew; each other run ends with the slow tests that the list lacks.
"""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

LONG = 0.1
"""Seconds of CPU in this process, on average over the cases of a test."""
LIST = Path(__file__).with_name("slow.txt")
_LIGHT = ("redis-server", "sh")
"""Programs that start within milliseconds."""
_PROPERTY = "quick"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer both uses of the list; without them, what starts no program runs."""
    parser.addoption("--fast", action="store_true", help=f"leave out the tests of {LIST.name}")
    parser.addoption("--renew", action="store_true", help=f"leave nothing out, and write {LIST.name}")


def pytest_configure(config: pytest.Config) -> None:
    """Watch what is run."""
    config.pluginmanager.register(SlowTests(config), "quick-slow-tests")


def pytest_collection_finish() -> None:
    """Watch from here on: pytest itself has started what it needs."""
    sys.addaudithook(_skip_programs)


def _skip_programs(event: str, arguments: Iterable[Any]) -> None:
    """Skip the test that starts a program, or whose fixture does; code under test does not catch that."""
    if event == "subprocess.Popen":
        program = os.path.basename(os.fsdecode(next(iter(arguments))))
        if program not in _LIGHT:
            pytest.skip(f"starts {program}: make test runs it")


def listed(path: Path = LIST) -> frozenset[str]:
    """Return the tests of the list, without their parameters."""
    return frozenset(path.read_text("utf-8").splitlines())


def test_of(nodeid: str) -> str:
    """Return the test of a case: a test is slow with all of its cases, also those that are new."""
    return nodeid.partition("[")[0]


class SlowTests:
    """Measures tests in the processes that run them, and compares with the list in the process that reports."""

    def __init__(self, config: pytest.Config, path: Path = LIST) -> None:
        self._path, self._listed = path, listed(path)
        self._is_renewing, self._is_worker = config.getoption("--renew"), hasattr(config, "workerinput")
        self._is_leaving_out = config.getoption("--fast") and not self._is_renewing
        self._seconds: dict[str, list[float]] = defaultdict(list)

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out the tests of the list."""
        if self._is_leaving_out:
            left = [item for item in items if test_of(item.nodeid) in self._listed]
            items[:] = [item for item in items if test_of(item.nodeid) not in self._listed]
            config.hook.pytest_deselected(items=left)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Measure a test; its report takes that along, also from another process."""
        began = time.process_time()
        try:
            yield
        finally:
            item.user_properties.append((_PROPERTY, time.process_time() - began))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how long a case took."""
        if report.when == "call":
            seconds = [value for name, value in report.user_properties if name == _PROPERTY]
            self._seconds[test_of(report.nodeid)] += seconds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Report the tests that the list lacks, without those that other work on the machine may have made slow."""
        for test in sorted(self._slow(4 * LONG) - self._listed) if not self._is_renewing else ():
            terminalreporter.write_line(f"slow, and not in tests/{self._path.name}: {test}")

    def pytest_sessionfinish(self) -> None:
        """Write the list, if that is wanted; tests that did not run stay on it."""
        if self._is_renewing and not self._is_worker:
            tests = sorted(self._slow(LONG) | (self._listed - self._seconds.keys()))
            self._path.write_text("".join(f"{test}\n" for test in tests), "utf-8")

    def _slow(self, limit: float) -> set[str]:
        return {test for test, seconds in self._seconds.items() if seconds and fmean(seconds) > limit}
