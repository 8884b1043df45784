"""A step that counts items by key: the smallest operator with a state, for the tests of where that is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dstream.keys import canonical, stable_hash
from dstream.spi.epochs import EpochTime, ShardOutput, TaskPartials

__all__ = ["Counting", "Counts", "moment"]


def moment(epoch: int = 1, new: int = 0) -> EpochTime:
    """An epoch in which the watermark reaches `new`."""
    return EpochTime(epoch, 0.0, 0, new)


class Counts:
    """How often each key came; what came `until` some watermark is forgotten when it is reached.

    It counts its changes as well, so that one that is applied twice, or left out, is a failure.
    """

    def __init__(self) -> None:
        self.changes = 0
        self.counts: dict[Any, int] = {}
        self.until: dict[Any, int] = {}
        self._touched: dict[Any, Any] = {}

    def apply(self, partials: Sequence[tuple[int, Any]], moment: EpochTime) -> ShardOutput:
        for _, partial in partials:
            for key, (count, until) in partial.items():
                self.counts[key] = self.counts.get(key, 0) + count
                if until is not None:
                    self.until[key] = until
                self._touched[key] = (self.counts[key], self.until.get(key))
        gone = [key for key, until in self.until.items() if until <= moment.new]
        outputs = [(self.until.pop(key), (key, self.counts.pop(key))) for key in gone]
        self._touched.update(dict.fromkeys(gone))
        return ShardOutput(outputs)

    def delta(self) -> Any | None:
        touched, self._touched = self._touched, {}
        self.changes += bool(touched)
        return (self.changes, touched) if touched else None

    def dump(self) -> Any:
        return self.changes, {key: (count, self.until.get(key)) for key, count in self.counts.items()}

    def load(self, dumped: Any) -> None:
        changes, counts = dumped
        assert not self.counts
        self.changes = changes - 1
        self.patch((changes, counts))

    def patch(self, delta: Any) -> None:
        changes, touched = delta
        assert changes == self.changes + 1, "each change is applied once"
        self.changes = changes
        for key, value in touched.items():
            self.counts.pop(key, None)
            self.until.pop(key, None)
            if value is not None:
                self.counts[key] = value[0]
                if value[1] is not None:
                    self.until[key] = value[1]

    def deadline(self) -> int | None:
        return min(self.until.values(), default=None)

    def clock_deadline(self) -> float | None:
        return None

    def entries(self) -> Iterator[tuple[Any, Any]]:
        return iter(self.counts.items())

    def __len__(self) -> int:
        return len(self.counts)


class Counting:
    """Items are keys, or pairs of a key and when it is forgotten."""

    kind = "counting"
    inputs = 1

    def __init__(self, *signature: Any) -> None:
        self.signature = signature

    def partial(self, number: int, items: Iterator[Any], moment: EpochTime, shards: int) -> TaskPartials:
        found: dict[int, dict[Any, tuple[int, int | None]]] = {}
        came = list(items)
        for item in came:
            key, until = item if isinstance(item, tuple) else (item, None)
            counts = found.setdefault(stable_hash(canonical(key)) % shards, {})
            before, kept = counts.get(key, (0, None))
            counts[key] = (before + 1, kept if until is None else until)
        return TaskPartials(found, len(came), 0)

    def new(self) -> Counts:
        return Counts()
