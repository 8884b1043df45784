"""State is pickled: what of it is loaded, and what a storage says that loads no pickles."""

from __future__ import annotations

import functools

from dstream.storage.codec.classes import ClassRefusedError
from dstream.storage.codec.pickles import Pickles
from dstream.values.state_values import state_values

__all__ = ["check_are_loaded", "for_state"]


def for_state(pickles: Pickles) -> Pickles:
    """Return a policy that also allows what collectors and steps keep."""
    return pickles if pickles.mode == "trusted" else _allowing(pickles, state_values())


@functools.lru_cache(maxsize=64)
def _allowing(pickles: Pickles, classes: tuple[type, ...]) -> Pickles:
    return pickles.allowing(*classes)


def check_are_loaded(pickles: Pickles, title: str) -> None:
    """Refuse to keep state where it could not be loaded again.

    Raises:
        TypeError: no pickles are loaded.
    """
    if pickles.mode == "never":
        raise ClassRefusedError(
            f"{title} has to be pickled, and the storage was connected with pickle='never'; connect with "
            "pickle='restricted' or, if only you can write there, 'trusted' (`dstream docs security` says more), or "
            "keep it elsewhere with JobConfig(files_at=...)"
        )
