"""The form of dictionaries whose keys are no names: maps of Parquet and of tables have keys of any type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dstream.values.blaming import shown
from sources.forms import Form, Unfit, unfit

__all__ = ["Keyed"]


@dataclass(frozen=True)
class Keyed:
    """Takes a dictionary whose keys have one form, and whose values have another one.

    Attributes:
        keys: the form of the keys.
        each: the form of the values.
    """

    keys: Form
    each: Form

    expected = "object"

    def made(self, value: Any) -> dict[Any, Any]:
        """Return the dictionary."""
        if type(value) is not dict:
            raise unfit(self, value)
        made = {self._key(key): self._part(key, part) for key, part in value.items()}
        if len(made) < len(value):
            raise Unfit(f"two keys of {shown(value)} become one")
        return made

    def _key(self, key: Any) -> Any:
        try:
            return self.keys.made(key)
        except Unfit as error:
            raise Unfit(f"a key: {error.said('field')}") from error.__cause__

    def _part(self, key: Any, part: Any) -> Any:
        try:
            return self.each.made(part)
        except Unfit as error:
            raise error.within(f"[{shown(key)}]") from error.__cause__
