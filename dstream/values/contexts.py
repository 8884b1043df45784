"""`contextmanager`: that of `contextlib`, for blocks that exceptions of a user's own may leave."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Generic, ParamSpec, TypeVar

__all__ = ["contextmanager"]

P = ParamSpec("P")
T = TypeVar("T")


def contextmanager(generator: Callable[P, Iterator[T]]) -> Callable[P, AbstractContextManager[T]]:
    """Make a context of a function that yields once, as `contextlib.contextmanager` does.

    That one sets an attribute of the exception that leaves the block (Python 3.11 to 3.13), which a class may refuse:
    a frozen dataclass, or one with a `__setattr__` of its own. What then leaves is the refusal.
    """

    @functools.wraps(generator)
    def make(*args: P.args, **kwargs: P.kwargs) -> AbstractContextManager[T]:
        return _Context(generator(*args, **kwargs))

    return make


class _Context(AbstractContextManager[T], Generic[T]):
    def __init__(self, generator: Iterator[T]) -> None:
        self._generator = generator

    def __enter__(self) -> T:
        return next(self._generator)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if error is None:
            next(self._generator, None)
            return False
        try:
            self._generator.throw(error)  # type: ignore[attr-defined]  # It comes from a function that yields.
        except StopIteration:
            return True  # The function caught the exception and came to its end.
        except BaseException as raised:
            is_of_python = isinstance(error, StopIteration) and raised.__cause__ is error
            if raised is not error and not is_of_python:
                raise
            BaseException.__setattr__(error, "__traceback__", traceback)
        return False
