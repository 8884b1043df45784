"""`Logged`: what `peek` of a stage does with an item unless the user says it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dstream.plan import Node, Peek, call_site, shown_function
from dstream.stream.stream_arguments import running
from dstream.values.log_lines import is_heard, tell

__all__ = ["Logged", "peeked", "under_the_name"]


def peeked(upstream: Node, action: Any, to_string: Any, should_log: Any) -> Peek:
    """Return the node of a `peek`, as stages have it.

    Raises:
        TypeError: an action stands beside what is logged, or one of them does not run.
    """
    if action is not None and (to_string is not None or should_log is not None):
        raise TypeError("peek() takes an action, or to_string= and should_log= of what it logs itself, not both")
    if action is not None:
        return Peek(upstream, running(action, "action"), where=call_site())
    text = str if to_string is None else running(to_string, "to_string")
    logged = Logged(text, None if should_log is None else running(should_log, "should_log"))
    return Peek(upstream, logged, logged.given(), where=call_site())


@dataclass(frozen=True)
class Logged:
    """Logs items, in the caller's process, to a logger that bears the name of their stage.

    Attributes:
        to_string: makes the text of an item.
        should_log: says which items are meant; None: all.
        stage: the name of the stage whose items are seen, once a plan is made.
    """

    to_string: Callable[[Any], object]
    should_log: Callable[[Any], object] | None = None
    stage: str = ""

    def __post_init__(self) -> None:
        # What a failure tells the user to look at: a function of the user's, where there is one.
        meant = self.should_log if self.to_string is str and self.should_log is not None else self.to_string
        object.__setattr__(self, "__qualname__", shown_function(meant))

    def given(self) -> str:
        """Return the arguments of the call that made it, as the user wrote them."""
        functions = {"to_string": None if self.to_string is str else self.to_string, "should_log": self.should_log}
        return ", ".join(f"{name}={shown_function(fn)}" for name, fn in functions.items() if fn is not None)

    def __call__(self, item: Any) -> None:
        """Log one item, if anybody listens."""
        logger = logging.getLogger(f"dstream.peek.{self.stage}")
        if is_heard(logger) and (self.should_log is None or self.should_log(item)):
            tell(logger, self.to_string(item))


def under_the_name(node: Node, stage: str) -> Node:
    """Return a node that logs what a stage gives under the name of that stage; any other node as it is."""
    if isinstance(node, Peek) and isinstance(node.action, Logged):
        return replace(node, action=replace(node.action, stage=stage))
    return node
