"""The open contexts of this process, and which of them is the default."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dstream.session.context import Context

__all__ = ["contexts"]


class Contexts:
    """The open contexts of this process, and which of them is the default."""

    def __init__(self) -> None:
        self._open: list[Context] = []
        self._chosen: Context | None = None

    def add(self, context: Context) -> None:
        self._open.append(context)

    def forget(self, context: Context) -> None:
        self._open = [known for known in self._open if known is not context]
        if self._chosen is context:
            self._chosen = None

    def choose(self, context: Context | None) -> None:
        self._chosen = context

    @property
    def chosen(self) -> Context | None:
        return self._chosen

    def default(self) -> Context | None:
        return self._chosen or next(iter(self._open), None)


contexts = Contexts()
