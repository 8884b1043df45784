"""What the tests of the contract say often: put these entries, give the content, run the tasks of a job."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from dstream.spi.sink import WriteJob
from dstream.spi.store import ListStore, MapStore, Options, Storage


@dataclass(frozen=True)
class Tools:
    """Short forms of what the contract offers; they run in any process."""

    def map(self, storage: Storage, name: str = "m", **options: Any) -> MapStore:
        """Return the map of that name."""
        return storage.create("map", name, Options(**options))  # type: ignore[return-value]

    def list(self, storage: Storage, *items: Any, name: str = "l", **options: Any) -> ListStore:
        """Return the list of that name, `items` appended."""
        store: Any = storage.create("list", name, Options(**options))
        if items:
            store.extend(items)
        return store  # type: ignore[no-any-return]

    def put(self, store: MapStore, entries: dict[Any, Any]) -> list[Any]:
        """Put entries in one change, and return the old values."""
        return store.update(list(entries), lambda old: list(entries.values()))

    def content(self, store: MapStore) -> dict[Any, Any]:
        """Return all entries, read through splits that traveled."""
        pairs = [pair for split in store.splits(2) for pair in pickle.loads(pickle.dumps(split)).read()]
        assert len(dict(pairs)) == len(pairs), f"a key came twice: {pairs}"
        return dict(pairs)

    def items(self, store: ListStore) -> Sequence[Any]:
        """Return all items, read through splits that traveled."""
        return [item for split in store.splits(2) for item in pickle.loads(pickle.dumps(split)).read()]

    def tasks(self, job: WriteJob[Any], entries: dict[Any, Any]) -> list[Any]:
        """Write entries, each bucket in a task of its own, and return the receipts of all."""
        buckets: dict[int, dict[Any, Any]] = {}
        for key, value in entries.items():
            buckets.setdefault(job.writer.bucket_of(key), {})[key] = value
        return [receipt for part in sorted(buckets.items()) for receipt in self.bucket(job, *part)]

    def bucket(self, job: WriteJob[Any], bucket: int, entries: Any) -> list[Any]:
        """Write the entries of a bucket, a dict or an iterator of pairs; writer and receipts travel."""
        pairs = iter(entries.items() if isinstance(entries, dict) else entries)
        return _traveled(_traveled([job.writer])[0].write_bucket(bucket, pairs))

    def task(self, job: WriteJob[Any], items: Iterable[Any]) -> list[Any]:
        """Write items of a list in one task; writer and receipts travel."""
        return _traveled(_traveled([job.writer])[0].write(iter(items)))

    def run(self, store: MapStore, job: str | None, entries: dict[Any, Any], **arguments: Any) -> None:
        """Run a whole job that writes entries."""
        begun = store.begin(job, **arguments)
        if not begun.is_done:
            begun.commit(self.tasks(begun, entries))

    def together(self, *functions: Callable[[], object]) -> None:
        """Run functions at the same time, and raise what one of them raised."""
        errors: list[BaseException] = []

        def run(function: Callable[[], object]) -> None:
            try:
                function()
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=run, args=(function,)) for function in functions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]


def _traveled(values: Iterable[Any]) -> list[Any]:
    return [pickle.loads(pickle.dumps(value)) for value in values]


@pytest.fixture(scope="session")
def use() -> Tools:
    """The short forms."""
    return Tools()


@pytest.fixture
def numbers(storage: Storage, use: Tools) -> MapStore:
    """A map of three entries: a is 1, b is 2, c is 3."""
    store = use.map(storage, "numbers")
    use.put(store, {"a": 1, "b": 2, "c": 3})
    return store


@pytest.fixture(params=[False, True], ids=["plain", "journal"])
def store(request: pytest.FixtureRequest, storage: Storage, use: Tools) -> MapStore:
    """A map of three entries of any type, with and without a journal."""
    made = use.map(storage, journal=request.param)
    use.put(made, {"a": 1, "b": 2, "c": 3})
    return made


@pytest.fixture
def shared(backend: Any) -> None:
    """Leave out memory, which is of one process."""
    if not backend.shared:
        pytest.skip("memory is of one process")
