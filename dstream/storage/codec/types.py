"""`Type`: what the keys, values or items of a collection are; `kinds` has its subclasses, `hints` makes them."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from dstream.storage.codec.classes import Classes

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["NOTHING", "Nothing", "Type"]


class Nothing(enum.Enum):
    """Says that there is no such value, where None may be one."""

    NOTHING = "NOTHING"


NOTHING: Final = Nothing.NOTHING


class Type(ABC):
    """What values are; immutable, picklable, and equal to another one of the same structure."""

    @staticmethod
    def of(hint: Any) -> Type:
        """Return the type that a hint such as `list[float]` or a dataclass means.

        Raises:
            TypeError: `hint` is no type.
        """
        from dstream.storage.codec import hints  # it makes subclasses of this class, so it cannot come first

        return hints.type_of(hint)

    @staticmethod
    def infer(value: Any) -> Type:
        """Return the type of a value."""
        from dstream.storage.codec import hints

        return hints.infer(value)

    @staticmethod
    def from_json(data: Any, classes: Classes, hint: Any = None) -> Type:
        """Return the type that `to_json` has described; a class that is not found leaves it without a hint."""
        from dstream.storage.codec import hints

        return hints.from_json(data, classes, hint)

    @property
    @abstractmethod
    def name(self) -> str:
        """What a user would write: `int`, `list[float]`, `shop:Order`."""

    @property
    @abstractmethod
    def hint(self) -> Any:
        """The Python type; None if its class cannot be found here."""

    @property
    def arrow(self) -> pa.DataType | None:
        """The type of a column of such values; None if there is none, and values are kept as bytes."""
        return None

    @property
    def is_immutable(self) -> bool:
        """Whether a value that fits may be handed out without copying."""
        return False

    @property
    def is_open(self) -> bool:
        """Whether a part of it is not known yet, such as a field that is annotated with Any."""
        return False

    @abstractmethod
    def fits(self, value: Any) -> bool:
        """Say whether a value is exactly of this type, so that a column gives it back unchanged."""

    def refined(self, value: Any) -> Type:
        """Return this type with its open parts inferred from a value, and closed where the value says nothing."""
        return self

    def shaped(self, key: Any) -> Any:
        """Return the equal of a key in normal form that fits this type, or NOTHING."""
        return key if self.fits(key) else NOTHING

    @abstractmethod
    def to_array(self, values: Sequence[Any]) -> pa.Array | None:
        """Return the column of values that fit or are None; None if one of them does not fit."""

    @abstractmethod
    def from_array(self, array: pa.Array) -> list[Any]:
        """Return the values of a column of type `arrow`, None where it is null."""

    @abstractmethod
    def to_json(self) -> Any:
        """Return what describes it in JSON."""
