"""Drivers of jobs without an end that are killed."""

from __future__ import annotations

import signal

from dstream.jobs import JobStatus
from tests.jobs.unbounded.killed_endless import MOST, submitted

COUNTING = "from tests.jobs.unbounded.counting_words import main; main()"
DRIVER = "from tests.jobs.unbounded.killed_endless import main; main()"


def test_a_killed_driver_loses_and_doubles_nothing(start, connect, place):
    """Submitted again under its name, the job goes on behind its last epoch, with its state."""
    driver = start(DRIVER, place)
    driver.says("five")
    driver.signal(signal.SIGKILL)
    driver.ended()
    ctx = connect()
    lost = ctx.job("sums")
    assert (lost.status, lost.is_lost) == (JobStatus.NOT_RUNNING, True)
    job = submitted(ctx)
    job.join(240)
    evens, odds = ([(end, sum(range(end - first, end, 2))) for end in range(10, MOST + 1, 10)] for first in (10, 9))

    assert (job.id, sorted(ctx.get_list("sums"))) == (lost.id, sorted(evens + odds))


def test_counts_by_text_go_on_under_another_hash_seed(start, place):
    """The state of a key is found by any process, however Python seeds its hashes there."""
    words = "a b c d e f g h a b c d e f g h"
    for seed, count in ("1", 8), ("2", 16):
        driver = start(COUNTING, place, " ".join(words.split()[:count]), PYTHONHASHSEED=seed)
        driver.says(repr(sorted((key, times) for times in range(1, count // 8 + 1) for key in "abcdefgh")))
        driver.says("counted")
        driver.signal(signal.SIGKILL)
        driver.ended()
