"""A picture of a large plan shows its beginning, its end, and how much is between them."""

from __future__ import annotations

import pytest

from dstream.explain.text import folded, shortened
from dstream.plan.stages import Call


def test_few_stages_are_all_shown(chain):
    """Nothing is folded that has room."""
    assert [one.name for one in folded(chain(3).stages, 3)] == ["stage 1", "stage 2", "stage 3"]


@pytest.mark.parametrize(("count", "most"), [(4, 3), (5, 4), (50, 7), (20_000, 14)])
def test_the_middle_of_many_stages_becomes_one(chain, count, most):
    """The picture has as many boxes as it may, the stages keep their numbers, and none is lost."""
    shown = folded(chain(count).stages, most)

    assert (len(shown), shown[0].name, shown[-1].name) == (most, "stage 1", f"stage {count}")
    assert sum(one.stage.folded or 1 for one in shown) == count


def test_a_folded_chain_stays_a_chain(chain):
    """Each box reads the one before it, the one for the middle too."""
    shown = folded(chain(100).stages, 6)

    assert [[exchange.source for exchange in one.stage.inputs] for one in shown] == [[], [0], [1], [2], [3], [4]]
    assert shown[2].stage.calls == (Call("... 95 more stages ..."),)


def test_a_folded_concat_reads_each_box_once(fan):
    """Thousands of parts behind one box are one arrow."""
    last = folded(fan(1000).stages, 8)[-1]

    assert [exchange.source for exchange in last.stage.inputs] == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(("count", "most"), [(3, 3), (4, 3), (20_000, 9)])
def test_calls_are_shortened_in_the_middle(count, most):
    """First and last calls stay; the rest is counted."""
    calls = [Call(str(number)) for number in range(count)]
    short = shortened(calls, most)

    assert (len(short), short[0], short[-1]) == (min(count, most), calls[0], calls[-1])
    assert count <= most or f"... {count - most + 1:,} more calls ..." in [call.label for call in short]
