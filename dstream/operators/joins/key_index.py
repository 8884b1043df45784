"""`KeyIndex`: a hash table of ints or strings in arrays, made once and probed with many keys at a time. Loads NumPy."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dstream.operators.columns.strings import Strings, offsets_and_bytes

__all__ = ["Int64s", "KeyIndex", "Keys", "keys_at"]


Int64s = NDArray[np.int64]
Keys: TypeAlias = Int64s | Strings
"""Exact ints of 64 bits, or exact strings."""


def keys_at(keys: Keys, places: Int64s) -> Keys:
    """Return the keys at these positions, in the order of the positions."""
    return keys.taken(places) if isinstance(keys, Strings) else keys.take(places)


class KeyIndex:
    """Index that numbers keys by first occurrence: open addressing, with a round of probes for all rows at once.

    Strings are found by hashes of 64 bits, and compared then. A dict replaces the slots if two strings have one hash,
    or if most keys collide in a few slots.

    Args:
        keys: any keys, also equal ones.

    Attributes:
        keys: the distinct keys.
        numbers: the numbers of the input keys.
        is_unique: whether all input keys were different.
    """

    def __init__(self, keys: Keys) -> None:
        self._dict: dict[Any, int] | None = None
        self._marks = _marks_of(keys)
        # At most half of the slots are taken: probes are few.
        bits = max(_FEWEST_BITS, (2 * len(keys) - 1).bit_length())
        self._shift, self._last = np.uint64(64 - bits), (1 << bits) - 1
        self._slots: NDArray[np.int32] = np.full(1 << bits, -1, np.int32)
        self._is_mixed_twice = False
        first = self._filled(len(keys), _FEW_ROUNDS)
        if first is None:
            # One product spreads most keys better, but multiples of Fibonacci's numbers remain side by side.
            self._is_mixed_twice = True
            self._slots.fill(-1)
            first = self._filled(len(keys), _MOST_ROUNDS)
        if first is None or not _are_equal(keys, np.arange(len(keys)), keys, first):
            self._dict = {}
            firsts = [self._dict.setdefault(key, place) for place, key in enumerate(keys.tolist())]
            first = np.array(firsts, np.int64)
        is_first = first == np.arange(len(keys))
        self.is_unique = bool(is_first.all())
        self.keys, self.numbers = keys, first.astype(np.int64)
        if not self.is_unique:
            self._number(keys, is_first)

    def _number(self, keys: Keys, is_first: NDArray[np.bool_]) -> None:
        """Replace positions of first occurrences by the numbers of the keys in all attributes."""
        numbers = np.cumsum(is_first) - 1
        self.keys, self.numbers = keys_at(keys, np.flatnonzero(is_first)), numbers.take(self.numbers)
        if self._dict is not None:
            self._dict = {key: number for number, key in enumerate(self._dict)}
        else:
            self._marks = self._marks[is_first]
            taken = self._slots >= 0
            self._slots[taken] = numbers.take(self._slots[taken])

    def _filled(self, size: int, rounds: int) -> Int64s | None:
        """Fill the slots with positions; return the first position of each mark; None after too many rounds."""
        if size >= 2**31:  # Slots have 32 bits.
            return None
        first: Int64s = np.arange(size)
        places, marks, slots = first, self._marks, self._slots_of(self._marks)
        for _ in range(rounds):
            free = np.flatnonzero(self._slots.take(slots) < 0)
            # Of several positions for one slot, the last one written remains: the first position.
            self._slots[slots.take(free)[::-1]] = places.take(free)[::-1]
            found = self._slots.take(slots)
            is_equal = self._marks.take(found) == marks
            first[places[is_equal]] = found[is_equal]
            left = np.flatnonzero(~is_equal)
            if not len(left):
                return first
            places, marks, slots = places.take(left), marks.take(left), (slots.take(left) + 1) & self._last
        return None

    def find(self, keys: Keys) -> Int64s:
        """Return the number of each key, or -1 if it is missing; the keys have the type of the index."""
        found = None if self._dict is not None else self._probed(_marks_of(keys))
        if found is not None:
            there = np.flatnonzero(found >= 0)
            if _are_equal(keys, there, self.keys, found.take(there)):
                return found
        return self._looked_up(keys)

    def _probed(self, marks: Int64s) -> Int64s | None:
        """Return the number that the mark of each has; None after too many rounds."""
        found = np.full(len(marks), -1, np.int64)
        if not len(self._marks):
            return found
        places, slots = np.arange(len(marks)), self._slots_of(marks)
        for _ in range(_MOST_ROUNDS):
            numbers = self._slots.take(slots)
            # A free slot has the number -1, that of the last mark, whose probes find it before a free slot.
            is_equal = self._marks.take(numbers) == marks
            found[places[is_equal]] = numbers[is_equal]
            left = np.flatnonzero((numbers >= 0) & ~is_equal)
            if not len(left):
                return found
            places, marks, slots = places.take(left), marks.take(left), (slots.take(left) + 1) & self._last
        return None

    def _looked_up(self, keys: Keys) -> Int64s:
        if self._dict is None:
            self._dict = {key: number for number, key in enumerate(self.keys.tolist())}
        return np.array([self._dict.get(key, -1) for key in keys.tolist()], np.int64)

    def _slots_of(self, marks: Int64s) -> Int64s:
        # The upper bits of a product depend on all bits; the upper half of the mark has to get into its lower one.
        mixed = _folded(marks.view(np.uint64))
        if self._is_mixed_twice:
            mixed = _folded(mixed * _MIXER)
        slots: Int64s = ((mixed * _SPREADER) >> self._shift).view(np.int64)
        return slots


_FEWEST_BITS = 4
_FEW_ROUNDS, _MOST_ROUNDS = 64, 256
"""Limits of the rounds of probes: millions of random keys need about 40 rounds."""
_HALF = np.uint64(32)
_SPREADER = np.uint64(0x9E3779B97F4A7C15)


def _folded(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the upper half of each number into its lower half."""
    return numbers ^ (numbers >> _HALF)


def _marks_of(keys: Keys) -> Int64s:
    """Return a number of each key: an int itself, or the hash of a string."""
    return _hashes_of_texts(keys) if isinstance(keys, Strings) else np.ascontiguousarray(keys)


def _hashes_of_texts(texts: Strings) -> Int64s:
    """Return a hash of the bytes of each string, for use within this process: eight bytes at a time."""
    offsets, data = offsets_and_bytes(texts.values)
    starts, lengths = offsets[:-1].astype(np.int64), np.diff(offsets).astype(np.int64)
    # Eight bytes more, so that the last bytes can be read as a number. A number begins at any byte: the strides are 1.
    padded = np.concatenate([data, np.zeros(8, np.uint8)])
    numbers = np.ndarray((len(data) + 1,), "<u8", padded, strides=(1,))
    hashes = lengths.astype(np.uint64) * _SPREADER
    rows, start = np.arange(len(starts)), 0
    while len(rows) and start < _MOST_BYTES:
        few = np.minimum(lengths.take(rows) - start, 8)
        words = numbers[starts.take(rows) + start] & _MASKS.take(few)
        hashes[rows] = _folded((hashes.take(rows) ^ words) * _MIXER)
        start += 8
        rows = rows[lengths.take(rows) > start]
    ends = _hashes_of_bytes(data, starts.take(rows) + start, starts.take(rows) + lengths.take(rows))
    hashes[rows] = _folded((hashes.take(rows) ^ ends) * _MIXER)
    found: Int64s = hashes.view(np.int64)
    return found


_MOST_BYTES = 256
"""Python hashes the rest of longer strings: rounds of eight bytes would take seconds for a string of 1 MB."""


def _hashes_of_bytes(data: NDArray[np.uint8], starts: Int64s, ends: Int64s) -> NDArray[np.uint64]:
    """Return Python's hash of the bytes between each start and its end."""
    of_bytes = [hash(data[start:end].tobytes()) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    return np.array(of_bytes, np.int64).view(np.uint64)


_MASKS = np.array([2 ** (8 * size) - 1 for size in range(9)], np.uint64)
_MIXER = np.uint64(0xFF51AFD7ED558CCD)


def _are_equal(keys: Keys, places: Int64s, others: Keys, at: Int64s) -> bool:
    """Return whether keys equal others, pair by pair; ints with equal marks do."""
    if not isinstance(keys, Strings) or not isinstance(others, Strings):
        return True
    # A string is not compared with itself.
    differ = np.flatnonzero(places != at) if keys is others else np.arange(len(places))
    if not len(differ):
        return True
    from pyarrow.compute import call_function

    both: list[Any] = [keys.taken(places[differ]).values, others.taken(at[differ]).values]
    return bool(call_function("equal", both).true_count == len(differ))
