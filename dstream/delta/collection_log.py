"""`CollectionLog`: the commits of one table and their accumulated state, and the additions of each commit.

A commit is a file `_delta_log/<version>.json`. The process that creates the file of the next version has committed, and
has read all commits before it; no other process can create it. No other coordination is needed. `delta-rs` would be 10
to 80 times slower, and slower with every commit.
"""

from __future__ import annotations

import threading
import time
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from dstream.base.threads import contextmanager, renewed_after_fork
from dstream.base.validation import NOT_UNDERSTOOD, checked_number, checked_text
from dstream.delta.actions import (
    LOG,
    Actions,
    DataFile,
    check_protocol,
    checked_path,
    checkpoint_path,
    condemned_in,
    data_file,
    entry_path,
    entry_version,
    packed,
    read_entry,
    version_in,
)
from dstream.delta.checkpoints import newest_checkpoint, pointed_checkpoint, read_checkpoint
from dstream.errors import CollectionDestroyedError, DStreamError, IllegalStateError, UnsupportedError
from dstream.filesystem.folders import StorageFolder
from dstream.filesystem.local import turn
from dstream.spi.store import MOST_BUCKETS

__all__ = ["DESTROYED", "Addition", "CollectionLog", "additions"]


DESTROYED = "dstream.destroyed"
"""The transaction that ends a collection."""
_LOOK_EVERY = 1.0
"""Seconds between checks for a gap by a handle that only reads. A commit checks each time."""
_LISTED_AFTER = 2.0
"""Seconds after which a due check lists the log. The sum of both is less than the age of truncated commits."""


class CollectionLog:
    """The state of a collection, as read by this process. All access requires `lock`.

    Attributes:
        title: the name of the collection in errors, such as `map 'counts'`.
        version: the newest commit that was read; -1 before the first.
        groups: the live files of each bucket, oldest first. Tuples are replaced, never changed.
        metadata: the newest description of the collection in a commit; None before.
        all_sealed: each entry of this library has a checksum.
    """

    def __init__(
        self,
        folder: StorageFolder,
        title: str,
        partitions: tuple[str, ...],
        buckets: int = MOST_BUCKETS,
        all_sealed: bool = False,
    ) -> None:
        self.folder = folder
        self.title = title
        self.all_sealed = all_sealed
        self._partitions = partitions
        self._buckets = buckets
        self.renew()
        renewed_after_fork(self)

    def renew(self) -> None:
        """Reset the state in a forked process, where the lock and its data may be in use by a lost thread."""
        self.lock = threading.RLock()
        self._reset()

    def _reset(self) -> None:
        """Clear the state, so that the next refresh reads everything."""
        self.version = -1
        self.groups: dict[int, tuple[DataFile, ...]] = {}
        self.metadata: Mapping[str, Any] | None = None
        self._changed: dict[int, int] = {}
        self._summed_up = -1
        self._files: dict[str, DataFile] = {}
        self._transactions: dict[str, int] = {}
        self._next = entry_path(0)
        self._opened = False
        self._look_again = 0.0
        self._vacuums: list[int] = []
        self._created: tuple[bytes | None, int] = (None, -1)

    def refresh(self) -> None:
        """Read the commits of other processes.

        Raises:
            CollectionDestroyedError: the collection was destroyed.
            IllegalStateError: an entry is damaged, or missing.
        """
        if not self._opened:
            with self._whole_or_reset():
                self._open()
        if self.folder.exists(self._next):
            self._read_on()
        if time.monotonic() >= self._look_again:
            self._check_end()
        if DESTROYED in self._transactions:
            raise CollectionDestroyedError(f"{self.title} was destroyed; get it by name again for a new one")

    def _read_on(self) -> None:
        while self.folder.exists(self._next):
            with self._whole_or_reset():
                self._read_next()

    def _check_end(self) -> None:
        """Check whether a missing next entry is the end of the log, or a gap.

        A commit that is known from another source was made before that was known. So its entry exists, and those
        before.
        """
        last = self._last_version()
        if last < 0 and time.monotonic() >= self._look_again + _LISTED_AFTER:
            # An object store does not record it. A handle that opens a log lists it, and so does a handle after a long
            # time: the pointer may be outdated. Other checks only read the pointer, since no younger commit is
            # truncated.
            last = self._last_listed()
        else:
            # What was created last may be recorded late as well, and is an old commit then.
            last = max(last, self._last_summed_up())
        if last > self.version:
            self._read_on()
        if last > self.version and newest_checkpoint(self.folder) > self.version:
            # The commits in between were cut, since this handle has not looked for long, or the pointer is an old one.
            behind = self.version
            with self._whole_or_reset():
                self._reset()
                self._open(behind)
            self._read_on()
        if last > self.version:
            raise self._gap(self.version + 1, last)
        self._look_again = time.monotonic() + _LOOK_EVERY

    def _last_summed_up(self) -> int:
        """Return the commit of the checkpoint that the pointer names, if it is newer and exists; otherwise -1."""
        pointed = pointed_checkpoint(self.folder)
        return pointed if pointed > self.version and self.folder.exists(checkpoint_path(pointed)) else -1

    def _last_listed(self) -> int:
        """Return the last commit after the newest one that was read, -1 if there is none."""
        behind = self.folder.found(LOG, after=self._next)
        return max((entry_version(file.path) or -1 for file in behind), default=-1)

    def _last_version(self) -> int:
        """Return a commit that is certain to exist, by a file next to the entries; -1 if there is none.

        It is the newest commit, or one of several concurrent commits.
        """
        data = self.folder.last_created(LOG)
        if data != self._created[0]:
            self._created = data, version_in(self.folder, data)
        return self._created[1]

    def _gap(self, version: int, last: int) -> IllegalStateError:
        if version <= newest_checkpoint(self.folder):
            return IllegalStateError(
                f"{self.title} no longer reaches back to commit {version}: {self.folder.url}/{entry_path(version)} is "
                "missing. A job that writes into it keeps commits for JobConfig(keep=) seconds: read it more often, or "
                "let the job keep them for longer. If there is no such job, restore the file from a backup"
            )
        return IllegalStateError(
            f"{self.title} is damaged: the log entry {self.folder.url}/{entry_path(version)} is missing, and commit "
            f"{last} was made; restore the file from a backup"
        )

    def is_destroyed(self) -> bool:
        """Return whether the collection was destroyed."""
        try:
            self.refresh()
        except CollectionDestroyedError:
            return True
        return False

    def commit(self, prepare: Callable[[], Actions | None]) -> bool:
        """Commit the result of `prepare` for the newest state; it runs again if another commit was first.

        Returns:
            False if `prepare` returned None, so that nothing was committed.
        """
        # The turn is acquired first: a thread that waited for it with the lock would block all readers of this process.
        with turn(self.folder.url, LOG), self.lock:
            while True:
                self.refresh()
                actions = prepare()
                if actions is None:
                    return False
                if self.publish(actions):
                    return True

    def publish(self, actions: Actions) -> bool:
        """Commit as the next version; False if another commit has taken it.

        This and `vacuum` follow a protocol that does not depend on clocks: a vacuum commits the names of presumed
        orphans before it removes them, and no later commit adds such a file. Both are commits, so one is first. If the
        vacuum is first, the writer has read it before this call. If the writer is first, the vacuum finds the file
        live.

        A request to an object store that was sent twice meets its own file; that is no conflict.
        """
        version = self.version + 1
        if self._last_version() >= version or time.monotonic() >= self._look_again:
            self._check_end()  # a gap must not be filled
            if self.version >= version:
                return False
        self._check_condemned(actions)
        now = int(time.time() * 1000)
        stamped = self._stamped(actions, version)
        data = packed(self.folder, version, stamped.info(now), stamped.to_json(version, now))
        if not self.folder.create(self._next, data) and self.folder.read(self._next) != data:
            return False
        with self._whole_or_reset():
            # Applied from memory: to read the own entry again would cost each put another file.
            self._apply(stamped.adds, (file.path for file in stamped.removes), stamped.changes_data)
            self._note(stamped.metadata)
            if stamped.transaction is not None:
                self._transactions[stamped.transaction] = stamped.epoch
            if stamped.condemned:
                self._vacuums.append(version)
            self._advance()
            # `_last_created` now contains these bytes; the next check compares them, and parses nothing.
            self._created = data, version
        return True

    def _check_condemned(self, actions: Actions) -> None:
        """Refuse files that a vacuum has named since they were begun.

        Vacuums before a checkpoint are unknown to a handle that was reset in the meantime, so the commits before it are
        read again.
        """
        if not actions.adds or (self._summed_up <= actions.begun and not self._vacuums):
            return
        added = {file.path for file in actions.adds}
        known = (version for version in self._vacuums if version > actions.begun)
        for version in [*self._summed_up_since(actions.begun), *known]:
            gone = added.intersection(condemned_in(self.entry(version)))
            if gone:
                raise self.gone_before_commit(min(gone))

    def _summed_up_since(self, begun: int) -> list[int]:
        """Return the commits after one that a checkpoint covers, without truncated commits.

        No commit is cut that names what a vacuum removes.
        """
        if begun >= self._summed_up or self.has_entry(begun + 1):
            return list(range(begun + 1, self._summed_up + 1))
        found = (entry_version(each.path) for each in self.folder.found(LOG, after=entry_path(max(begun, 0))))
        return sorted(version for version in found if version is not None and begun < version <= self._summed_up)

    def has_entry(self, version: int) -> bool:
        """Return whether the entry of a commit exists; one that was made may have been cut."""
        return self.folder.exists(entry_path(version))

    def entry(self, version: int) -> list[dict[str, Any]]:
        """Return the actions of a commit that was made.

        Raises:
            IllegalStateError: it is damaged, or missing; it may have been cut.
        """
        try:
            return read_entry(self.folder, version, self.all_sealed)
        except FileNotFoundError as error:
            raise self._gap(version, max(version, self.version)) from error

    def gone_before_commit(self, path: str) -> IllegalStateError:
        """Return the error for a file that was removed before a commit could name it."""
        return IllegalStateError(
            f"{self.title}: nothing was changed, since {self.folder.url}/{path} was removed before it could be "
            "committed: a vacuum takes what waits for a day for left behind. Do it again; if it was begun today, set "
            "the clocks"
        )

    def _stamped(self, actions: Actions, version: int) -> Actions:
        """Set the version of new files to the version of the commit; files that replace others already have one."""
        adds = tuple(file._replace(version=version) if file.version < 0 else file for file in actions.adds)
        return replace(actions, adds=adds, partitions=self._partitions)

    def has_committed(self, transaction: str, epoch: int) -> bool:
        """Return whether an epoch of a job, or a later one, is done."""
        return self._transactions.get(transaction, 0) >= epoch

    def changed_at(self, bucket: int) -> int:
        """Return the newest commit that may have changed the data of a bucket, also by removing all of them."""
        return self._changed.get(bucket, self._summed_up)

    def is_live(self, path: str) -> bool:
        """Return whether a file belongs to the collection."""
        return path in self._files

    def files(self) -> list[DataFile]:
        """Return all live files."""
        return list(self._files.values())

    @contextmanager
    def _whole_or_reset(self) -> Iterator[None]:
        """Reset the state if the user interrupts while a commit is partially applied."""
        version = self.version + 1
        try:
            yield
        except BaseException as error:
            self._reset()
            # Some errors of files, such as an unsupported operation, are a ValueError as well, and no damage.
            if isinstance(error, (UnsupportedError, *NOT_UNDERSTOOD)) and not isinstance(error, OSError):
                raise self.damaged(version, error) from error
            raise

    def damaged(self, version: int, error: Exception) -> DStreamError:
        """Return the error for an entry that is not understood."""
        if isinstance(error, UnsupportedError):
            return UnsupportedError(f"{self.title} is not read: {error}")
        return IllegalStateError(
            f"{self.title} is damaged: {self.folder.url}/{entry_path(version)} is no log entry of dstream: "
            f"{type(error).__name__}: {error}; restore the file from a backup"
        )

    def _open(self, behind: int = -1) -> None:
        checkpoint = read_checkpoint(self.folder, behind)
        if checkpoint is not None:
            check_protocol(checkpoint.protocol, self.folder.url)
            # A checkpoint does not contain which commit changed a bucket last: `changed_at` names its version for all.
            self._apply(checkpoint.adds, (), changes_data=False)
            self._note(checkpoint.metadata)
            self._transactions.update(checkpoint.transactions)
            self._summed_up = checkpoint.version
            self.version = checkpoint.version - 1
            self._advance()
        elif self.folder.exists(f"{LOG}/_last_checkpoint") and not self.folder.exists(self._next):
            # Starting at 0 would treat an existing collection as new.
            where = f"{self.folder.url}/{LOG}"
            raise IllegalStateError(
                f"{self.title} is damaged: {where} has no checkpoint and no start; restore it from a backup"
            )
        self._opened = True

    def _read_next(self) -> None:
        adds: dict[bool, list[DataFile]] = {True: [], False: []}
        removes: dict[bool, list[str]] = {True: [], False: []}
        for line in read_entry(self.folder, self.version + 1, self.all_sealed):
            if "add" in line:
                adds[line["add"]["dataChange"]].append(data_file(line["add"]))
            elif "remove" in line:
                removes[line["remove"]["dataChange"]].append(checked_path(line["remove"]["path"]))
            elif "protocol" in line:
                check_protocol(line["protocol"], self.folder.url)
            elif condemned_in([line]):
                self._vacuums.append(self.version + 1)
            else:
                self._note(line.get("metaData"))
                if "txn" in line:
                    self._transactions[checked_text(line["txn"]["appId"])] = checked_number(line["txn"]["version"])
        for changes_data in (True, False):
            self._apply(adds[changes_data], removes[changes_data], changes_data)
        self._advance()

    def _note(self, metadata: Mapping[str, Any] | None) -> None:
        if metadata is not None:
            self.metadata = metadata

    def _apply(self, adds: Iterable[DataFile], removes: Iterable[str], changes_data: bool) -> None:
        removed = [self._files.pop(path) for path in removes if path in self._files]
        added = list(adds)
        for bucket in {file.bucket for file in removed}:
            gone = {file.path for file in removed if file.bucket == bucket}
            # A new tuple each time: caches retain the old one, and compare identities to detect changes.
            self.groups[bucket] = tuple(file for file in self.groups[bucket] if file.path not in gone)
        for file in added:
            self._files[file.path] = file
            # No key belongs to a bucket beyond these: splits would read its rows, and no `get` would find them.
            checked_number(file.bucket, self._buckets - 1)
            self.groups[file.bucket] = _with(self.groups.get(file.bucket, ()), file)
        if changes_data:
            self._changed.update((file.bucket, self.version + 1) for file in [*removed, *added])

    def _advance(self) -> None:
        self.version += 1
        self._next = entry_path(self.version + 1)

    def not_there(self, path: str) -> IllegalStateError:
        """Return the error for a missing file, live or not committed yet."""
        return self.missing(path) if self.is_live(path) else self.gone_before_commit(path)

    def missing(self, path: str) -> IllegalStateError:
        """Return the error for a missing live file."""
        return IllegalStateError(
            f"{self.title} is damaged: its file {self.folder.url}/{path} is missing; another program has removed it; "
            "restore it from a backup"
        )


def _with(files: tuple[DataFile, ...], file: DataFile) -> tuple[DataFile, ...]:
    if not files or files[-1] < file:
        return (*files, file)
    # A compaction, or a change within a list, takes the position of older files, which is not always the last.
    ordered = list(files)
    insort(ordered, file)
    return tuple(ordered)


class Addition(NamedTuple):
    """The files that a commit has added.

    Attributes:
        version: the commit.
        timestamp: when it was made, in milliseconds since 1970, by the clock of the process that made it.
        files: those with new data.
    """

    version: int
    timestamp: int
    files: list[DataFile]


def additions(log: CollectionLog, first: int, *, newest_first: bool = False) -> Iterator[Addition]:
    """Yield the additions of each commit from `first` up to the newest one now, if it has new data."""
    versions = range(first, log.version + 1)
    return _additions(log, reversed(versions) if newest_first else versions)


def _additions(log: CollectionLog, versions: Iterable[int]) -> Iterator[Addition]:
    for version in versions:
        entry = log.entry(version)
        try:
            new = [line["add"] for line in entry if "add" in line and line["add"]["dataChange"]]
            adds = list(map(data_file, new))
            times = [checked_number(add["modificationTime"]) for add in new]
        except (UnsupportedError, *NOT_UNDERSTOOD) as error:
            raise log.damaged(version, error) from error
        if adds:
            yield Addition(version, max(times), adds)
