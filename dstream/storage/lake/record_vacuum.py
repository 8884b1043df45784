"""Removal of what writers of records that were killed have left. The records stay, and their last few files."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from dstream.storage.lake.files import Folder, Found
from dstream.storage.lake.named_folder import NamedFolder
from dstream.storage.lake.paths import is_temporary
from dstream.storage.lake.record_files import KEPT, RECORDS, files_by_name, numbers_in, record_path
from dstream.storage.lake.vacuum import STAGED_FOR

__all__ = ["vacuum_records"]


def vacuum_records(folder: Folder, older_than: float) -> int:
    """Remove files that newer ones have replaced, and those that were prepared long ago; return how many."""
    records = NamedFolder(folder, folder.title)
    found = list(records.found(RECORDS))
    removed = [*_replaced(found), *_prepared(found, time.time() - max(older_than, STAGED_FOR))]
    for path in removed:
        records.delete(path)
    return len(removed)


def _replaced(found: Iterable[Found]) -> Iterator[str]:
    for name, files in files_by_name(file.path for file in found).items():
        for number in numbers_in(files)[:-KEPT]:
            yield record_path(name, number)


def _prepared(found: Iterable[Found], limit: float) -> Iterator[str]:
    for file in found:
        if is_temporary(file.path.rpartition("/")[2]) and file.written_at <= limit:
            yield file.path
