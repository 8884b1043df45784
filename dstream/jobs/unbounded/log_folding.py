"""`Folding`: removes the records and the state that nobody starts from any more, a little in each epoch."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from dstream.jobs.unbounded.epoch_log import CHECKPOINT_EVERY, EpochLog
from dstream.jobs.unbounded.log_record import LogRecord
from dstream.spi.state_files import StateFiles
from dstream.state.plain_index import changes_from_plain, index_from_plain
from dstream.state.removable_files import files_of, removable

__all__ = ["Folding", "files_named_by"]


class Folding:
    """Keeps the records of some time, from a checkpoint on.

    What has to go is found when a checkpoint is written, so most epochs cost nothing.

    Args:
        log: of the job.
        files: where its state is; None if it has none.
        keep: for how many seconds records are kept.
    """

    def __init__(self, log: EpochLog, files: StateFiles | None, keep: float) -> None:
        self._log = log
        self._files = files
        self._keep = keep
        self._checkpoints: deque[LogRecord] = deque()
        self._left: list[int] = []
        self._is_known = False

    def after(self, record: LogRecord) -> int:
        """Look at a record that was published; remove what its checkpoint makes useless, and return how many records.

        Raises:
            EngineError: the storage fails. Nothing is lost then: the next fold finds the same.
        """
        if record.index is None:
            return 0
        self._find_checkpoints()
        self._checkpoints.append(record)
        removed = 0
        while len(self._checkpoints) > 1 and self._checkpoints[1].now < record.now - self._keep:
            removed += self._removed(self._checkpoints[0].number, self._checkpoints[1])
            self._checkpoints.popleft()
        return removed

    def _find_checkpoints(self) -> None:
        """Find those of drivers before this one, once, and what they have left that died while they removed records."""
        if not self._is_known:
            self._left = self._log.numbers_before_floor()
            numbers = [number for number in self._log.numbers() if number % CHECKPOINT_EVERY == 0]
            found = (self._log.read(number) for number in numbers)
            self._checkpoints.extend([each for each in found if each is not None and each.index is not None])
            self._is_known = True

    def _removed(self, first: int, then: LogRecord) -> int:
        """Remove the records from `first` up to, not including, the checkpoint `then`, and what only they name.

        Also those that a driver before has left.
        """
        self._log.raise_floor(then.number)
        numbers = (*self._left, *range(first, then.number))
        dropped = [each for each in map(self._log.read, numbers) if each is not None]
        if self._files is not None:
            kept = [files_named_by(each) for each in self._log.since(then.number)]
            for name in removable(map(files_named_by, dropped), kept):
                self._files.remove(name)
        for each in dropped:
            self._log.remove(each.number)
        self._left = []
        return len(dropped)


def files_named_by(record: LogRecord) -> set[str]:
    """Return the files of state that a record names."""
    changes: Iterable[set[str]] = (files_of(changes_from_plain(each)) for each in record.changes.values())
    indexes = (index_from_plain(each).files() for each in (record.index or {}).values())
    return set().union(*changes, *indexes)
