"""`Settings`: what a user says about a storage when connecting to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["MOST_BUCKETS", "Durability", "PickleMode", "Settings"]

MOST_BUCKETS = 2**16
"""A task that writes keeps a place for each bucket of a map, and makes a file for each that it has entries of."""

PickleMode = Literal["trusted", "restricted", "never"]
Durability = Literal["process", "power"]


@dataclass(frozen=True, slots=True)
class Settings:
    """How a storage treats what it cannot check for itself.

    Attributes:
        pickle: which pickled values are loaded: all (`"trusted"`), those of plain types and of `allowed`
            classes (`"restricted"`), or none (`"never"`). None: `"trusted"` where only this user can write,
            otherwise `"restricted"`.
        allowed: classes whose instances may be loaded in restricted mode.
        durability: what an acknowledged change survives: the death of any process, or also that of the machine.
    """

    pickle: PickleMode | None = None
    allowed: tuple[type, ...] = ()
    durability: Durability = "process"
