"""What tables of groups become: what their collector's own finisher gives, beside the first rank and the key."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any

import pytest

from collectors import averaging, counting, summing, summing_double
from dstream.failures.account import known_of
from dstream.operators.columns.group_results import finished_entries, finished_tables
from dstream.operators.columns.groups import grouped, groups_of_texts
from dstream.operators.columns.strings import Strings
from dstream.operators.columns.values import Ints, column_of
from dstream.operators.rows.blocks import given
from dstream.plan.steps import Step
from dstream.values import Entry

_STEP = Step("aggregate_by_key", None, 1, 1)


def _ints(*values: int) -> Ints:
    found = column_of(list(values))
    assert isinstance(found, Ints)
    return found


def _texts(*values: str) -> Strings:
    found = column_of(list(values))
    assert isinstance(found, Strings)
    return found


_OF_INTS = grouped(_ints(7, 8, 7), _ints(1, 2, 4))
_OF_TEXTS = groups_of_texts(_texts("a", "b", "a"), _ints(1, 2, 4))


def _failing(container: Any) -> Any:
    return 1 // 0


@pytest.mark.parametrize(
    ("downstream", "values"),
    [
        (counting(), (2, 1)),
        (replace(counting(), finisher=operator.neg), (-2, -1)),
        (summing(), (5, 2)),
        (summing_double(lambda n: n), (5.0, 2.0)),
        (averaging(), (2.5, 2.0)),
        (replace(averaging(), finisher=repr), ("1407374883553282", "562949953421313")),
    ],
)
@pytest.mark.parametrize(("table", "keys"), [(_OF_INTS, (7, 8)), (_OF_TEXTS, ("a", "b"))])
def test_groups_are_finished_as_their_collector_does(downstream: Any, values: Any, table: Any, keys: Any) -> None:
    """In columns if it is known what that gives, and otherwise by the finisher itself."""
    table = replace(table, sums=()) if downstream.on_columns().finds == "count" else table
    (block,) = finished_tables(downstream, [table])  # type: ignore[misc]
    assert repr(list(given(block))) == repr(list(zip((0, 1), keys, values, strict=True)))


@pytest.mark.parametrize("downstream", [summing(), summing_double(lambda n: n)])
def test_a_function_makes_of_a_group_what_goes_on(downstream: Any) -> None:
    """Without one, entries do."""
    plain = finished_entries(downstream, None, _STEP, [_OF_INTS])
    made = finished_entries(downstream, lambda key, total: (total, key), _STEP, [_OF_INTS])
    assert [each for block in plain or () for each in given(block)] == [Entry(7, 5), Entry(8, 2)]
    assert [each for block in made or () for each in given(block)] == [(5, 7), (2, 8)]


def test_keys_of_two_types_make_no_table() -> None:
    """They go on as lists."""
    assert finished_tables(summing(), [_OF_INTS, _OF_TEXTS]) is None


@pytest.mark.parametrize(
    ("downstream", "to"), [(replace(summing(), finisher=_failing), None), (summing(), lambda key, total: 1 // 0)]
)
def test_a_failure_names_the_key_of_its_group(downstream: Any, to: Any) -> None:
    """Whether the finisher fails, or what takes its result."""
    found = finished_entries(downstream, to, _STEP, [_OF_INTS])
    with pytest.raises(ZeroDivisionError) as caught:
        [list(given(block)) for block in found or ()]
    failure = known_of(caught.value)
    assert failure is not None
    assert failure.given == "in the group of the key 7"
