"""Keys of the rows of a join: ints in an array of NumPy, or texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dstream.engine.kernels.columns.column_groups import stable_hashes_of_ints
from dstream.engine.kernels.columns.column_texts import Texts
from dstream.engine.kernels.columns.column_values import Ints
from dstream.keys import stable_hashes

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MOST_BYTES", "Int64s", "Keys", "bytes_of", "each_once", "hashes_of", "keys_at", "keys_in", "together"]

Int64s = NDArray[np.int64]
Keys: TypeAlias = Int64s | Texts
"""Exact ints of 64 bits, or exact texts."""

MOST_BYTES = 2**30
"""An Arrow array of texts has places of 32 bits: so many bytes of keys, or one batch of them, are put together."""


def keys_in(column: Any) -> Keys | None:
    """Return the values of a column as keys; None if they are no ints and no texts."""
    if isinstance(column, Ints):
        return column.values
    return column if isinstance(column, Texts) else None


def keys_at(keys: Keys, places: Int64s) -> Keys:
    """Return the keys at these places, in their order."""
    return keys.taken(places) if isinstance(keys, Texts) else keys.take(places)


def each_once(keys: Keys) -> Keys:
    """Return each key once, in any order."""
    return Texts(keys.values.unique(), is_ascii=keys.is_ascii) if isinstance(keys, Texts) else np.unique(keys)


def bytes_of(keys: Keys) -> int:
    """Return how many bytes the keys have, about."""
    return keys.nbytes() if isinstance(keys, Texts) else int(keys.nbytes)


def hashes_of(keys: Keys) -> Int64s:
    """Return the `stable_hash` of each key."""
    if isinstance(keys, Texts):
        return np.array(stable_hashes(keys.tolist()), np.int64)
    return stable_hashes_of_ints(keys)


def together(keys: Sequence[Keys]) -> pa.Array[Any]:
    """Return keys of one type one after another, as Arrow has them; there is at least one batch of them."""
    import pyarrow as pa

    return pa.concat_arrays([each.values if isinstance(each, Texts) else pa.array(each) for each in keys])
