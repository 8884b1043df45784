"""`Encoded`: a dictionary-encoded column of immutable objects, and functions called once for each distinct value.

Dates, times and decimals have no arithmetic of NumPy with Python's results, and repeat. So Python is asked, for each
distinct value that the rows have, and the results are placed by the codes.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import accumulate, chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dstream.base.records import record

__all__ = ["ENCODED_TYPES", "Encoded"]

ENCODED_TYPES: frozenset[type] = frozenset(
    {datetime.date, datetime.datetime, datetime.time, datetime.timedelta, Decimal}
    | {bool, bytes, float, int, str, type(None)}
)
"""Types whose objects cannot be changed, so that rows may share one, and whose operations have no side effects."""


# No `__eq__`: arrays are compared member by member, which has no truth.
@record(eq=False)
class Encoded:
    """Objects of `ENCODED_TYPES` that equal themselves.

    Attributes:
        codes: the place of the value of each row in `objects`.
        objects: the values; some may be equal, and some in no row.
    """

    codes: NDArray[np.int64]
    objects: list[Any]

    def __len__(self) -> int:
        return len(self.codes)

    def tolist(self) -> list[Any]:
        """Return the value of each row."""
        return list(map(self.objects.__getitem__, self.codes.tolist()))

    def taken(self, places: Any) -> Encoded:
        """Return the rows at some places."""
        found = Encoded(self.codes.take(places), self.objects)
        # Few rows are pickled without the values of all others.
        return found.compact() if len(self.objects) > len(found) else found

    def compact(self) -> Encoded:
        """Return the rows without values that are in none."""
        is_used = np.bincount(self.codes, minlength=len(self.objects)) > 0
        if is_used.all():
            return self
        places = np.flatnonzero(is_used)
        numbers = np.cumsum(is_used) - 1
        return Encoded(numbers.take(self.codes), [self.objects[place] for place in places.tolist()])

    @staticmethod
    def stacked(columns: Sequence[Encoded]) -> Encoded:
        """Return the rows of several columns, one behind another."""
        columns = [each.compact() for each in columns]
        starts = accumulate((len(each.objects) for each in columns), initial=0)
        codes = [each.codes + start for each, start in zip(columns, starts, strict=False)]
        return Encoded(np.concatenate(codes), list(chain.from_iterable(each.objects for each in columns)))

    def truth(self) -> NDArray[np.bool_]:
        """Return for each row whether Python takes the value for true."""
        return self._tested(bool)

    def are_none(self) -> NDArray[np.bool_]:
        """Return for each row whether the value is None."""
        return self._tested(lambda value: value is None)

    def _tested(self, test: Callable[[Any], bool]) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = np.array([test(each) for each in self.objects], np.bool_).take(self.codes)
        return found

    def equal_codes(self) -> NDArray[np.int64]:
        """Return an int for each row, the same for values that are one key of a dictionary."""
        numbers: dict[Any, int] = {}
        found = [numbers.setdefault(each, len(numbers)) for each in self.objects]
        return np.array(found, np.int64).take(self.codes)
