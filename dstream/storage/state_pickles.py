"""State is pickled: what a storage says that loads no pickles."""

from __future__ import annotations

from dstream.storage.codec.classes import ClassRefusedError
from dstream.storage.codec.pickles import Pickles

__all__ = ["check_are_loaded"]


def check_are_loaded(pickles: Pickles, title: str) -> None:
    """Refuse to keep state where it could not be loaded again.

    Raises:
        TypeError: no pickles are loaded.
    """
    if pickles.mode == "never":
        raise ClassRefusedError(
            f"{title} has to be pickled, and the storage was connected with pickle='never'; connect with "
            "pickle='restricted' or, if only you can write there, 'trusted' (docs/security.md), or keep it elsewhere "
            "with JobConfig(files_at=...)"
        )
