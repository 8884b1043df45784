"""Which context a stream runs on: its own, or the default one, asked for when it is first needed."""

from __future__ import annotations

from collections.abc import Callable

from dstream.errors import IllegalStateError
from dstream.spi.engine import Runtime

__all__ = ["bind_default", "default_runtime", "shared"]

_default: Callable[[], Runtime] | None = None


def bind_default(provider: Callable[[], Runtime]) -> None:
    """Let `provider` give the context of streams that were made without one; the session does this."""
    global _default
    _default = provider


def default_runtime() -> Runtime:
    """Return the default context."""
    if _default is None:
        raise IllegalStateError("no default context: import dstream, which provides one")
    return _default()


def shared(left: Runtime | None, right: Runtime | None) -> Runtime | None:
    """Return the context of two streams that are combined.

    Raises:
        IllegalStateError: they belong to different contexts.
    """
    if left is not None and right is not None and left is not right:
        raise IllegalStateError("two streams of different contexts cannot be combined; make both from one context")
    return left if right is None else right
