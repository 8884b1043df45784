"""Steps over epochs on both engines: what goes on, what the state keeps, and what tasks say about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.engine.epochs import Epoch, Folder, Lag, run, together

FIRST = [(1, "a", 1), (2, "b", 10), (5, "c", 100)]
SECOND = [(2, "a", 2), (7, "b", 20)]


def test_over_epochs_gives_what_the_watermark_passes(engine: Any, tmp_path: Path) -> None:
    """The watermark is the least of the partitions that were read: 5 here, behind "a" alone."""
    epoch = Epoch()
    events = together(epoch.stamped(FIRST, "0"), epoch.stamped(SECOND, "1"))

    assert run(epoch.over(events, state=Folder(str(tmp_path))), engine.context) == [(2, ("a", 3))]


def test_over_epochs_goes_on_from_the_state(engine: Any, tmp_path: Path) -> None:
    """What the watermark did not pass is there in the next epoch, also in which nothing comes for its shard."""
    first, state = Epoch(), Folder(str(tmp_path))
    run(first.over(first.stamped(FIRST), state=state), engine.context)
    second = Epoch(2, old=5, standing=9)
    again = second.over(second.stamped([(9, "a", 1)]), state=state.after(first.steps))

    assert run(again, engine.context) == [(5, ("c", 100))]
    assert [receipt.watermark for receipt in second.steps] == [9]
