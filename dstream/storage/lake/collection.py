"""`LakeCollection`: the log, commits and vacuum of a table, as maps and lists share them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import pyarrow as pa

from dstream.delta.actions import LOG, Actions, DataFile
from dstream.delta.checkpoints import is_due, write_checkpoint
from dstream.delta.collection_log import DESTROYED, CollectionLog
from dstream.delta.vacuum import LogTruncation, vacuum
from dstream.errors import CollectionDestroyedError
from dstream.filesystem.local import turn
from dstream.spi.source import InputSize
from dstream.spi.store import Options
from dstream.storage.base.named_folders import FileGoneError
from dstream.storage.codec.collection import Codec
from dstream.storage.lake.catalog import Description, LakeCatalog
from dstream.storage.lake.tables import Layout, remove_quietly

__all__ = ["LakeCollection"]


T = TypeVar("T")

# None is the metadata of a log that has none.
_NOT_READ = object()

_log = logging.getLogger(__name__)


class LakeCollection:
    """A handle to a collection. Threads may share it; its state is guarded by the lock of its log."""

    in_process = False

    @property
    def location(self) -> str | None:
        return self._log.folder.url

    def __init__(self, catalog: LakeCatalog, description: Description) -> None:
        self._catalog = catalog
        self._description = description
        self._is_judged = False
        self._pickles = catalog.pickles(description)
        self._log = catalog.log(description)
        self._folder = self._log.folder
        self._asked = Options()
        self._codec = description.codec(None, self._asked, self._pickles)
        self._layout = description.layout(self._codec)
        self._codec_of: Any = None
        self._cut = LogTruncation(self._log)
        self._kept_for: float | None = None

    def __str__(self) -> str:
        return self._description.title

    @property
    def name(self) -> str:
        return self._description.name

    @property
    def identity(self) -> str:
        return self._description.identity

    @property
    def options(self) -> Options:
        with self._log.lock:
            self._refresh()
            return self._description.shape.options(self._codec)

    def input_size(self) -> InputSize:
        """Return how many rows and bytes the files have by the log; entries that were replaced since count too."""
        if "://" in self._folder.url:
            return InputSize()  # The search for new commits may be slow.
        with self._log.lock:
            self._refresh()
            files = self._log.files()
        rows, stored = sum(file.rows for file in files), sum(file.size for file in files)
        return InputSize(rows, stored_bytes=stored, is_near=True)

    @property
    def log(self) -> CollectionLog:
        """The log of its commits."""
        return self._log

    def settle(self, options: Options) -> None:
        """Compare options with the options of the collection, and decide open types.

        Raises:
            ValueError: the options contradict the stored ones.
        """
        self._description.shape.check(self._description.kind, self.name, options)

        def decided() -> Actions | None:
            self._take_codec()
            codec = self._description.codec(self._log.metadata, options, self._pickles)
            self._asked, self._codec_of = _filled(self._asked, options), _NOT_READ
            if self._log.metadata is None and codec.key is None and codec.value is None:
                return None
            metadata = self.metadata_for(codec)
            return None if metadata is None else Actions(metadata=metadata)

        with self._log.lock:
            self._log.refresh()
            is_settled = decided() is None
        if not is_settled:  # A turn is taken before the lock, as by each change, and only to commit.
            self._log.commit(decided)
        with self._log.lock:
            self._take_codec()

    @property
    def description(self) -> Description:
        """The description of its creation."""
        return self._description

    @property
    def codec(self) -> Codec:
        """The encoding of keys and values, as of the newest commit that was read."""
        return self._codec

    def has_committed(self, transaction: str, epoch: int) -> bool:
        with self._log.lock:
            self._refresh()
            return self._log.has_committed(transaction, epoch)

    def turn(self) -> AbstractContextManager[None]:
        """Wait until no other process is about to commit, if supported; only an optimization."""
        return turn(self._folder.url, LOG)

    def commit_reading(self, prepare: Callable[[], Actions | None]) -> bool:
        """Commit the result of `prepare` for the newest state; it may read live files, and runs again after a conflict.

        Returns:
            False if `prepare` returned None, so that nothing was committed.
        """
        with self.turn(), self._log.lock:
            while True:
                version, actions = self._reading(lambda: (self._log.version, prepare()))
                if self._log.version != version:
                    continue  # a merge function has itself changed the collection
                if actions is None:
                    return False
                if self._log.publish(actions):
                    self._take_codec()
                    return True

    def discard_staged(self, prefix: str) -> None:
        """Remove files with a prefix that no commit names."""
        with self._log.lock:
            self._log.is_destroyed()
            # Staged files of a collection that was destroyed are removed as well, for which `refresh` would raise.
            staged = [file.path for file in self._folder.found() if file.path.startswith(prefix)]
            remove_quietly(self._folder, [path for path in staged if not self._log.is_live(path)])

    def schema(self) -> pa.Schema:
        with self._log.lock:
            self._refresh()
            return self._codec.schema()

    def destroy(self) -> None:
        """End the collection in one commit, which every handle meets at its next refresh."""
        self._log.commit(lambda: Actions(removes=tuple(self._log.files()), transaction=DESTROYED))
        self._catalog.forget_destroyed(self._description)

    def vacuum(self, older_than: float) -> int:
        """Remove files that no reader can need, including destroyed collections of this name.

        The journal reaches back as far as the existing files: events older than `older_than` that
        a compaction has folded are removed as well.
        """
        with self._log.lock:
            self._refresh()
        predecessors = self._catalog.predecessors(self._description)
        return vacuum(self._log, older_than) + sum(vacuum(log, older_than) for log in predecessors)

    def cut_log(self, older_than: float) -> int:
        """Truncate a few commits of the log before a checkpoint; see `LogTruncation`. Return their number."""
        self._kept_for = older_than
        return self._cut.cut(older_than)

    def _refresh(self) -> None:
        self._log.refresh()
        self._take_codec()

    def _take_codec(self) -> None:
        """Update the types from the log; and check the owner of the folders before the first read."""
        metadata = self._log.metadata
        if not self._is_judged and self._log.version >= 0:
            self._pickles, self._codec_of = self._catalog.pickles(self._description), _NOT_READ
            self._is_judged = True
        # The log has a new object with each change of the types: its identity spares making a codec for each commit.
        if metadata is not self._codec_of:
            self._codec = self._description.codec(metadata, self._asked, self._pickles)
            self._layout = self._description.layout(self._codec)
            self._codec_of = metadata

    def metadata_for(self, codec: Codec) -> dict[str, Any] | None:
        """Return the metadata that the next commit must carry so that readers find `codec`, None if the log has it."""
        metadata = self._log.metadata
        if metadata is not None and codec is self._codec:
            return None
        described = self._description.metadata(codec)
        known = metadata is not None and metadata["configuration"] == described["configuration"]
        return None if known else described

    def _layout_for(self, codec: Codec) -> Layout:
        return self._layout if codec is self._codec else self._description.layout(codec)

    def _reading(self, read: Callable[[], T]) -> T:
        """Run a function that reads live files of the newest state, under the lock.

        A missing file was compacted and vacuumed since the log was read; then the log has newer commits. Or a job has
        yet to commit it.
        """
        while True:
            self._refresh()
            version = self._log.version
            try:
                return read()
            except FileGoneError as error:
                self._log.refresh()
                # Without a newer commit no live file was removed, and another attempt would fail in the same way.
                if self._log.version == version:
                    raise self._log.not_there(str(error)) from error

    def _after_commit(self, version: int, tidy: Callable[[], None]) -> None:
        """Compact and write checkpoints. The commit has succeeded, so a failure here is only logged."""
        try:
            tidy()
            if self._log.metadata is not None and is_due(self._folder, version, self._kept_for is not None):
                write_checkpoint(self._folder, self._log.all_sealed, self._kept_for)
        except CollectionDestroyedError:
            return
        except Exception as error:
            _log.warning("%s could not be tidied up after a commit: %s", self._description.title, error)

    def _replace_files(self, old: tuple[DataFile, ...], new: tuple[DataFile, ...], begun: int) -> bool:
        """Commit a compaction that began after a commit; False if a file is no longer live."""

        def prepare() -> Actions | None:
            # One was folded or removed by another commit meanwhile, and its rows must not be written again.
            if not all(self._log.is_live(file.path) for file in old):
                return None
            return Actions(adds=new, removes=old, changes_data=False, begun=begun)

        return self._log.commit(prepare)


def _filled(known: Options, more: Options) -> Options:
    """Return `known` with the types that only `more` names, so that their classes are found."""
    return Options(
        key_type=known.key_type if known.key_type is not None else more.key_type,
        value_type=known.value_type if known.value_type is not None else more.value_type,
    )
