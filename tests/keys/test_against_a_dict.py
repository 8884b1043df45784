"""Operations by key on both engines, with keys of every class, against a dict."""

from __future__ import annotations

import pytest

from collectors import counting, frequencies, grouping_by, to_list, to_map, to_set
from tests.keys.specimens import KEYS, NUMBERS

ITEMS = [(key, number) for key, number in zip(KEYS, NUMBERS, strict=True)]
GROUPS = [[n for n in NUMBERS if n == number] for number in dict.fromkeys(NUMBERS)]
FIRST = [KEYS[NUMBERS.index(number)] for number in dict.fromkeys(NUMBERS)]


@pytest.fixture
def items(engine):
    """Keys and which of them are one, equal ones in different partitions."""
    return engine.stream(ITEMS, 3)


def test_groups_are_those_of_a_dict(items):
    """Each key has one group, in first-seen order, under the key that came first."""
    groups = items.collect(grouping_by(lambda item: item[0], to_list()))

    assert [[number for _, number in group] for group in groups.values()] == GROUPS
    assert [(type(key), repr(key)) for key in groups] == [(type(key), repr(key)) for key in FIRST]


def test_counts_sets_and_maps_are_those_of_a_dict(items):
    """`frequencies`, `to_set`, `to_map` and `distinct` agree on what one key is."""
    only_keys = items.map(lambda item: item[0])

    assert list(only_keys.collect(frequencies()).values()) == [len(group) for group in GROUPS]
    assert len(only_keys.collect(to_set())) == len(GROUPS)
    assert list(items.collect(to_map(lambda i: i[0], lambda i: 1, lambda a, b: a + b)).values()) == list(
        map(len, GROUPS)
    )
    assert items.distinct(lambda item: item[0]).map(lambda item: item[1]).to_list() == [group[0] for group in GROUPS]
    assert list(items.collect(grouping_by(lambda i: i[0], counting())).values()) == list(map(len, GROUPS))


def test_joins_are_those_of_a_dict(items, engine):
    """Each key meets the equal keys of the other side, whatever their classes."""
    others = engine.stream(ITEMS[::-1], 2)
    pairs = items.join(others, on=lambda item: item[0]).map(lambda e: (e.value[0][1], e.value[1][1])).to_list()
    both = items.cogroup(others, on=lambda item: item[0]).map(lambda e: [n for side in e.value for _, n in side])

    assert sorted(pairs) == sorted((left, right) for left in NUMBERS for right in NUMBERS if left == right)
    assert sorted(both.to_list()) == sorted(group * 2 for group in GROUPS)
