"""`Trust`: which pickles of a lake are loaded, decided when the content of a collection is first read.

Without a word of the user all are, as long as nobody else can write into a folder that is read: that of the storage,
those of the name, those of the data. Each handle looks once, so a storage that somebody else has made meanwhile is
not taken for one's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

from dstream.storage.codec.pickles import Pickles
from dstream.storage.lake.files import Folder

__all__ = ["Trust", "are_private"]


@dataclass(frozen=True, slots=True)
class Trust:
    """What a user has said about pickles, or nothing.

    Attributes:
        folder: that of the storage.
        pickles: what is loaded at most.
        is_judging: nobody has said what is loaded, so that depends on who can write there.
    """

    folder: Folder
    pickles: Pickles
    is_judging: bool = False

    def in_folders(self, *paths: str) -> Pickles:
        """Return which pickles are loaded that stand behind these folders.

        Raises:
            OSError: one of them is a symbolic link.
        """
        if not self.is_judging or all(are_private(self.folder.folders(path), os.getuid()) for path in paths):
            return self.pickles
        return replace(self.pickles, mode="restricted")


def are_private(folders: Iterable[os.stat_result | None], user: int) -> bool:
    """Say whether only one user can write into folders; one that is not there holds nothing.

    Access lists count too: the mode of a folder that has one shows the most that it grants as that of the group.
    """
    return all(found is None or (found.st_uid == user and not found.st_mode & 0o022) for found in folders)
