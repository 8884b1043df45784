"""Groups of ints in columns: as a dictionary makes them, exact, and routed as other keys."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from dstream.keys import stable_hash
from dstream.operators.columns.groups import grouped, merged_tables, parts_by_target, stable_hashes_of_ints, sum_of_ints
from dstream.operators.columns.values import Ints, NotColumnar, column_of

_PRIME = 2**61 - 1


def _ints(values: list[int]) -> Ints:
    column = column_of(values)
    assert isinstance(column, Ints)
    return column


def test_ints_are_routed_as_other_keys_that_equal_them() -> None:
    """Python's hash of an int has a prime modulus, the sign of the int, and no -1."""
    ends = [0, 1, -1, -2, _PRIME, -_PRIME, _PRIME + 1, -_PRIME - 1, 2**63 - 1, -(2**63), 2**62, 2 * _PRIME]
    random = Random(1)
    keys = ends + [random.choice((1, -1)) * random.getrandbits(random.randrange(64)) for _ in range(2000)]

    assert stable_hashes_of_ints(_ints(keys).values).tolist() == list(map(stable_hash, keys))
    table = grouped(_ints(keys))
    placed = {key: target for target, part in parts_by_target(table, 7) for key in part.keys.tolist()}
    assert placed == {key: stable_hash(key) % 7 for key in keys}


@pytest.mark.parametrize("width", [3, 1000, 10**6, 2**40, 2**62])
@pytest.mark.parametrize("largest", [3, 2**40, 2**50])
def test_rows_are_grouped_as_a_dictionary_does(width: int, largest: int) -> None:
    """By keys that lie close together and by others; in the order in which keys were first seen."""
    random = Random(width + largest)
    keys = [random.randrange(-width, width) for _ in range(2000)]
    values = [random.randrange(-largest, largest) for _ in range(2000)]
    expected: dict[int, list[int]] = {}
    for key, value in zip(keys, values, strict=True):
        group = expected.setdefault(key, [0, 0])
        group[0] += 1
        group[1] += value

    whole = grouped(_ints(keys), _ints(values))
    parts = [grouped(_ints(keys[:700]), _ints(values[:700])), grouped(_ints(keys[700:]), _ints(values[700:]))]
    merged = merged_tables([parts[0].ranked(5), parts[1].ranked(1 << 40)])

    lines = [(key, *group) for key, group in expected.items()]
    assert list(whole.lines()) == list(merged.lines()) == lines
    assert sorted(merged.ranks.tolist()) == merged.ranks.tolist()


def test_a_sum_that_may_leave_64_bits_falls_back() -> None:
    """It would wrap in silence."""
    keys = _ints([1, 1, 2])
    with pytest.raises(NotColumnar):
        grouped(keys, _ints([2**62, 2**62, 1]))

    fitting = grouped(keys, _ints([2**61, 2**61, 1]))

    assert list(fitting.lines()) == [(1, 2, 2**62), (2, 1, 1)]
    with pytest.raises(NotColumnar):
        merged_tables([fitting.ranked(0), fitting.ranked(9)])


@pytest.mark.parametrize("values", [[2**63 - 1] * 9, [-(2**63)] * 9, [-(2**63), 2**63 - 1, -1], [1, 2, 3]])
def test_sums_are_of_any_size(values: list[Any]) -> None:
    """Whatever the ints are."""
    assert sum_of_ints(_ints(values)) == sum(values)
