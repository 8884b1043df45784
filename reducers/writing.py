"""`WritingReducer`, which all reducers are, and `replacing`, which changes one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dstream.spi import Output, Reducer, Writing
from dstream.spi.meant import hint_of_a_field

__all__ = ["WritingReducer", "checked_function", "checked_text", "kind_of", "replacing"]

T = TypeVar("T")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, repr=False)
class WritingReducer(Generic[T, R]):
    """A reducer that says what to write, and leaves the writing to the context."""

    output: Output

    def reduce_into(self, context: Writing, node: Any) -> R:
        """Run the plan that ends in `node` and return the collection that its items were written into."""
        collection: R = context.write(node, self.output)
        return collection

    def __repr__(self) -> str:
        return self.output.label


def replacing(reducer: Reducer[T, R]) -> Reducer[T, R]:
    """Let what a reducer writes take the place of everything that the collection held.

    The old content disappears in the commit that the new one appears in: nobody sees an empty collection.

    **Parallelism**, **Guarantee**: those of `reducer`.
    **On re-run**: the result is the same, however often it runs.

    Raises:
        TypeError: `reducer` is none of this package.

    Example:
        >>> from reducers import replacing, to_ilist
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     first = ctx.stream("ab").collect(to_ilist("letters"))
        ...     list(ctx.stream("xyz").collect(replacing(to_ilist("letters"))))
        ['x', 'y', 'z']
    """
    if not isinstance(reducer, WritingReducer):
        raise TypeError(f"replacing() takes a reducer of this package, such as to_imap(...), not {kind_of(reducer)}")
    output = dataclasses.replace(reducer.output, replace=True, label=f"replacing({reducer.output.label})")
    return WritingReducer(output)


def checked_function(value: F, name: str) -> F:
    """Return `value` if it can be called.

    Raises:
        TypeError: it cannot; the message names the argument.
    """
    if not callable(value):
        raise TypeError(f"{name} must be callable, not {kind_of(value)}{hint_of_a_field(value)}")
    return value


def checked_text(value: Any, name: str) -> str:
    """Return `value` if it is a text that is not empty.

    Raises:
        TypeError: it is no str.
        ValueError: it is empty.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {kind_of(value)}")
    if not value:
        raise ValueError(f"{name} must not be empty")
    return value


def kind_of(value: object) -> str:
    """Return the name of the type of `value`."""
    return type(value).__name__
