"""Whatever happens between epochs, the state is what a dict would be."""

from __future__ import annotations

import random

import pytest

from dstream.jobs.records import packed, unpacked
from dstream.operators.state.index_format import (
    changes_from_plain,
    changes_to_plain,
    files_of,
    index_from_plain,
    index_to_plain,
    orphans,
    removable,
)
from dstream.spi.records import StateFiles
from dstream.storage import Settings, open_storage
from tests.state.counting import Counting
from tests.state.epochs import JOB, Epochs


class RandomRun:
    """Epochs of random items, tasks and mishaps, and a dict of what was committed."""

    def __init__(self, seed: int, files: StateFiles) -> None:
        self.random = random.Random(seed)
        self.epochs = Epochs(files, Counting(), shards=self.random.choice([1, 5, 16]))
        self.keys = self.random.choice([3, 40, 400])
        self.expected: dict[int, int] = {}

    def step(self) -> None:
        self.epochs.move_to(self.random.choice(["first", "second", "third"]))
        mishap = self.random.random()
        if mishap < 0.05:
            self.epochs.forget()
        elif mishap < 0.15:
            self.tasks(self.items())
        elif mishap < 0.2:
            self.epochs.index = index_from_plain(unpacked(packed(index_to_plain(self.epochs.index))))
        elif mishap < 0.25:
            self.fold()
        else:
            self.epoch()

    def items(self) -> list[int]:
        return [self.random.randrange(self.keys) for _ in range(self.random.choice([0, 1, 3, 50]))]

    def tasks(self, items: list[int]) -> list[object]:
        """Run each task once or twice; one of its attempts counts."""
        targets = self.random.randint(1, 8)
        changes = []
        for target in range(targets):
            attempts = [self.epochs.task(items, 0, target, targets) for _ in range(self.random.choice([1, 1, 2]))]
            changes += self.random.choice(attempts)
        return changes

    def epoch(self) -> None:
        items = self.items()
        changes = self.tasks(items)
        self.epochs.commit(changes_from_plain(unpacked(packed(changes_to_plain(changes)))))
        for item in items:
            self.expected[item] = self.expected.get(item, 0) + 1

    def fold(self) -> None:
        index, files = self.epochs.index, self.epochs.files
        gone = removable(map(files_of, self.epochs.records), [index.files()])
        self.epochs.records.clear()
        for name in {*gone, *orphans(files, [index], [], older_than=float("inf"))}:
            files.remove(name)
        assert {file.name for file in files.found()} == index.files()


@pytest.mark.parametrize("seed", range(0, 200, 20))
def test_random_runs_leave_what_a_dict_holds(seed):
    """Epochs that are not committed, tasks that run twice, 1 to 8 tasks, three processes that forget, folds."""
    for each in range(seed, seed + 20):
        run = RandomRun(each, open_storage("memory:", Settings()).state_files(JOB))
        for _ in range(50):
            run.step()

        assert run.epochs.counts() == run.expected, f"seed {each}"


def test_random_runs_leave_what_a_dict_holds_in_a_folder(lake):
    """The same, with parts that have been put together many times, in files."""
    run = RandomRun(1, lake)

    for _ in range(400):
        run.step()
    assert run.epochs.counts() == run.expected
    assert max(len(shard.parts) for shard in run.epochs.index.shards) <= 60
