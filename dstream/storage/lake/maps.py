"""`LakeMap`: the entries of a map or a cache in a Delta table, and its journal of changes.

Commits append: each writes the new rows of a bucket into a small file, and newer rows win. `caches` has rows that were
read, `merge` compacts files, `staging` writes the results of jobs.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pyarrow as pa

from dstream.delta.actions import Actions, DataFile
from dstream.delta.collection_log import Addition, additions
from dstream.errors import IllegalStateError
from dstream.filesystem.folders import StorageFolder
from dstream.spi.sink import MapWriter, WriteJob
from dstream.spi.store import UNCHANGED, EntrySplit, Merge, Options
from dstream.storage.base.named_folders import FileGoneError
from dstream.storage.codec.keys import bucket_of, identity
from dstream.storage.lake.caches import SHARED, BucketCache, RecentRows, Values, own_copy, same_value
from dstream.storage.lake.catalog import Description, LakeCatalog
from dstream.storage.lake.collection import LakeCollection
from dstream.storage.lake.merge import MAX_FILES, Fold, fold_all, fold_small, has_removed_rows
from dstream.storage.lake.single_keys import Change, Changed, SingleEntries, look_up
from dstream.storage.lake.splits import LakeEntrySplit, grouped
from dstream.storage.lake.staging import LakeMapJob
from dstream.storage.lake.tables import KEY_COLUMNS, Layout, batches, newest_rows, remove_quietly
from dstream.values.entries import JournalEvent

__all__ = ["LakeMap", "journal_before", "journal_reach", "shown_offset"]


_ROW_BITS = 32


def first_version(since: int) -> int:
    """Return the first commit that may contain events after an offset."""
    return max((since >> _ROW_BITS) - 1, 0)


def last_offset(version: int) -> int:
    """Return the largest offset that an event of a commit, or of one before it, can have."""
    return (version + 2 << _ROW_BITS) - 1


def shown_offset(offset: int) -> str:
    """Return the commit of an offset and the event in it, in words."""
    commit, event = (offset >> _ROW_BITS) - 1, offset & (1 << _ROW_BITS) - 1
    if commit < 0:
        return "the start"
    return f"the end of commit {commit:,}" if offset == last_offset(commit) else f"commit {commit:,}, event {event:,}"


def read_journal(
    folder: StorageFolder, layout: Layout, commits: Iterator[Addition], since: int, title: str
) -> Iterator[JournalEvent]:
    """Yield the events of commits whose offsets are larger than `since`.

    An offset is made of the commit and the row in it, both counted from one so that none is 0.

    Raises:
        IllegalStateError: a vacuum has removed requested events.
    """
    for version, timestamp, files in commits:
        offset = (version + 1) << _ROW_BITS
        for file in sorted(files):
            if offset + file.rows > since:
                yield from _events(folder, layout, file, offset, since, timestamp, title)
            offset += file.rows


def journal_before(commits: Iterator[Addition], when: int) -> int:
    """Return the offset of the last event of the newest commit before a time; 0 if there is none.

    Args:
        commits: all commits, the newest first.
        when: milliseconds since 1970.
    """
    offsets = (
        ((version + 1) << _ROW_BITS) + sum(file.rows for file in files)
        for version, timestamp, files in commits
        if timestamp < when
    )
    return next(offsets, 0)


def journal_reach(commits: Iterator[Addition], since: int, most: int | None) -> int:
    """Return the offset of the last event, or of the `most`-th one after `since` if it is earlier.

    Args:
        commits: from the commit of `since` on; without `most` the newest first.
        since: the offset to begin after.
        most: the maximal number of events; None: unlimited.
    """
    reached, left = since, most
    for version, _, files in commits:
        first = max((version + 1) << _ROW_BITS, since)
        last = ((version + 1) << _ROW_BITS) + sum(file.rows for file in files)
        if left is None:
            return max(last, since)
        if last > first:
            if left <= last - first:
                return first + left if left else reached
            reached, left = last, left - (last - first)
    return reached


def events_after(commits: Iterator[Addition], since: int) -> int:
    """Return the number of events in commits whose offsets are larger than `since`."""
    firsts = ((version + 1 << _ROW_BITS, sum(file.rows for file in files)) for version, _, files in commits)
    return sum(max(0, first + rows - max(first, since)) for first, rows in firsts)


def _events(
    folder: StorageFolder, layout: Layout, file: DataFile, offset: int, since: int, timestamp: int, title: str
) -> Iterator[JournalEvent]:
    try:
        for batch in batches(folder, file):
            for key, old, new in _changes(layout, batch):
                offset += 1
                if offset > since:
                    yield JournalEvent(_kind(old, new), key, old, new, offset, timestamp)
    except FileGoneError as error:
        next_commit = ((offset >> _ROW_BITS) + 1 << _ROW_BITS) - 1
        raise IllegalStateError(
            f"the journal of {title} no longer reaches back to offset {since}: a vacuum has removed events older than "
            f"it was set to keep; what happened after offset {next_commit} may still be there"
        ) from error


def _changes(layout: Layout, batch: pa.RecordBatch) -> Iterator[tuple[Any, Any, Any]]:
    return zip(layout.keys(batch), layout.values(batch, "_old"), layout.values(batch), strict=True)


def _kind(old: Any, new: Any) -> Any:
    if new is None:
        return "REMOVED"
    return "ADDED" if old is None else "UPDATED"


_MOST_COUNTED = 100
"""Commits that are read to count the events that a journal has left: each is a small file."""


def _opened(catalog: LakeCatalog, description: Description, asked: Options) -> LakeMap:
    """Return a handle in this process, with the current types."""
    opened = LakeMap(catalog, description)
    opened.settle(asked)
    return opened


class LakeMap(LakeCollection):
    """A handle to a map or a cache."""

    has_columns = True
    """Splits yield their contents in columns."""

    def __init__(self, catalog: LakeCatalog, description: Description) -> None:
        super().__init__(catalog, description)
        self._buckets = description.shape.buckets or 1
        self._cache = BucketCache(self._folder, self._buckets)
        self._sizes: dict[int, tuple[Any, int]] = {}
        self._recent = RecentRows()
        self._singles = SingleEntries()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it for tasks, which open the map for themselves."""
        return _opened, (self._catalog, self._description, self._asked)

    def get_many(self, keys: Sequence[Any]) -> list[Any]:
        if len(keys) == 1:
            value = self._at_hand(keys[0])
            if value is not None:
                return [value]
        places = self._places(keys)
        with self._log.lock:
            found = self._reading(lambda: self._values(places))
            codec = self._codec
        return [own_copy(codec, value) for value in found]

    def _at_hand(self, key: Any) -> Any:
        """Return the value of a key from the cache, None if it is not cached.

        This is `get_many` for one key without its detours: 3 microseconds instead of 5.
        """
        bucket = bucket_of(self._codec.encode_key(key), self._buckets)
        known = key if type(key) is str else identity(key)
        log = self._log
        with log.lock:
            log.refresh()
            # The conditions of `_take_codec`, repeated to save the call.
            if log.metadata is not self._codec_of or not self._is_judged:
                self._take_codec()
            entries = self._cache.up_to_date(bucket, log.groups.get(bucket), self._layout)
            try:
                value = None if entries is None else entries.get(known)
            except FileGoneError:  # `get_many` finds out why.
                return None
            return value if type(value) in SHARED else own_copy(self._codec, value)

    def _places(self, keys: Sequence[Any]) -> list[tuple[int, Any]]:
        """Return the bucket of each key, and its identity in a dict."""
        encode, buckets = self._codec.encode_key, self._buckets
        return [(bucket_of(encode(key), buckets), identity(key)) for key in keys]

    def _values(self, places: Sequence[tuple[int, Any]]) -> list[Any]:
        """Return the values of keys from the cache, or from a lookup in a huge bucket."""
        groups, version, layout = self._log.groups, self._log.version, self._layout
        known: dict[int, Values] = {}
        for bucket in {bucket for bucket, _ in places}:
            files = groups.get(bucket, ())
            entries = self._cache.entries(bucket, files, version, layout) if files else {}
            if entries is None:
                wanted = [key for number, key in places if number == bucket]
                entries = look_up(self._folder, files, layout, wanted)
            known[bucket] = entries
        return [known[bucket].get(key) for bucket, key in places]

    def update(self, keys: Sequence[Any], change: Callable[[list[Any]], list[Any]]) -> list[Any]:
        places = self._places(keys)
        if len(set(places)) < len(places):
            twice = next(key for key, place in zip(keys, places, strict=True) if places.count(place) > 1)
            raise ValueError(f"one change of {self._description.title} names the key {twice!r} twice")
        with ExitStack() as until_committed:
            while True:
                with self._log.lock:
                    olds = self._reading(lambda: self._values(places))
                    version, codec = self._log.version, self._codec
                # Without the lock: the function is the user's, may be slow, and may itself change the map.
                news = change([own_copy(codec, value) for value in olds])
                if len(news) != len(keys):
                    title = self._description.title
                    raise ValueError(f"{title}: a change of {len(keys)} keys gave {len(news)} new values")
                changes = [
                    Changed(*place, key, old, new)
                    for place, key, old, new in zip(places, keys, olds, news, strict=True)
                    if new is not UNCHANGED and not (old is None and new is None)
                ]
                wanted = Change(changes, self._singles)
                if wanted.by_bucket:
                    # A change that lost against another one tries again before the next one has its turn.
                    until_committed.enter_context(self.turn())
                if not wanted.by_bucket or self._committed(wanted, places, olds, version):
                    return [own_copy(codec, value) for value in olds]

    def _committed(self, change: Change, places: list[tuple[int, Any]], olds: list[Any], version: int) -> bool:
        """Commit a change; False, without a trace, if an old value has changed."""
        with self._log.lock:
            if not self._published(change, places, olds, version):
                return False
            self._remember(change)
            version = self._log.version
        # Outside of the lock, for other threads, and within the turn, so that no other process folds the same files.
        self._tidy_after(version, list(change.by_bucket))
        return True

    def _published(self, change: Change, places: list[tuple[int, Any]], olds: list[Any], version: int) -> bool:
        """Write the change and make it the next commit; commits of other keys do not conflict.

        Written files remain if the commit failed halfway: an object store may still complete it.
        """
        log, begun = self._log, version
        while True:
            try:
                self._refresh()
                known, version = version, log.version
                # Other keys of the bucket may have changed: only the values that the function has read count.
                if version != known and not self._unchanged(places, olds):
                    change.discard(self._folder)
                    return False
                codec = change.checked(self._codec)
                actions = Actions(
                    adds=change.written(self._folder, self._layout_for(codec)),
                    metadata=self.metadata_for(codec),
                    begun=begun,
                )
            except BaseException:
                change.discard(self._folder)
                raise
            # The class of an encoded value may itself have changed the map.
            if log.version == version and log.publish(actions):
                self._take_codec()
                return True

    def _unchanged(self, places: Sequence[tuple[int, Any]], olds: list[Any]) -> bool:
        now = self._reading(lambda: self._values(places))
        return all(same_value(self._codec, old, value) for old, value in zip(olds, now, strict=True))

    def _remember(self, change: Change) -> None:
        self._recent.keep(change.rows, change.entries)
        for bucket, changes in change.by_bucket.items():
            new = [(changed.known, own_copy(self._codec, changed.new)) for changed in changes]
            self._cache.committed(bucket, self._log.groups[bucket], self._log.version, new)

    def clear(self) -> None:
        """Remove all entries, atomically; with a journal each of them is an event."""
        if self._description.shape.journal:
            # With a journal each removed entry needs a row, which a job that replaces everything by nothing writes.
            self._job(None, 1, None, replace=True).commit([])
            return
        self._log.commit(lambda: Actions(removes=tuple(self._log.files())) if self._log.files() else None)

    def size(self) -> int:
        """Return the number of entries. Only keys are read, and only of buckets that changed since the last call."""
        with self._log.lock:
            return self._reading(lambda: sum(map(self._size_of, self._log.groups)))

    def _size_of(self, bucket: int) -> int:
        files = self._log.groups[bucket]
        known, size = self._sizes.get(bucket, ((), 0))
        # By identity: the log replaces a tuple of files, and never changes one.
        if known is not files:
            cached = self._cache.size(bucket, files)
            rows = newest_rows(self._folder, files, self._layout, KEY_COLUMNS)
            size = sum(len(keys) for keys, _ in rows) if cached is None else cached
            self._sizes[bucket] = (files, size)
        return size

    def splits(self, parallelism: int) -> Sequence[EntrySplit]:
        """Divide the current entries by complete buckets."""
        with self._log.lock:
            self._refresh()
            # Complete buckets, since only all files of a bucket show the newest row of a key.
            groups = grouped(self._log.groups, parallelism)
            return [LakeEntrySplit(self._description.title, self._folder, self._layout, group) for group in groups]

    def journal(self, since: int) -> Iterator[JournalEvent]:
        """Yield the changes after offset `since`, up to the last one when this was called."""
        with self._log.lock:
            self._refresh_journal()
            commits = additions(self._log, first_version(since))
            return read_journal(self._folder, self._layout, commits, since, self._description.title)

    def journal_end(self) -> int:
        """Return the last offset that an event of the newest commit could have."""
        with self._log.lock:
            self._refresh_journal()
            return last_offset(self._log.version)

    def journal_reach(self, since: int, most: int | None = None) -> int:
        """Read the newest commit with events, or the commits after `since` as far as they are counted."""
        with self._log.lock:
            self._refresh_journal()
            commits = additions(self._log, first_version(since), newest_first=most is None)
            return journal_reach(commits, since, most)

    def journal_left(self, since: int) -> int | None:
        """Return the number of changes that the commits after `since` report, unless these are many."""
        with self._log.lock:
            self._refresh_journal()
            first = first_version(since)
            if self._log.version - first >= _MOST_COUNTED:
                return None
            return events_after(additions(self._log, first), since)

    def shown_offset(self, offset: int) -> str:
        """Return the commit and the event in it."""
        return shown_offset(offset)

    def journal_before(self, when: int) -> int:
        """Search the commits, the newest first."""
        with self._log.lock:
            self._refresh_journal()
            return journal_before(additions(self._log, 0, newest_first=True), when)

    def _refresh_journal(self) -> None:
        self._refresh()
        if not self._description.shape.journal:
            raise IllegalStateError(f"{self._description.title} has no journal; it must be made with journal=True")

    def begin(
        self,
        job: str | None,
        epoch: int = 1,
        *,
        merge: Merge | None = None,
        replace: bool = False,
    ) -> WriteJob[MapWriter]:
        # A run without a name gets a unique one in the log, so that its commit can be retried.
        return self._job(uuid.uuid4().hex if job is None else job, epoch, None if replace else merge, replace)

    def _job(self, name: str | None, epoch: int, merge: Merge | None, replace: bool) -> LakeMapJob:
        with self._log.lock:
            self._refresh()
            return LakeMapJob(self, name, epoch, merge, replace, self._tidy_after)

    def compact(self) -> None:
        """Leave each bucket one file with one row per key."""
        with self._log.lock:
            self._refresh()
            buckets = list(self._log.groups)
        for bucket in buckets:
            while not self._fold(bucket, fold_all):
                pass

    def _tidy_after(self, version: int, buckets: Sequence[int]) -> None:
        self._after_commit(version, lambda: self._tidy(buckets))

    def _tidy(self, buckets: Sequence[int]) -> None:
        """Fold the files of buckets that have too many."""
        for bucket in buckets:
            if len(self._log.groups.get(bucket, ())) > MAX_FILES:
                self._fold(bucket, fold_small)

    def _fold(self, bucket: int, fold: Callable[..., Fold]) -> bool:
        """Compact files of a bucket; False if another commit has removed one of them meanwhile."""
        with self._log.lock:
            files, layout, begun = self._log.groups[bucket], self._layout, self._log.version
        try:
            if not files or (len(files) == 1 and not has_removed_rows(self._folder, files[0], layout)):
                return True
            old, new = fold(self._folder, files, layout, self._recent.reader)
        except FileGoneError as error:
            with self._log.lock:
                self._log.refresh()
                # No other commit has taken the files out, so no vacuum has removed them.
                if self._log.groups[bucket] is files:
                    raise self._log.missing(str(error)) from error
            return False
        if self._replace_files(old, new, begun):
            return True
        remove_quietly(self._folder, [file.path for file in new])
        return False
