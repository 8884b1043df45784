"""When shards are written as a whole, and when their changes are put together."""

from __future__ import annotations

from dstream.operators.state.index import Part, is_outweighed, parts_to_merge


def _parts(*changes: int, snapshot: int = 1000, length: int = 10) -> list[Part]:
    return [Part("s", 0, snapshot, 1), *(Part("d", 0, length, count) for count in changes)]


def test_growth_of_a_new_shard_begins_with_a_snapshot():
    """There is nothing on which a change could stand."""
    assert is_outweighed([], 0, shard=0)


def test_growth_ends_when_changes_outweigh_the_snapshot():
    """Not before: the keys that nothing comes for cost nothing."""
    assert not is_outweighed(_parts(*[1] * 99), 10, shard=0)
    assert is_outweighed(_parts(*[1] * 99), 11, shard=0)
    assert not is_outweighed(_parts(*[1] * 99), 11, shard=0, patience=2)


def test_growth_ends_when_changes_are_thousands():
    """However small they are, each has to be applied when the shard is loaded."""
    assert not is_outweighed(_parts(*[111] * 9, snapshot=10**9), 10, shard=0)
    assert is_outweighed(_parts(*[111] * 10, snapshot=10**9), 10, shard=0)


def test_growth_of_shards_ends_at_different_times():
    """Shards that grow alike are not written at once."""
    ends = [next(n for n in range(300) if is_outweighed(_parts(*[1] * n), 10, shard)) for shard in range(64)]

    assert (min(ends), max(ends)) == (100, 199)
    assert len(set(ends)) > 55


def test_growth_puts_sixteen_changes_together():
    """And then sixteen such parts."""
    assert [parts_to_merge(_parts(*[1] * count), 0) for count in (0, 14, 15, 16)] == [0, 0, 15, 16]
    assert parts_to_merge(_parts(*[16] * 15, *[1] * 14), 0) == 0
    assert parts_to_merge(_parts(*[16] * 14, *[1] * 15), 0) == 15
    assert parts_to_merge(_parts(*[16] * 15, *[1] * 15), 0) == 30
    assert parts_to_merge(_parts(*[256] * 15, *[16] * 15, *[1] * 15), 0) == 45


def test_growth_never_merges_the_snapshot():
    """It is one change as well, but holds the whole."""
    assert parts_to_merge(_parts(*[1] * 14), 0) == 0


def test_growth_keeps_parts_few_and_copies_little():
    """Of 5,000 changes, each is copied once for each power of 16, and there are never many parts."""
    for shard in (0, 7):
        counts: list[int] = []
        most = copied = 0
        for _ in range(5_000):
            merges = parts_to_merge(_parts(*counts), shard)
            kept = len(counts) - merges
            counts[kept:] = [1 + sum(counts[kept:])]
            most, copied = max(most, len(counts)), copied + counts[-1] - 1

        assert (most <= 66, copied <= 3 * 5_000) == (True, True)
