"""`HashJoin`: pairs of a left item and a right one, where the right side goes to every task and the left one stays."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dstream as ds
from dstream.engine.spark.run import backend
from dstream.engine.tasks import process
from dstream.engine.tasks.process import InFunction
from dstream.errors import IllegalStateError, UnstableKeyError, UnsupportedError
from dstream.failures import failure
from dstream.operators.joins.lookup import RightSide, table_here, table_of
from dstream.plan import here, is_ordered, rewrite
from dstream.plan.operations.pairs import HashJoin
from dstream.plan.operations.streams import Fork
from dstream.plan.steps import Step
from dstream.stream import Stream

STEP = Step(".hash_join(...)", None, 2, 3)


def itself(item: Any) -> Any:
    """Return the item, which is its own key."""
    return item


def first(pair: tuple[Any, Any]) -> Any:
    """Return the key of a pair."""
    return pair[0]


def second(pair: tuple[Any, Any]) -> Any:
    """Return what stands behind the key."""
    return pair[1]


def joined(left: Any, right: Any, left_key: Callable[[Any], Any] = itself, **more: Any) -> Stream[Any]:
    """Return the stream of a hash join whose right items are pairs, of which the second part is wanted."""
    options = {"right_key": first, "projecting": second, **more}
    return Stream(HashJoin(left._node, right._node, left_key, step=here(), **options), left._runtime)


def test_hash_join_keeps_the_order_of_both_sides(engine):
    """Items of the left in order, each with its matches in the order of the right side; None where nothing matches."""
    left = engine.stream([3, 1, 2, 1], 3)
    right = engine.stream([(1, "a"), (3, "x"), (1, "b"), (3, None)], 2)

    assert joined(left, right).to_list() == [(3, "x"), (3, None), (1, "a"), (1, "b"), (2, None), (1, "a"), (1, "b")]


def test_it_has_the_order_of_its_left_side():
    """Later steps keep an order only if there is one."""
    left, right = Stream.of(1, 2), Stream.of((1, "a")).unordered()

    assert is_ordered(rewrite(joined(left, right)._node))
    assert not is_ordered(rewrite(joined(left.unordered(), Stream.of((1, "a")))._node))


def test_an_inner_hash_join_drops_what_matches_nothing(engine):
    """A matching value of None is a match."""
    left, right = engine.stream(range(5), 3), engine.stream([(1, "a"), (3, None)])

    assert joined(left, right, is_inner=True).to_list() == [(1, "a"), (3, None)]
    assert joined(left, engine.stream([], 2), is_inner=True).to_list() == []


def test_keys_are_equal_as_those_of_join(engine):
    """`1`, `1.0` and `True` are one key, None is a key like any other, and every NaN is one."""
    nan = float("nan")
    left = engine.stream([True, None, nan, (1, None), "1"], 2)
    right = engine.stream([(1.0, "one"), (None, "none"), (float("nan"), "nan"), ((1, None), "pair")], 2)

    values = joined(left, right).map(second).to_list()
    assert values == ["one", "none", "nan", "pair", None]
    assert sorted(left.map(lambda key: (key, 0)).join(right).map(lambda e: e.value[1]).to_list()) == sorted(values[:4])


keys = st.sampled_from([0, 1, 2, None, "k", (1, None)])


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(lefts=st.lists(keys, max_size=9), rights=st.lists(st.tuples(keys, st.integers(0, 9)), max_size=9))
def test_it_is_what_two_loops_give(local_context, lefts, rights):
    """In the same order."""
    by_hand = [(left, [value for key, value in rights if key == left] or [None]) for left in lefts]

    found = joined(local_context.stream(lefts), local_context.stream(rights)).to_list()
    assert found == [(left, value) for left, values in by_hand for value in values]


def test_without_projecting_pairs_have_the_right_items(engine):
    """Steps behind the join see pairs, also past a limit."""
    left, right = engine.stream(range(6), 3), engine.stream([(1, "a"), (4, "b")])

    assert joined(left, right, projecting=None, is_inner=True).limit(1).to_list() == [(1, (1, "a"))]


def test_a_key_of_the_left_that_fails_names_the_item(engine):
    """And the step with its line."""
    with pytest.raises(ZeroDivisionError) as raised:
        joined(engine.stream(range(4), 2), engine.stream([(1, 1)]), lambda n: 1 // (n - 2)).to_list()

    found = failure(raised.value)
    assert (found.item, found.step.label.startswith(".hash_join(")) == (2, True)
    assert os.path.samefile(found.where.file, __file__)


@pytest.mark.parametrize("broken", ["right_key", "projecting"])
def test_a_function_of_the_right_that_fails_names_the_item(engine, broken):
    """Also inside of a batch."""
    with pytest.raises(ZeroDivisionError) as raised:
        joined(engine.stream([1]), engine.stream([(1, 1), (0, 0)]), **{broken: lambda pair: 1 // pair[0]}).to_list()

    assert failure(raised.value).item == (0, 0)


def test_a_key_without_a_hash_is_refused(engine):
    """On either side."""
    with pytest.raises(UnstableKeyError):
        joined(engine.stream([[1]]), engine.stream([(1, 1)])).to_list()
    with pytest.raises(UnstableKeyError):
        joined(engine.stream([1]), engine.stream([([1], 1)])).to_list()


def test_a_right_side_above_the_limit_is_refused(engine):
    """The error says the size, the limit, and what to use instead; it names the step."""
    large = engine.stream(range(3000), 3).map(lambda n: (n, n))
    with pytest.raises(UnsupportedError, match=r"has (at least )?[\d,]+ bytes.* is 1,000.*join\(\)") as raised:
        joined(engine.stream([1]), large, broadcast_limit=1000).to_list()

    assert failure(raised.value).step.label.startswith(".hash_join(")


def test_parts_below_the_limit_are_measured_together(spark_context):
    """No task of the right side has too much; all of them have."""
    large = spark_context.stream(range(4000), 8).map(lambda n: (n, n))
    with pytest.raises(UnsupportedError, match=r"has [\d,]+ bytes"):
        joined(spark_context.stream([1]), large, broadcast_limit=5000).to_list()


def test_the_limit_of_the_context_counts(data):
    """A join that has one of its own goes by that."""
    with ds.connect(engine="local", storage=data, broadcast_limit="1k") as context:
        left, right = context.stream([1]), context.stream([(n, n) for n in range(900)])
        with pytest.raises(UnsupportedError, match=r"is 1,024"):
            joined(left, right).to_list()
        assert joined(left, right, broadcast_limit=2**20).to_list() == [(1, 1)]


def test_what_cannot_be_pickled_is_not_measured_here(local_context):
    """On the local engine nothing travels."""
    right = local_context.stream([(1, lambda: 7)])

    ((_, function),) = joined(local_context.stream([1]), right).to_list()
    assert function() == 7


def test_the_left_side_may_have_no_end(engine):
    """The right one may not."""
    endless = Stream(Stream.iterate(0, lambda n: n + 1)._node, engine.context)
    right = engine.stream([(2, "b"), (5, "e")])

    assert joined(endless, right, is_inner=True).limit(2).to_list() == [(2, "b"), (5, "e")]
    with pytest.raises(IllegalStateError, match="the right side of a hash join"):
        joined(right, endless).to_list()


def test_the_right_side_is_there_before_the_left_one_is_read(local_context):
    """And no more of the left is read than is wanted."""
    seen: list[Any] = []
    left = local_context.stream([1, 2, 3]).peek(seen.append)
    right = local_context.stream([(1, "a"), (9, "z")]).peek(seen.append)

    assert joined(left, right).limit(1).to_list() == [(1, "a")]
    assert seen == [(1, "a"), (9, "z"), 1]


def test_peek_sees_both_sides(engine):
    """Each item once."""
    lefts: list[Any] = []
    rights: list[Any] = []
    left, right = engine.stream([1, 2], 2).peek(lefts.append), engine.stream([(1, "a"), (2, "b")]).peek(rights.append)

    assert joined(left, right).map(second).to_list() == ["a", "b"]
    assert (lefts, rights) == ([1, 2], [(1, "a"), (2, "b")])


def test_a_shared_right_side_is_computed_once(engine, tmp_path):
    """Two hash joins read it, and a step of the left side, too."""
    seen = tmp_path / "seen"

    def noted(n: int) -> tuple[int, int]:
        with seen.open("a") as file:
            file.write(f"{n}\n")
        return n, n * 10

    right = Stream(Fork(engine.stream(range(3), 2).map(noted)._node), engine.context)
    both = joined(joined(engine.stream([2, 0]), right), right, lambda pair: pair[0])

    assert both.to_list() == [((2, 20), 20), ((0, 0), 0)]
    assert sorted(seen.read_text().split()) == ["0", "1", "2"]


def test_a_large_right_side_goes_as_a_broadcast(spark_context, monkeypatch):
    """Once to each process, as a table; a second join has a table of its own."""
    monkeypatch.setattr(backend, "LARGEST_PASSENGER", 0)
    right = spark_context.stream([(n, str(n)) for n in range(50)], 3)
    left = spark_context.stream(range(0, 100, 20), 4)

    assert joined(left, right).to_list() == [(0, "0"), (20, "20"), (40, "40"), (60, None), (80, None)]
    twice = joined(joined(left, right, is_inner=True), right, lambda pair: pair[0] + 1)
    assert twice.map(second).to_list() == ["1", "21", "41"]


def test_a_process_makes_a_table_once_for_a_run(monkeypatch):
    """It lets go of it when it works for another run."""
    side, made = RightSide(first, second, STEP, 10_000), []
    payloads = tuple(data for _, data in side.batches([(1, "a"), (1, "b"), (None, "n")]))
    monkeypatch.setattr(process, "table_of", lambda *given: made.append(1) or table_of(*given))
    for run in ("a", "a", "b"):
        process.tables_of_run(run)
        assert process.table_made_once(InFunction("x", payloads), STEP) == {1: ["a", "b"], None: ["n"]}

    assert made == [1, 1]
    process.tables_of_run("")
    assert table_here(side, [(1, "a"), (1, "b")]) == {1: ["a", "b"]}


def test_it_is_explained(spark_context, capsys):
    """Two jobs bring the right side, nothing is shuffled, and the last job has the table."""
    joined(spark_context.stream(range(9), 3), spark_context.stream([(1, 1)])).explain()

    text = capsys.readouterr().out
    assert "3 jobs, 0 shuffles" in text
    assert "each process has the whole right side, as a table" in text
