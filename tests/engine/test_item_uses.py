"""Runs in this process that look at the caller's items without copying them first: nobody can tell."""

from __future__ import annotations

import _thread
import dataclasses
import functools
import sys
import threading
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any, ClassVar, NamedTuple

import pytest

import dstream as ds
from collectors import averaging, counting, filtering, grouping_by, mapping, max_by, summing, to_list
from dstream.base.threads import _runs_no_function as runs_no_function
from dstream.engine.inprocess.run import InProcessRun
from dstream.failures import failure

SIZE = 1_100
"""Enough to read functions, and so few that one task reads them at the first run."""


@dataclasses.dataclass
class Plain:
    n: Any
    word: Any
    more: Any = None


@dataclasses.dataclass(frozen=True)
class Frozen:
    n: Any
    word: Any
    more: Any = None


@dataclasses.dataclass(slots=True)
class Slots:
    n: Any
    word: Any
    more: Any = None


class Tuple(NamedTuple):
    n: Any
    word: Any
    more: Any = None


class Counting:
    """Changes itself when an attribute is asked for."""

    def __init__(self, n: int, word: str, more: Any = None) -> None:
        self.asked = 0
        self._n = n
        self.word = word
        self.more = more

    @property
    def n(self) -> int:
        self.asked += 1
        return self._n

    def __repr__(self) -> str:
        return f"Counting({self._n}, {self.word!r}, {self.more!r}, {self.asked})"


class Remembering:
    """Remembers an attribute in itself."""

    def __init__(self, n: int, word: str, more: Any = None) -> None:
        self.word = word
        self.more = more
        self._n = n

    @functools.cached_property
    def n(self) -> int:
        return self._n

    def __repr__(self) -> str:
        return f"Remembering({vars(self)!r})"


class Making:
    """Makes an attribute that is not there, and keeps it."""

    def __init__(self, n: int, word: str, more: Any = None) -> None:
        self._n = n
        self.word = word
        self.more = more

    def __getattr__(self, name: str) -> Any:
        if name != "n":
            raise AttributeError(name)
        self.n = self._n
        return self._n

    def __repr__(self) -> str:
        return f"Making({vars(self)!r})"


class Number:
    """Counts how often it is compared."""

    def __init__(self, value: int) -> None:
        self.value = value
        self.compared = 0

    def __gt__(self, other: Any) -> bool:
        self.compared += 1
        return self.value > other

    def __neg__(self) -> int:
        self.compared += 1
        return -self.value

    def __mod__(self, other: int) -> int:
        self.compared += 1
        return self.value % other

    def __repr__(self) -> str:
        return f"Number({self.value}, {self.compared})"


KINDS: list[Any] = [Plain, Frozen, Slots, Tuple, Counting, Remembering, Making, "dict"]
MORE: list[Callable[[int], Any]] = [
    lambda n: None,
    lambda n: n * 0.5,
    lambda n: [n],
    lambda n: {"n": n},
    lambda n: (n, [n]),
]


@pytest.fixture(scope="module")
def context():
    """Return a context whose plans run in this process."""
    with ds.connect(storage="memory:", local_limit=1000) as ctx:
        yield ctx


@pytest.fixture(scope="module")
def local():
    """Return a context of the interpreter."""
    with ds.connect(storage="memory:", engine="local") as ctx:
        yield ctx


@pytest.fixture
def alone(monkeypatch):
    """Leave out the threads that other tests have left, or that run these tests."""
    all_of, left = threading.enumerate, set(threading.enumerate()) - {threading.current_thread()}
    monkeypatch.setattr(threading, "enumerate", lambda: [each for each in all_of() if each not in left])
    frames, old = sys._current_frames, set(sys._current_frames()) - {threading.get_ident()}
    monkeypatch.setattr(sys, "_current_frames", lambda: {key: each for key, each in frames().items() if key not in old})


@pytest.fixture
def uses(alone, monkeypatch):
    """Return what runs have made of items."""
    found: list[Any] = []
    use = InProcessRun.__dict__["use"].func

    def noted(run: InProcessRun) -> Any:
        found.append(use(run))
        return found[-1]

    noting = functools.cached_property(noted)
    noting.__set_name__(InProcessRun, "use")
    monkeypatch.setattr(InProcessRun, "use", noting)
    return found


def made(kind: Any, number: Callable[[int], Any] = int, more: Callable[[int], Any] = lambda n: None) -> list[Any]:
    """Return items of one kind."""
    rows = [{"n": number(n % 97), "word": f"w{n % 7}", "more": more(n)} for n in range(SIZE)]
    return rows if kind == "dict" else [kind(**row) for row in rows]


def by_attribute(ctx: Any, items: list[Any], end: int) -> Any:
    """Run one of some plans whose functions are read."""
    stream = ctx.stream(items)
    match end:
        case 0:
            return stream.filter(lambda item: item.n > 50).to_list()
        case 1:
            return stream.filter(lambda item: item.n > 50).map(lambda item: (item.word, item.n)).to_list()
        case 2:
            return stream.sorted(key=lambda item: -item.n).to_list()
        case 3:
            return stream.sorted(key=lambda item: -item.n).limit(5).to_list()
        case 4:
            return stream.collect(grouping_by(lambda item: item.word, counting()))
        case 5:
            return stream.collect(grouping_by(lambda item: item.n % 3, mapping(lambda item: item.word, counting())))
        case 6:
            return stream.map(lambda item: (item, item.word)).to_list()
        case 7:
            return stream.distinct(key=lambda item: item.word).to_list()
        case 8:
            return stream.collect(grouping_by(lambda item: item.word, to_list()))
        case 9:
            return stream.collect(filtering(lambda item: item.n > 90, to_list()))
        case 10:
            return stream.flat_map(lambda item: [item, item]).limit(1_500).skip(100).to_list()
        case 11:
            return stream.map(lambda item: item.more).to_list()
        case 12:
            return stream.filter(lambda item: item.more).map(lambda item: [item.more, item.n]).to_list()
        case 13:
            return stream.collect(max_by(lambda item: item.word))
        case 14:
            return stream.collect(grouping_by(lambda item: item.word, max_by(lambda item: item.n)))
        case 15:
            return stream.collect(filtering(lambda item: item.n > 90, max_by(lambda item: item.word)))
        case 16:
            return stream.map_to_int(lambda item: item.n).sum()
        case 17:
            return stream.filter(lambda item: item.n > 50).find_first()
        case 18:
            return stream.filter(lambda item: item.n < 90).skip(400).limit(900).to_list()
        case 19:
            return stream.collect(grouping_by(lambda item: item.word, grouping_by(lambda item: item.n % 3)))
        case 20:
            return stream.filter(lambda item: item.n > 50).any_match(lambda item: item.word == "w3")
        case _:
            return stream.to_list()


def by_key(ctx: Any, items: list[Any], end: int) -> Any:
    """Run the same of dictionaries."""
    stream = ctx.stream(items)
    match end:
        case 0:
            return stream.filter(lambda item: item["n"] > 50).to_list()
        case 1:
            return stream.filter(lambda item: item["n"] > 50).map(lambda item: (item["word"], item["n"])).to_list()
        case 2:
            return stream.sorted(key=lambda item: -item["n"]).to_list()
        case 3:
            return stream.sorted(key=lambda item: -item["n"]).limit(5).to_list()
        case 4:
            return stream.collect(grouping_by(lambda item: item["word"], counting()))
        case 5:
            by_rest = grouping_by(lambda item: item["n"] % 3, mapping(lambda item: item["word"], counting()))
            return stream.collect(by_rest)
        case 6:
            return stream.map(lambda item: (item, item["word"])).to_list()
        case 7:
            return stream.distinct(key=lambda item: item["word"]).to_list()
        case 8:
            return stream.collect(grouping_by(lambda item: item["word"], to_list()))
        case 9:
            return stream.collect(filtering(lambda item: item["n"] > 90, to_list()))
        case 10:
            return stream.map(lambda item: {**item, "more": [item["more"], item.get("none", 5)]}).to_list()
        case 11:
            return stream.map(lambda item: item["more"]).to_list()
        case 12:
            return stream.filter(lambda item: item["more"]).map(lambda item: [item["more"], item["n"]]).to_list()
        case 13:
            return stream.collect(max_by(lambda item: item["word"]))
        case 14:
            return stream.collect(grouping_by(lambda item: item["word"], max_by(lambda item: item["n"])))
        case 15:
            return stream.collect(filtering(lambda item: item["n"] > 90, max_by(lambda item: item["word"])))
        case 16:
            return stream.map_to_int(lambda item: item["n"]).sum()
        case 17:
            return stream.filter(lambda item: item["n"] > 50).find_first()
        case 18:
            return stream.filter(lambda item: item["n"] < 90).skip(400).limit(900).to_list()
        case 19:
            return stream.collect(grouping_by(lambda item: item["word"], grouping_by(lambda item: item["n"] % 3)))
        case 20:
            return stream.filter(lambda item: item["n"] > 50).any_match(lambda item: item["word"] == "w3")
        case _:
            return stream.to_list()


@pytest.mark.parametrize("end", range(22))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [int, Number])
def test_nobody_can_tell_whether_items_were_copied(context, local, kind, number, end):
    """The items are as they were, the results are those of the interpreter, and share nothing with them."""
    run = by_key if kind == "dict" else by_attribute
    # Each kind meets each of these, and so does each end.
    items = made(kind, number, MORE[(end + KINDS.index(kind) + (number is int)) % len(MORE)])
    before = repr(items)
    expected = _outcome(run, local, deepcopy(items), end)
    assert repr(items) == before

    found = _outcome(run, context, items, end)

    assert repr(items) == before
    assert repr(found) == repr(expected)
    assert _changeable(found).isdisjoint(_changeable(items))


def _outcome(run: Any, ctx: Any, items: list[Any], end: int) -> Any:
    try:
        return run(ctx, items, end)
    except TypeError as error:
        return type(error)


def _changeable(value: Any) -> set[int]:
    """Return the identities of the objects inside of a value that somebody could change."""
    found, seen, waiting = set[int](), dict[int, Any](), [value]
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen[id(each)] = each
        if isinstance(each, list | dict | Plain | Slots | Counting | Remembering | Making | Number):
            found.add(id(each))
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list | tuple):
            waiting += each
        elif isinstance(each, ds.Optional):
            waiting.append(each.or_else(None))
        elif hasattr(each, "__dict__"):
            waiting += vars(each).values()
        elif isinstance(each, Slots):
            waiting += (each.n, each.word, each.more)
    return found


@pytest.mark.parametrize("kind", [Plain, Frozen, Slots, "dict"])
def test_items_of_which_parts_are_read_are_not_copied(context, uses, kind):
    """But looked at as they are."""
    items = made(kind)
    run = by_key if kind == "dict" else by_attribute
    run(context, items, 1)
    run(context, items, 4)

    assert [each.parts for each in uses] == [{"n", "word"}, {"word"}]


@pytest.mark.parametrize(
    "plan",
    [
        lambda stream: stream.filter(_is_large),
        lambda stream: stream.peek(print).filter(lambda item: item["n"] > 990),
        lambda stream: stream.filter(lambda item: len(item) > 1),
        lambda stream: stream.filter(lambda item: item["n"] > _LIMIT),
        lambda stream: stream.map(lambda item: item["n"]).map(_is_large),
    ],
)
def test_other_items_are_copied(context, uses, plan):
    """Where a function is called of which nothing is known, sees whole items, or has an object with operators."""
    plan(context.stream(made("dict"))).to_list()

    assert [each.parts for each in uses] == [None]


def test_items_are_copied_while_another_thread_may_change_them(context, uses):
    """One of the program's own, also if a library has wrapped its function."""
    may_end = threading.Event()

    def wait() -> None:
        may_end.wait()

    wait.__module__ = "pyspark.util"
    other = threading.Thread(target=wait)
    other.start()
    by_key(context, made("dict"), 1)
    may_end.set()
    other.join()
    by_key(context, made("dict"), 1)

    assert [each.parts for each in uses] == [None, {"n", "word"}]


def test_threads_that_only_the_interpreter_knows_may_change_items(context, uses):
    """Threads of `_thread` and of libraries in C are not among those of `threading`."""
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        may_end.wait()
        ended.set()

    _thread.start_new_thread(wait, ())
    begun.wait()
    by_key(context, made("dict"), 1)
    may_end.set()
    ended.wait()

    assert [each.parts for each in uses] == [None]


def test_threads_that_serve_spark_run_no_function(spark_context):
    """Of the program's, so that items may change in no other thread."""
    assert spark_context.stream([1]).count() == 1
    targets = {each: getattr(each, "_target", None) or each for each in threading.enumerate()}
    kinds = {each: type(getattr(target, "__self__", target)).__module__ for each, target in targets.items()}
    serving = [each for each, module in kinds.items() if module in ("py4j.clientserver", "pyspark.accumulators")]

    assert len(serving) >= 2
    assert all(map(runs_no_function, serving))


def test_a_class_shares_what_its_attributes_give(context):
    """So results are copied that were made of its objects."""

    class Sharing(Plain):
        table: ClassVar[list[int]] = [1]

        @property
        def shared(self) -> list[int]:
            return self.table

    found = context.stream([Sharing(n, "a") for n in range(SIZE)]).map(lambda item: item.shared).to_list()

    whole = context.stream([Sharing(n, "a") for n in range(SIZE)]).map(lambda item: [item.shared, item]).to_list()

    assert found[0] == whole[0][0] == Sharing.table
    assert found[0] is not Sharing.table
    assert whole[0][0] is not Sharing.table


@pytest.mark.parametrize("kind", [Plain, Slots, "dict"])
def test_results_that_share_nothing_are_not_copied_again(alone, context, monkeypatch, kind):
    """All items, sorted or in groups, are the copies of the beginning."""
    copied: list[Any] = []
    monkeypatch.setattr("dstream.engine.inprocess.tasks.copies", lambda items: copied.append(items) or items)
    run = by_key if kind == "dict" else by_attribute
    for end in (2, 8, 19, 21):
        run(context, made(kind), end)
    assert not copied

    run(context, made(kind, Number), 2)
    assert copied


def test_a_class_shares_its_attributes(context):
    """So results are copied that have one of them, and not where each object has its own."""

    class Sharing(Plain):
        table: ClassVar[list[int]] = [1]

    shared, own = ([Sharing(n, "a") for n in range(SIZE)] for _ in range(2))
    for each in own:
        each.table = 5  # type: ignore[misc]
    found = context.stream(shared).map(lambda item: item.table).to_list()
    beside = context.stream(shared).map(lambda item: [item.table, item]).to_list()
    groups = context.stream(own + shared).collect(grouping_by(lambda item: item.table == 5))

    assert all(each is not Sharing.table for each in (found[0], beside[0][0]))
    assert groups[True][0].table == 5
    assert _changeable(groups).isdisjoint(_changeable(own + shared))


def test_few_items_are_copied_for_the_first_results(alone, context, monkeypatch):
    """Of functions that are read; a loop over several results copies all when it begins."""
    copied: list[int] = []
    monkeypatch.setattr(
        "dstream.engine.runs.splits.copies", lambda items: copied.append(len(items)) or list(map(dict, items))
    )
    stream = context.stream(made("dict")).filter(lambda item: item["n"] > 50)
    assert stream.find_first().get()["n"] == 51
    assert stream.any_match(lambda item: item["n"] == 51)
    assert [item["n"] for item in stream.limit(3).to_list()] == [51, 52, 53]
    assert max(copied) < SIZE / 2

    copied.clear()
    assert [item["n"] for item in stream.limit(2)] == [51, 52]
    assert context.stream(made("dict")).filter(_is_large).find_first().get()["n"] == 0
    assert not copied


def test_items_change_in_a_loop_over_the_first_results(context):
    """It sees them as they were when it began."""
    items, found = made("dict"), []
    for item in context.stream(items).filter(lambda item: item["n"] % 2 == 0).limit(540):
        items[601]["n"] = items[602]["n"] = -1
        found.append(item["n"])

    assert found == [item["n"] for item in made("dict") if item["n"] % 2 == 0][:540]


class _Limit(int):
    """A number with an operator of its own."""

    def __lt__(self, other: Any) -> bool:
        return int(self) < other


_LIMIT = _Limit(50)


def _is_large(item: Any) -> bool:
    while True:
        return bool(item)


def test_a_function_that_is_called_may_change_what_it_gets(context):
    """It gets copies, and so do later functions of the same run."""
    items = made("dict")

    def changed(item: Any) -> Any:
        while True:
            item["n"] += 1
            return item

    assert context.stream(items).map(changed).filter(lambda item: item["n"] == 97).count() == 11
    assert items == made("dict")


def test_results_of_functions_are_copied_that_may_have_them_elsewhere(context):
    """Such as in a variable of a class, or a captured list."""

    class Seen:
        items: ClassVar[list[Any]] = []

        def note(self, item: Any) -> bool:
            while True:
                self.items.append(item)
                return True

    note = Seen().note
    found = context.stream(made("dict")).filter(note).to_list()
    assert set(map(id, found)).isdisjoint(map(id, Seen.items))

    table = {"a": [0]}
    first, *_ = context.stream(made("dict")).map(lambda item: table).to_list()
    second, *_ = context.stream(made("dict")).map(lambda item: table["a"]).to_list()
    assert first is not table
    assert second is not table["a"]


def test_the_item_of_a_failure_is_a_copy(context):
    """As all that comes out of a run."""
    items = made("dict")
    items[1_050]["n"] = "a"
    with pytest.raises(TypeError) as raised:
        context.stream(items).filter(lambda item: item["n"] > 50).to_list()
    known = failure(raised.value)

    assert known is not None
    assert known.item == items[1_050]
    assert known.item is not items[1_050]


def test_an_item_that_occurs_twice_is_one_result(context):
    """As in a pickle."""
    item = {"n": 1, "word": "a"}
    found = context.stream([item] * SIZE).filter(lambda item: item["n"] > 0).to_list()

    assert set(map(id, found)) == {id(found[0])}
    assert found[0] is not item


def test_one_list_read_twice_has_items_of_its_own_for_each(context):
    """A change that one side makes is not seen on the other."""
    items = made("dict")

    def changed(item: Any) -> Any:
        while True:
            item["n"] += 1
            return item["n"]

    stream = context.stream(items)
    together = (stream.map(changed) + stream.map(changed)).to_list()

    assert together == [item["n"] + 1 for item in items] * 2


def test_items_of_sequences_may_change_while_results_come(context):
    """A loop sees the items as they were when it began."""
    items = made("dict")
    found = 0
    for item in context.stream(items).filter(lambda item: item["n"] >= 0):
        items[SIZE - 1 - found]["n"] = -1
        found += item["n"] >= 0

    assert found == SIZE


@pytest.mark.parametrize("seed", range(30))
def test_mixed_items_by_chance(context, seed):
    """Of several types in one list, with keys that some lack."""
    random = Random(seed)
    choices: list[Callable[[int], Any]] = [
        lambda n: {"n": n, "word": "a"},
        lambda n: {"n": n, "word": ["a"]},
        lambda n: {"n": n},
        lambda n: {"n": n, "word": None, 1: [n]},
    ]
    some = random.sample(choices, random.randrange(1, 4))
    items = [random.choice(some)(n) for n in range(SIZE)]
    before = repr(items)
    found = context.stream(items).filter(lambda item: item.get("word")).to_list()
    grouped = context.stream(items).collect(grouping_by(lambda item: str(item.get("word")), counting()))
    firsts = context.stream(items).collect(grouping_by(lambda item: item["n"] % 5, max_by(lambda item: item["n"])))
    means = context.stream(items).collect(averaging(lambda item: item["n"]))

    assert repr(found) == repr([item for item in items if item.get("word")])
    assert sum(grouped.values()) == SIZE
    assert _changeable(found).isdisjoint(_changeable(items))
    assert _changeable(firsts).isdisjoint(_changeable(items))
    assert means == (SIZE - 1) / 2
    assert context.stream(items).collect(summing(lambda item: item["n"])) == SIZE * (SIZE - 1) // 2
    assert repr(items) == before
