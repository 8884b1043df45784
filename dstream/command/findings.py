"""What a check of `dstream doctor` found."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["Finding", "State"]

State = Literal["ok", "not ok", "not checked"]


class Finding(NamedTuple):
    """One line.

    Attributes:
        name: what was looked at.
        state: whether it works; what is not needed, or depends on something that does not work, is not checked.
        seen: what was seen there.
        advice: what to do, if there is something to do.
    """

    name: str
    state: State
    seen: str
    advice: str = ""
