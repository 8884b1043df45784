"""`Optional`: a value that may be absent, as `java.util.Optional`.

Questions are methods (`is_present()`); the truth value is presence, not the truth of the value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from dstream.errors import NoSuchElementError, NullElementError

if TYPE_CHECKING:
    from dstream.stream import Stream

__all__ = ["Optional"]

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")

_ABSENT: Any = object()
"""The value of an empty `Optional`."""


class Optional(Generic[T_co]):
    """A value of type `T`, or nothing. Immutable; compares and hashes by its value.

    Example:
        >>> Optional.of(3).map(lambda n: n + 1)
        Optional[4]
        >>> Optional.empty().or_else("none")
        'none'
        >>> bool(Optional.of(0))
        True
    """

    __slots__ = ("_value",)

    _make_stream: ClassVar[Callable[[tuple[Any, ...]], Any]]
    """The maker of the stream of `stream()`; `dstream.stream` sets it, since it is above this module."""

    def __init__(self, value: T_co | None = None) -> None:
        self._value: Any = _ABSENT if value is None else value

    @staticmethod
    def of(value: U) -> Optional[U]:
        """Return an `Optional` of `value`.

        Raises:
            NullElementError: `value` is None; `of_nullable` takes it.
        """
        if value is None:
            raise NullElementError("Optional.of() takes a value, not None; use Optional.of_nullable()")
        return Optional(value)

    @staticmethod
    def of_nullable(value: U | None) -> Optional[U]:
        """Return an `Optional` of `value`, or an empty one if it is None."""
        return Optional(value)

    @staticmethod
    def of_item(item: U) -> Optional[U]:
        """Return an `Optional` of `item`, even if it is None: `first()` and `last()` of a stream return this.

        Example:
            >>> Optional.of_item(None).is_present(), Optional.of_item(None)
            (True, Optional[None])
        """
        return of_item(item)

    @staticmethod
    def empty() -> Optional[Any]:
        """Return the empty `Optional`."""
        return _EMPTY

    def is_present(self) -> bool:
        """Return whether there is a value."""
        return self._value is not _ABSENT

    def is_empty(self) -> bool:
        """Return whether there is no value."""
        return self._value is _ABSENT

    def get(self) -> T_co:
        """Return the value.

        Raises:
            NoSuchElementError: there is none ("No value present").
        """
        if self._value is _ABSENT:
            raise NoSuchElementError("No value present")
        value: T_co = self._value
        return value

    def or_else(self, other: U) -> T_co | U:
        """Return the value, or `other` if there is none."""
        return other if self._value is _ABSENT else self._value

    def or_else_get(self, supplier: Callable[[], U]) -> T_co | U:
        """Return the value, or the result of `supplier` if there is none."""
        _checked(supplier, "supplier")
        return supplier() if self._value is _ABSENT else self._value

    def or_else_throw(self, supplier: Callable[[], BaseException] | None = None) -> T_co:
        """Return the value, or raise the result of `supplier` (by default as `get` does)."""
        if supplier is not None:
            _checked(supplier, "supplier")
        if self._value is _ABSENT and supplier is not None:
            raise supplier()
        return self.get()

    def if_present(self, action: Callable[[T_co], object]) -> None:
        """Run `action` on the value, if there is one."""
        _checked(action, "action")
        if self._value is not _ABSENT:
            action(self._value)

    def if_present_or_else(self, action: Callable[[T_co], object], empty_action: Callable[[], object]) -> None:
        """Run `action` on the value, or `empty_action` if there is none."""
        _checked(action, "action")
        _checked(empty_action, "empty_action")
        if self._value is _ABSENT:
            empty_action()
        else:
            action(self._value)

    def filter(self, predicate: Callable[[T_co], object]) -> Optional[T_co]:
        """Return this `Optional` if its value satisfies `predicate`, otherwise an empty one."""
        _checked(predicate, "predicate")
        return self if self._value is _ABSENT or predicate(self._value) else _EMPTY

    def map(self, fn: Callable[[T_co], U | None]) -> Optional[U]:
        """Apply `fn` to the value; a None result is an empty `Optional`."""
        _checked(fn, "fn")
        return _EMPTY if self._value is _ABSENT else Optional(fn(self._value))

    def flat_map(self, fn: Callable[[T_co], Optional[U]]) -> Optional[U]:
        """Apply `fn`, which itself returns an `Optional`, to the value.

        Raises:
            TypeError: `fn` returned something else.
        """
        _checked(fn, "fn")
        if self._value is _ABSENT:
            return _EMPTY
        return _checked_result(fn(self._value), "flat_map")

    def or_(self, supplier: Callable[[], Optional[U]]) -> Optional[T_co] | Optional[U]:
        """Return this `Optional`, or the one that `supplier` makes if this is empty.

        Raises:
            TypeError: `supplier` returned something else.
        """
        _checked(supplier, "supplier")
        return _checked_result(supplier(), "or_") if self._value is _ABSENT else self

    def stream(self) -> Stream[T_co]:
        """Return a stream of the value, or an empty one."""
        stream: Stream[T_co] = Optional._make_stream(() if self._value is _ABSENT else (self._value,))
        return stream

    def __bool__(self) -> bool:
        return self._value is not _ABSENT

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Optional) and bool(self._value == other._value)

    def __hash__(self) -> int:
        # Neither the class nor `_ABSENT`: their hashes are addresses, which differ from process to process, and an
        # `Optional` may be a key.
        return hash(("Optional",) if self._value is _ABSENT else ("Optional", self._value))

    def __repr__(self) -> str:
        return "Optional.empty" if self._value is _ABSENT else f"Optional[{self._value!r}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Optional, ()) if self._value is _ABSENT else (of_item, (self._value,))


def of_item(item: U) -> Optional[U]:
    """Return an `Optional` of `item`, even None; at module level, so that restricted pickles find it by name."""
    held: Optional[U] = Optional()
    held._value = item
    return held


def _checked(function: object, name: str) -> None:
    """Refuse a value that is not callable, also where it would not be called.

    Raises:
        TypeError: it cannot; the message names the argument.
    """
    if not callable(function):
        raise TypeError(f"{name} must be a function, not {type(function).__name__}")


def _checked_result(result: Any, name: str) -> Optional[Any]:
    """Refuse a result of the user's function that is no `Optional`."""
    if not isinstance(result, Optional):
        raise TypeError(f"{name}() needs a function that returns an Optional, not {type(result).__name__}")
    return result


_EMPTY: Optional[Any] = Optional()
