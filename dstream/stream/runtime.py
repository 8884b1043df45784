"""Which context a stream runs on: its own, or the default one, asked for when it is first needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dstream.errors import IllegalStateError
from dstream.spi.engine_contract import Runtime

__all__ = ["bind_default", "default_runtime", "default_stages", "shared"]

_default: Callable[[], Runtime] | None = None
_stages: Callable[[Any, Any], Any] | None = None


def bind_default(provider: Callable[[], Runtime], stages: Callable[[Any, Any], Any]) -> None:
    """Let the session speak for streams that were made without a context.

    Args:
        provider: gives the default context.
        stages: does what `Runtime.stages` does, without making a context if there is none yet.
    """
    global _default, _stages
    _default, _stages = provider, stages


def default_runtime() -> Runtime:
    """Return the default context."""
    if _default is None:
        raise IllegalStateError("no default context: import dstream, which provides one")
    return _default()


def default_stages(node: Any, into: Any) -> Any:
    """Return the stages of a plan on the default context, which is not made for that."""
    if _stages is None:
        raise IllegalStateError("no default context: import dstream, which provides one")
    return _stages(node, into)


def shared(left: Runtime | None, right: Runtime | None) -> Runtime | None:
    """Return the context of two streams that are combined.

    Raises:
        IllegalStateError: they belong to different contexts.
    """
    if left is not None and right is not None and left is not right:
        raise IllegalStateError("two streams of different contexts cannot be combined; make both from one context")
    return left if right is None else right
