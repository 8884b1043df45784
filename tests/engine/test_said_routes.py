"""`explain()` says of each function how tasks then run it: programs by chance run, and columns are watched."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from collectors import (
    all_of,
    averaging,
    counting,
    filtering,
    grouping_by,
    mapping,
    max_by,
    summing,
    teeing,
    to_list,
    to_set,
    top_n,
)
from dstream.connectors.dataframes import TableRows
from dstream.gatherers import window_sliding
from dstream.operators.rows import blocks
from dstream.plan import Read, here
from dstream.plan.operations.calls import WithService
from dstream.session.connection import stages_on
from dstream.spi.runtime import Service
from dstream.stream import Stream
from dstream.windows import sliding, tumbling
from sources import Items, text_files
from tests.engine.watched_columns import Watched, check

_ITEMS = 240


@pytest.fixture(autouse=True)
def _few_items_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "0")  # This one process routes keys to itself.
    monkeypatch.setattr(blocks, "_FEWEST", 16)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """What runs over columns in a test."""
    return Watched(monkeypatch)


def numbers(count: int = _ITEMS) -> Stream[int]:
    """Return a stream of a range in two parts."""
    return Stream(Read(Items(range(count), 2)), None)


def _add_one(n: int) -> int:
    return n + 1


def _triple(n: int) -> int:
    return n * 3 % 1009


def _squared(n: int) -> int:
    return n * n % 1013


def _is_odd(n: int) -> bool:
    return n % 2 == 1


def _is_low(n: int) -> bool:
    return n % 10 < 7


def _by_loop(n: int) -> int:
    while n < 0:
        n += 7
    return n


def _by_bits(n: int) -> int:
    return n.bit_length() + n


def _by_another_loop(n: int) -> int:
    while n < 0:
        n += 5
    return n


def _enough(n: int) -> int:
    return (n * 3 + 1) % 7 - 2 * (n - 1) + n


def _enough_of_first(n: int) -> int:
    return (n * 5 + 1) % 911 - 3 * (n - 1) + n


def _negated(n: int) -> int:
    return -n


def _halved(n: int) -> int:
    return n // 2


def _remainder(n: int) -> int:
    return n % 5


def _in_text(n: int) -> Any:
    while True:
        return str(n)


def _in_texts(n: int) -> list[str]:
    return str(n).split("1")


def _parsed(line: str) -> int:
    return int(line)


def _lowered(line: str) -> str:
    return line.lower()


def _price(row: dict[str, int]) -> int:
    return row["price"]


def _of_two(pair: tuple[int, ...]) -> int:
    return pair[0] + pair[1]


def test_columns_go_on_from_step_to_step(watched: Watched) -> None:
    """From a range through several chains, up to the first step that takes items one by one."""
    stream = numbers().map(_add_one).unordered().filter(_is_odd).map(_by_loop).map(_triple)

    notes = check(stream, watched)
    assert notes == {
        ".map(_add_one)": ["columns"],
        ".filter(_is_odd)": ["columns"],
        ".map(_by_loop)": ["Python: has a loop"],
        ".map(_triple)": ["inlined"],
    }


def test_columns_go_on_behind_a_sort(watched: Watched) -> None:
    """If the keys are numbers, which only the data can say."""
    notes = check(numbers().map(_add_one).sorted(key=_negated).map(_triple), watched)

    assert notes[".sorted(key=_negated)"] == ["key: columns if all keys are numbers of one type"]
    assert notes[".map(_triple)"] == ["columns if all keys are numbers of one type"]


def test_the_first_items_are_found_by_numbers_and_by_texts(watched: Watched, tmp_path: Path) -> None:
    """Where a full sort takes numbers alone."""
    path = tmp_path / "words.txt"
    path.write_text("".join(f"WORD {n * 7 % 50_021}\n" for n in range(120_000)))
    lines = Stream(Read(text_files(path)), None)
    (note,) = check(lines.sorted(key=_lowered).limit(9), watched)[".sorted(key=_lowered).limit(9)"]

    condition = "a task reads 512 KB or more and all keys are numbers of one type, or texts"
    assert note == f"the first 9 of each partition; key: columns if {condition}"
    (alone,) = check(lines.parallel(1).sorted(key=_lowered).limit(9), watched)[".sorted(key=_lowered).limit(9)"]
    assert alone == f"here, where all items stand; key: columns if {condition}"


def test_items_that_come_one_by_one_stay_so_behind_a_sort(watched: Watched) -> None:
    """Also where their keys are sorted as numbers."""
    notes = check(numbers().map(_by_loop).sorted(key=_negated).map(_triple), watched)

    assert notes[".sorted(key=_negated)"] == ["key: Python: the items before it come one by one"]
    assert notes[".map(_triple)"] == ["inlined"]


@pytest.mark.parametrize("is_ordered", [True, False])
def test_columns_go_on_behind_distinct(watched: Watched, is_ordered: bool) -> None:
    """Of an ordered stream and of another one; a key of the user's takes items one by one."""
    stream = numbers().map(_triple) if is_ordered else numbers().map(_triple).unordered()

    notes = check(stream.distinct().map(_add_one), watched)
    assert notes[".map(_add_one)"] == ["columns if all items are numbers of one type, or strings"]
    notes = check(stream.distinct(key=_remainder).map(_add_one), watched)
    assert notes[".distinct(_remainder)"] == ["key: Python: distinct() takes items one by one"]
    assert notes[".map(_add_one)"] == ["inlined"]


def test_columns_go_on_behind_a_semi_join(watched: Watched) -> None:
    """If its keys are columns, also those that a function gives."""
    left, right = numbers().map(_add_one), numbers().map(_triple)

    notes = check(left.subtract(right).map(_squared), watched)
    assert notes[".map(_squared)"] == ["columns if all keys are of one type, int or str"]
    notes = check(left.join(right, on=_negated).map(_of_entry), watched)
    (note,) = notes[".map(_of_entry)"]
    assert note.startswith("columns if all keys are of one type, int or str")


def _of_entry(entry: Any) -> int:
    return int(entry[0])


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_entries_of_a_join_are_in_columns_where_each_item_has_a_partner(watched: Watched, how: Any) -> None:
    """A part of an entry is read there, and a function that looks at none of its parts is evaluated for all."""
    entries = numbers().key_by(_add_one).join(numbers().key_by(_squared), how=how)

    (note,) = check(entries.map(_one).map(_add_one), watched)[".map(_one)"]
    assert note.startswith("columns if all keys are of one type, int or str")
    assert note.endswith("each item has a partner") is (how != "inner")
    check(entries, watched, mapping(_one, summing(_add_one)))
    if how == "inner":
        check(entries.map(_sum_of_pair), watched)


def _sum_of_pair(entry: Any) -> int:
    return entry.value[0] + entry.value[1]


def _one(entry: Any) -> int:
    return 1


def test_windows_stand_in_columns_where_each_part_reads_on(watched: Watched) -> None:
    """That is what a task makes of the inside of its part; what lies across borders comes one by one."""
    stream = numbers().map(_triple).gather(window_sliding(2)).map(_of_two)

    notes = check(stream, watched, summing(_add_one))
    assert notes[".map(_of_two)"] == ["columns if all items are numbers of one type", "inlined"]


def test_windows_behind_a_sort_may_stand_in_one_task(watched: Watched) -> None:
    """Where all keys are in one range, that task makes them one by one."""
    stream = numbers().map(_add_one).sorted(key=_negated).gather(window_sliding(2)).map(_of_two)

    note, _ = check(stream, watched, to_list())[".map(_of_two)"]
    assert note.endswith("and all items are numbers of one type and there is more than one partition")


def test_what_came_through_a_shuffle_comes_one_by_one(watched: Watched) -> None:
    """And so it does behind what takes items one by one: `take_while`, `limit`, `peek`."""
    notes = check(numbers().map(_add_one).partition_by(3, key=_remainder).map(_triple), watched)
    assert notes[".map(_triple)"] == ["inlined"]
    assert notes[".partition_by(3, key=_remainder)"] == ["key: Python: partition_by() takes items one by one"]

    notes = check(numbers().map(_add_one).take_while(_is_small).map(_triple).peek(print), watched)
    assert set(notes[".take_while(_is_small)"]) == {"predicate: Python: take_while() takes items one by one"}
    assert notes[".map(_triple)"] == ["inlined"]
    assert check(numbers().peek(id).map(_triple), watched)[".map(_triple)"] == ["inlined"]


def _is_small(n: int) -> bool:
    return n < 200


def test_each_function_of_a_collector_has_its_route(watched: Watched) -> None:
    """Columns take all of them, or none."""
    stream = numbers().map(_add_one)
    grouped = grouping_by(_remainder, mapping(_triple, summing(_squared)))
    assert check(stream, watched, grouped)[".collect(grouping_by(...))"] == [
        "grouping_by, mapping(fn), summing(fn): columns"
    ]

    grouped = grouping_by(_in_text, summing(_squared))
    (note,) = check(stream, watched, grouped)[".collect(grouping_by(...))"]
    assert note == ("grouping_by: Python: has a loop; summing(fn): Python: columns do not take the function beside it")
    (note,) = check(stream, watched, grouping_by(_remainder, to_list()))[".collect(grouping_by(...))"]
    assert note == "grouping_by: columns if the items are no records of a source or a join"
    (note,) = check(stream, watched, grouping_by(_remainder, filtering(_is_odd, mapping(_triple, to_set()))))[
        ".collect(grouping_by(...))"
    ]
    assert note == "grouping_by, filtering(predicate), mapping(fn): columns"
    assert check(stream, watched, top_n(3, key=_negated))[".collect(top_n(...))"] == ["top_n(key): columns"]
    (note,) = check(stream.map(_by_another_loop), watched, top_n(3, key=_negated))[".collect(top_n(...))"]
    assert note == "top_n(key): Python: the items before it come one by one"


_COMPOUND: dict[str, Any] = {
    "summing(fn)": summing(_squared),
    "summing(fn), averaging(fn)": all_of(counting(), summing(_squared), averaging(_triple)),
    "filtering(predicate), summing(fn)": filtering(_is_odd, all_of(counting(), summing(_squared))),
    "grouping_by, mapping(fn)": grouping_by(_is_low, mapping(_triple, counting())),
    "averaging(fn), summing(fn)": teeing(averaging(_squared), summing(_triple), divmod),
}


@pytest.mark.parametrize("functions", _COMPOUND)
def test_collectors_of_values_run_in_columns_as_they_are_said_to(watched: Watched, functions: str) -> None:
    """All of their functions, behind the one that takes the value of an entry."""
    stream = numbers().map(_add_one).key_by(_remainder).aggregate_by_key(_COMPOUND[functions])

    notes = check(stream, watched)[f".aggregate_by_key({_COMPOUND[functions]!r})"]
    assert notes == [f"each task first combines what it has; {functions}: columns"]


@pytest.mark.parametrize("window", [tumbling(10), sliding(30, by=10)])
def test_windows_of_a_stream_that_ends_run_in_columns(watched: Watched, window: Any) -> None:
    """The key, the timestamp and what the collector takes."""
    collector = all_of(counting(), summing(_add_one))
    stream = numbers().map(_triple).aggregate_by_window(window, collector, timestamp=_squared, key=_remainder)

    notes = check(stream, watched)

    assert [note for label, found in notes.items() if "aggregate_by_window" in label for note in found] == [
        "each task first combines what it has; key, timestamp, summing(fn): columns"
    ]


def test_a_timestamp_that_is_called_keeps_windows_from_columns(watched: Watched) -> None:
    """As a key does."""
    stream = numbers().map(_triple).aggregate_by_window(tumbling(10), counting(), timestamp=_by_loop)

    (note,) = (note for label, (note,) in check(stream, watched).items() if "aggregate_by_window" in label)
    assert "key: Python: columns do not take the function beside it; timestamp: Python: has a loop" in note


def test_a_function_of_one_part_that_is_called_keeps_all_from_columns(watched: Watched) -> None:
    """The others are called, too."""
    several = all_of(summing(_squared), averaging(_by_loop))

    (note,) = check(numbers().map(_add_one), watched, several)[".collect(all_of(...))"]
    assert note.startswith("summing(fn): Python: columns do not take the function beside it; averaging(fn): Python: ")


def test_a_service_takes_items_one_by_one(watched: Watched) -> None:
    """Also from the steps before it in the same task."""
    node = WithService(numbers().map(_add_one)._node, Service(int), _served, "map", step=here())

    notes = check(Stream(node, None).map(_triple), watched)
    assert notes[".map(_add_one)"] == notes[".map(_triple)"] == ["inlined"]


def _served(service: int, n: int) -> int:
    return service + n


def test_keys_that_columns_do_not_take_are_called(watched: Watched) -> None:
    """What is said of them is what columns lack; a step before them runs over columns all the same."""
    notes = check(numbers().map(_add_one).sorted(key=_in_texts), watched)

    assert notes[".map(_add_one)"] == ["columns"]
    assert notes[".sorted(key=_in_texts)"] == ["key: Python: columns hold no lists"]


def test_ints_of_pairs_are_added_up_by_key_in_columns(watched: Watched) -> None:
    """Another operator takes them one by one."""
    pairs: Any = numbers().map(_with_one)

    (note,) = check(pairs.reduce_by_key(operator.add), watched)[".reduce_by_key(add)"]
    assert note.endswith("; op: columns")
    (note,) = check(pairs.reduce_by_key(max), watched)[".reduce_by_key(max)"]
    assert note.endswith("; op: Python: the collector takes items one by one")


def _with_one(n: int) -> tuple[int, int]:
    return n, 1


def test_what_is_done_with_entries_runs_over_columns(watched: Watched) -> None:
    """Also with those that an aggregate by key gives, if it counts or adds up, and with the values of each key."""
    entries: Any = numbers().key_by(_add_one).map_values(_squared)

    notes = check(entries.swap().values(), watched)
    assert list(notes.values()) == [["columns"]] * 4
    (note,) = check(entries.aggregate_by_key(summing(_add_one)), watched)[".aggregate_by_key(summing(...))"]
    assert note.endswith("; summing(fn): columns")
    notes = check(entries.count_by_key().map_values(_squared), watched)
    assert notes[".map_values(_squared)"][-1] == "columns if all keys are ints, or all are texts"


def test_a_range_in_small_parts_stays_one(watched: Watched) -> None:
    """Where nobody knows the parts, that is what the data decide; items of the caller's too."""
    notes = check(numbers(20).map(_add_one), watched)
    assert notes == {".map(_add_one)": ["inlined"]}
    unknown = stages_on(None, Stream(Read(Items(range(_ITEMS))), None).map(_add_one)._node, None)
    assert [call.note for call in unknown.stages[0].calls] == ["", "columns if a task has 16 items or more"]


def test_a_list_stands_in_columns_if_its_steps_do_enough(watched: Watched) -> None:
    """And if all items are of the type of the first one."""
    listed = Stream(Read(Items(list(range(_ITEMS)), 2)), None)

    conditions = "all items are int and those of a task take at most 1 MB"
    assert check(listed.map(_enough), watched) == {".map(_enough)": [f"columns if {conditions}"]}
    assert check(listed.map(_add_one), watched) == {".map(_add_one)": ["inlined"]}
    texts = Stream(Read(Items(["1"] * _ITEMS, 2)), None)
    assert check(texts.map(_lowered).map(_lowered), watched) == {".map(_lowered)": ["inlined", "inlined"]}


@pytest.mark.parametrize("made", [range(_ITEMS), list(range(_ITEMS))], ids=["range", "list"])
def test_a_source_of_the_user_may_give_a_sequence(watched: Watched, made: Any) -> None:
    """Its items become columns as those of a stream of that sequence do; nobody knows before it is read."""
    own = Stream(Read(_Own(made)), None)

    of_range = "columns if the source gives iter() of a range and a task has 16 items or more"
    of_list = "columns if the source gives iter() of a list of numbers of one type and a task has 16 items or more"
    assert check(own.map(_enough), watched) == {".map(_enough)": [f"{of_range} or {of_list}"]}
    assert check(own.map(_add_one), watched) == {".map(_add_one)": [f"{of_range} or inlined"]}
    assert check(own.map(_by_another_loop).map(_add_one), watched)[".map(_add_one)"] == ["inlined"]


class _Own:
    """A source of the user's, each of whose splits gives the same."""

    ordered = bounded = True
    in_caller = False

    def __init__(self, made: Any) -> None:
        self.made = made

    def splits(self, parallelism: int) -> list[_Own]:
        return [self, self]

    def read(self) -> Any:
        return iter(self.made)


def test_what_counts_items_leaves_their_route(watched: Watched) -> None:
    """A range stands in columns also where a collector takes it, whether its items are counted or not."""
    assert check(numbers(), watched, summing(_add_one))[".collect(summing(...))"] == ["summing(fn): columns"]
    assert check(numbers().sorted(key=_negated), watched)[".sorted(key=_negated)"] == [
        "key: columns if all keys are numbers of one type"
    ]
    (note,) = check(numbers(20), watched, summing(_add_one))[".collect(summing(...))"]
    assert note == "summing(fn): Python: a task has fewer than 16 items"


def test_sources_that_have_columns_give_them(watched: Watched, tmp_path: Path) -> None:
    """Rows of tables and lines of files; not where bad records are looked after."""
    rows = Stream(Read(TableRows(pa.table({"price": list(range(_ITEMS))}))), None)
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(map(str, range(100_000, 0, -1))) + "\n")
    lines = Stream(Read(text_files(str(path))), None).parallel(1)
    looked_after = Stream(Read(text_files(str(path), on_bad="skip")), None)

    enough = ["columns if a task reads 512 KB or more"]
    assert check(rows.map(_price), watched) == {".map(_price)": ["columns"]}
    assert check(lines.map(_lowered).map(_parsed), watched) == {".map(_lowered)": enough, ".map(_parsed)": enough}
    assert check(looked_after.map(_lowered), watched) == {".map(_lowered)": ["inlined"]}


def test_parts_of_a_concat_may_come_in_several_ways(watched: Watched) -> None:
    """What runs behind them says so."""
    listed = Stream(Read(Items(["a"] * 9, 2)), None)

    notes = check((numbers() + listed).map(str), watched)
    assert notes == {".map(str)": ["columns or Python: calls str"]}
    assert check((numbers() + numbers()).map(_triple), watched) == {".map(_triple)": ["columns"]}


_STARTS: list[Callable[[], Stream[Any]]] = [
    lambda: numbers(3000),
    lambda: Stream(Read(Items(list(range(3000)), 2)), None).map(_enough_of_first),
    lambda: Stream(Read(TableRows(pa.table({"price": list(range(3000))}))), None).map(_price),
    lambda: Stream(Read(Items([3] * 20, 2)), None) + numbers(3000),
]
_STEPS: list[Callable[[Stream[Any]], Stream[Any]]] = [
    lambda stream: stream.map(_add_one),
    lambda stream: stream.map(_triple),
    lambda stream: stream.filter(_is_low),
    lambda stream: stream.map(_squared).unordered(),
    lambda stream: stream.map(_by_loop),
    lambda stream: stream.map(_by_bits),
    lambda stream: stream.map(_by_another_loop),
    lambda stream: stream.map(_enough),
    lambda stream: stream.sorted(key=_negated),
    lambda stream: stream.distinct(),
    lambda stream: stream.partition_by(3, key=_remainder),
    lambda stream: stream.subtract(numbers(900)),
    lambda stream: stream.limit(150).map(_halved),
    lambda stream: stream.drop_while(_is_small),
    lambda stream: stream.gather(window_sliding(2)).map(_of_two),
    lambda stream: stream.skip(70).map(_halved),
    lambda stream: stream + numbers(),
    lambda stream: stream.peek(id),
]
_ENDS: list[Callable[[], Any]] = [
    lambda: None,
    lambda: grouping_by(_is_odd, summing(_parity)),
    lambda: grouping_by(_parity, counting()),
    lambda: grouping_by(_in_text, counting()),
    lambda: max_by(_parity),
    lambda: top_n(3, key=_parity),
    lambda: mapping(_parity, summing(_is_odd)),
    lambda: to_list(),
]


def _parity(n: int) -> int:
    return n % 2 - n


@pytest.mark.parametrize("first", range(0, 240, 80))
def test_what_is_said_of_random_programs_is_what_ran(watched: Watched, first: int) -> None:
    """A function runs over columns where that is said, and nowhere else."""
    in_columns = one_by_one = 0
    for seed in range(first, first + 80):
        chosen = random.Random(seed)
        stream = chosen.choice(_STARTS)()
        for step in chosen.sample(_STEPS, chosen.randrange(1, 6)):
            stream = step(stream)
        for notes in check(stream, watched, chosen.choice(_ENDS)()).values():
            in_columns += sum("columns" in note for note in notes)
            one_by_one += sum("columns" not in note for note in notes)

    assert in_columns > 25
    assert one_by_one > 25
