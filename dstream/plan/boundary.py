"""`explained`: the boundary at which a failure gets its message.

Workers and operators attach data to an exception (`dstream.failures.account`); `explained` turns it into a message,
and the traceback contains the user's own lines only. Without a failure it has no effect.
"""

from __future__ import annotations

from types import TracebackType

from dstream.failures import is_full, shorten
from dstream.plan.operations.streams import Node
from dstream.plan.steps import SourceLocation, call_site

__all__ = ["explained"]


class explained:
    """Complete an exception that leaves this block with its cause, its position in the plan of `root`, and advice.

    Args:
        root: the last node of the plan that runs.
        call: the terminal operation as the user calls it.
        place: the source location of that call; None: that of the running call of this thread.
    """

    __slots__ = ("_call", "_place", "_root")

    def __init__(self, root: Node, call: str, place: SourceLocation | None = None) -> None:
        self._root = root
        self._call = call
        self._place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: TracebackType | None) -> None:
        if error is None or isinstance(error, GeneratorExit):
            return
        arrived = self._described(error) if isinstance(error, Exception) else error
        if not is_full():
            shorten(arrived)
        if arrived is not error:
            behind = arrived.__context__
            try:
                raise arrived
            finally:
                BaseException.__setattr__(arrived, "__context__", behind)  # Not the one that it is a copy of.

    def _described(self, error: Exception) -> Exception:
        try:
            from dstream.plan.failure_messages import described  # imported late: needed for failures alone

            return described(error, self._root, self._call, self._place or call_site())
        except Exception as problem:
            # The user's exception matters more than what can be said about it.
            note = f"(dstream could not say more about it: {type(problem).__name__}: {problem})"
            error.__dict__.setdefault("__notes__", []).append(note)
            return error
