"""How files are divided among splits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dstream.connectors.files.splits import LARGEST_SPLIT, OPENING, SMALLEST_SPLIT, group, plan
from dstream.filesystem.access import File
from sources import text_files

MIB = 1 << 20


def files(*sizes):
    """Make files of these sizes, named f0, f1, and so on."""
    return [File(f"f{n}", f"f{n}", size) for n, size in enumerate(sizes)]


def spans(splits):
    """Show splits as literals."""
    return [[(part.file.name, part.start, part.end) for part in split] for split in splits]


def always(file):
    """Take every file for divisible."""
    return True


def never(file):
    """Take no file for divisible."""
    return False


def test_plan_cuts_a_large_file_by_parallelism():
    """Four busy tasks have a quarter each; opening the file counts as 64 KiB."""
    [first, second, third, fourth] = plan(files(40 * MIB), 4, always)

    assert spans([first]) == [[("f0", 0, 10 * MIB - OPENING * 3 // 4)]]
    assert first[0].end == second[0].start
    assert fourth[0].end == 40 * MIB
    assert third[0].end - third[0].start == 10 * MIB + OPENING // 4


def test_plan_bounds_the_size_of_a_split():
    """Neither below 1 MiB nor above 64 MiB, whatever the parallelism."""
    huge = plan(files(1 << 30), 1, always)
    small = plan(files(5 * MIB), 1_000, always)

    assert all(part.end - part.start <= LARGEST_SPLIT for [part] in huge)
    assert all(part.end - part.start >= SMALLEST_SPLIT - OPENING for [part] in small)
    assert (len(huge), len(small)) == (17, 5)


def test_plan_groups_small_neighbours():
    """Ten thousand small files are not ten thousand tasks, and keep their order."""
    splits = plan(files(*[100] * 10_000), 8, always)

    assert 8 <= len(splits) <= 20
    assert [part.file.name for split in splits for part in split] == [f"f{n}" for n in range(10_000)]


def test_plan_never_cuts_what_is_indivisible():
    """A compressed file is one part without an end; so is an empty one, and one of unknown size."""
    assert spans(plan(files(9 * MIB), 4, never)) == [[("f0", 0, None)]]
    assert spans(plan(files(0, None), 4, always)) == [[("f0", 0, None), ("f1", 0, None)]]


def test_plan_of_many_tasks_spreads_whole_files():
    """Four indivisible files of one size keep four tasks busy."""
    assert [len(split) for split in plan(files(*[8 * MIB] * 4), 4, never)] == [1, 1, 1, 1]


def test_group_keeps_the_order_and_shares_evenly():
    """Units are never cut."""
    assert group([(MIB, "a"), (MIB, "b"), (MIB, "c"), (MIB, "d")], 2) == [("a", "b"), ("c", "d")]
    assert group([], 4) == []


@settings(deadline=None)
@given(st.lists(st.integers(0, 200 * MIB), max_size=20), st.integers(-1, 64), st.data())
def test_plan_covers_every_byte_once_in_order(sizes, parallelism, data):
    """The parts of each file join without gap or overlap, in the order of the files."""
    whole = {f"f{n}" for n in range(len(sizes)) if data.draw(st.booleans())}
    splits = plan(files(*sizes), parallelism, lambda file: file.name not in whole)
    expected = [(file.name, file.size) for file in files(*sizes)]

    covered = {}
    for name, start, end in (span for split in spans(splits) for span in split):
        assert covered.setdefault(name, 0) == start
        covered[name] = end if end is not None else dict(expected)[name]
    assert list(covered.items()) == expected


@pytest.mark.parametrize("parallelism", [1, 2, 8])
def test_plan_reads_many_small_files_in_order(tmp_path, read, parallelism):
    """Sorted path order, then line order, for every parallelism."""
    for n in range(40):
        (tmp_path / f"{n:02}.txt").write_text(f"{n}a\n{n}b\n")

    assert read(text_files(tmp_path), parallelism) == [f"{n}{letter}" for n in range(40) for letter in "ab"]
