"""Objects with a name in `__main__` reach another process by value; one that cannot is refused by its name."""

from __future__ import annotations

import copyreg
import importlib
import pickle
import subprocess
import sys
import threading
import types

import cloudpickle
import pytest

import dstream as ds
from dstream import Stream
from dstream.base import by_value
from dstream.base.by_value import dumps_by_value
from dstream.base.pickling import dumps, dumps_named
from dstream.errors import SerializationError
from dstream.plan import rewrite
from dstream.plan.capture_checks import check_captures

SCRIPT = """
import enum, functools, math
from dataclasses import dataclass
from typing import Annotated, Generic, Literal, NamedTuple, NewType, Optional, ParamSpec, TypeVar, TypeVarTuple

T, P, Ts = TypeVar("T"), ParamSpec("P", bound=int), TypeVarTuple("Ts")
UserId = NewType("UserId", int)
Admin = NewType("Admin", UserId)
RATE = 3

@functools.cache
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

@functools.lru_cache(maxsize=7, typed=True)
def priced(n):
    "Return a price."
    return n * RATE

priced.unit = "EUR"
root = functools.cache(math.sqrt)

@functools.singledispatch
def kind(value):
    return "any"

@kind.register
def _(value: list):
    return ["list of", *map(kind, value)]

@kind.register
def _(value: int):
    return "int"

class Pair(NamedTuple, Generic[T]):
    first: T
    second: int = 2

class Color(enum.Enum):
    RED = 1

@enum.global_enum
class Right(enum.Flag):
    READ = 1
    WRITE = 2

@dataclass
class Circle:
    radius: int
    @functools.cached_property
    def area(self):
        return 3 * self.radius**2
    @functools.cache
    def of(number):
        return Circle(number)
    @classmethod
    @functools.cache
    def unit(cls):
        return cls(1)

class Missing:
    def __reduce__(self):
        return "MISSING"

MISSING = Missing()

SEEN = {}

class Counted:
    limits = [1]
    def put(self, n):
        SEEN[n] = self.limits
        return len(SEEN)

def keep(n):
    is_new = Counted().put(n) > len(KEPT)
    KEPT.append(n)
    return is_new and n in SEEN

KEPT, RATE_OF, OTHERS = [], 0, []

class Rated:
    def rate(self):
        return RATE_OF

class Dearer(Rated):
    pass

def rated(n):
    global RATE_OF
    RATE_OF = n
    return Dearer().rate()

def counting():
    seen = []
    class Counter:
        @staticmethod
        def add(n):
            seen.append(n)
    def count(n):
        Counter.add(n)
        return len(seen)
    return count

def noted(n):
    OTHERS.append(n)
    return Dearer, len(OTHERS)

def made(n):
    return UserId(n), fib(n), priced(n), Pair(n), kind([n])

def local():
    UserName = NewType("UserName", str)
    @functools.cache
    def doubled(n):
        return 2 * n
    return UserName("x"), UserName, doubled
"""

CASES = {
    "NewType": ("UserId", "v(3), v.__name__, v.__supertype__, v.__module__", (3, "UserId", int, "__main__")),
    "NewType of a NewType": ("Admin", "v.__supertype__.__supertype__", int),
    "NewType in a function": ("local()", "v[0], v[1].__name__, v[2](4)", ("x", "UserName", 8)),
    "NewTypes in types": (
        "[list[UserId], Optional[UserId], Annotated[UserId, 1]]",
        "v[0].__args__ == v[1].__args__[:1]",
        True,
    ),
    "function that makes a NewType": ("lambda n: UserId(n)", "v(5)", 5),
    "cache": ("fib", "v(30), v.cache_info().maxsize, v.__name__", (832040, None, "fib")),
    "lru_cache": (
        "priced",
        "v(4), v.cache_parameters(), v.__doc__, v.unit",
        (12, {"maxsize": 7, "typed": True}, "Return a price.", "EUR"),
    ),
    "cache of a builtin": ("root", "v(9.0)", 3.0),
    "cache refers to itself": ("fib", "v.__wrapped__.__globals__['fib'] is v", True),
    "caches in methods": ("Circle", "v.of(2).radius, v.unit() is v.unit()", (2, True)),
    "cached property": ("Circle(2)", "v.area, vars(v)", (12, {"radius": 2, "area": 12})),
    "partial of a cache": ("functools.partial(fib, 9)", "v()", 34),
    "singledispatch": ("kind", "v([1, 'a']), v.__name__", (["list of", "int", "any"], "kind")),
    "generic NamedTuple": (
        "Pair('a')",
        "tuple(v), v._fields, type(v)[int].__args__",
        (("a", 2), ("first", "second"), (int,)),
    ),
    "alias of a generic NamedTuple": ("Pair[UserId]", "tuple(v(1))", (1, 2)),
    "enum in Literal": ("Literal[Color.RED]", "v.__args__[0].value", 1),
    "global enum": ("Right.READ", "v.value, v.name", (1, "READ")),
    "global flags": ("Right.READ | Right.WRITE", "v.value", 3),
    "type parameters": ("[T, P, Ts]", "[p.__name__ for p in v], v[1].__bound__", (["T", "P", "Ts"], int)),
    "one object twice": ("[UserId, fib, lambda: (UserId, fib)]", "v[2]() == (v[0], v[1])", True),
}

LOADER = """
import pickle, sys
results = {}
for name, data, check in pickle.load(sys.stdin.buffer):
    try:
        results[name] = eval(check, {"v": pickle.loads(data)})
    except Exception as error:
        results[name] = repr(error)
pickle.dump(results, sys.stdout.buffer)
"""


def names_of_main(monkeypatch):
    """Run the script as `__main__`, and return its names."""
    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    exec(SCRIPT, main.__dict__)
    return main.__dict__


@pytest.fixture
def script(monkeypatch):
    """Return the names of a script, which is `__main__` meanwhile."""
    return names_of_main(monkeypatch)


@pytest.fixture(scope="module")
def elsewhere():
    """Return what the checks of all cases give in another process."""
    with pytest.MonkeyPatch.context() as patch:
        names = names_of_main(patch)
        sent = [(name, dumps(eval(made, names)), check) for name, (made, check, _) in CASES.items()]
    run = subprocess.run([sys.executable, "-c", LOADER], input=pickle.dumps(sent), capture_output=True, check=True)
    return pickle.loads(run.stdout)


@pytest.mark.parametrize("case", CASES)
def test_names_of_main_reach_a_process_with_another_main(case, elsewhere):
    """Its `__main__` is another one, as that of a worker is."""
    assert elsewhere[case] == CASES[case][2]


@pytest.mark.parametrize("case", CASES)
def test_names_of_main_give_the_same_on_the_local_engine(case, script, local_context):
    """It sends nothing anywhere."""
    made, check, expected = CASES[case]

    stream = local_context.stream([eval(made, script)])

    assert stream.map(lambda v: eval(check, {"v": v})).to_list() == [expected]


def test_names_of_main_are_used_on_workers(script, engine):
    """In functions, as functions, as items and in results."""
    user_id, pair, made = script["UserId"], script["Pair"], script["made"]

    assert engine.stream([7, 8], partitions=2).map(script["fib"]).map(user_id).to_list() == [13, 21]
    sent = engine.stream([user_id, pair], partitions=2).map(lambda kind: (kind, made(3))).to_list()
    assert sent == [(kind, (3, 2, 9, pair(3), ["list of", "int"])) for kind in (user_id, pair)]


@pytest.mark.parametrize("way", ["UserId", "P", "Ts", "fib", "local()[1]", "Pair"])
def test_what_comes_back_is_the_original(way, script):
    """In the process that made it, a type or a function with a cache is the same object again."""
    original = eval(way, script)

    assert pickle.loads(dumps(original)) is original


ECHO = """
import pickle, sys
import dstream
from dstream.base.pickling import dumps
seen = []
for data in pickle.load(sys.stdin.buffer):
    kind = pickle.loads(data)
    seen.append((kind.limits, kind().put(1), dumps(kind)))
pickle.dump(seen, sys.stdout.buffer)
"""


def test_a_class_of_main_is_left_as_it_is_where_it_was_made(script):
    """Its methods look at the same globals and attributes as before, also if it comes back from another process."""
    counted = script["Counted"]
    before = dict(vars(counted))
    sent = [dumps(counted)]
    counted.limits = [2]
    sent.append(dumps(counted))

    run = subprocess.run([sys.executable, "-c", ECHO], input=pickle.dumps(sent), capture_output=True, check=True)
    (first, _, back), (second, _, again) = pickle.loads(run.stdout)

    assert (first, second) == ([1], [2]), "a process that has the class takes its newer attributes"
    assert [pickle.loads(each) for each in (*sent, back, again)] == [counted] * 4
    assert vars(counted)["put"] is before["put"]
    assert counted().put(5) == len(script["SEEN"]) == 1


def test_a_run_in_this_process_copies_functions_and_not_the_classes_of_main(script):
    """A copy of a method would change other globals for everybody."""
    counted = script["Counted"]
    put = vars(counted)["put"]
    function = eval("lambda n: (SEEN.setdefault(n, n), Counted)", script)

    copied, shared = by_value.dumps_with_shared([function, counted()])
    copy, instance = by_value.loads_with_shared(copied, shared)

    assert copy(3) == (3, counted)
    assert script["SEEN"] == {}
    assert (type(instance), vars(counted)["put"]) == (counted, put)


@pytest.mark.parametrize("function", ["keep", "rated", "counting()"])
def test_functions_use_the_variables_that_methods_of_main_use(function, script, monkeypatch):
    """Functions are copied for a run in this process and classes are not: both would count for themselves."""
    expected = list(map(eval(function, names_of_main(monkeypatch)), [1, 1, 2]))
    script = names_of_main(monkeypatch)

    with ds.connect(storage="memory:") as context:
        found = context.stream([1, 1, 2]).map(eval(function, script)).to_list()

    assert found == expected


def test_functions_are_copied_beside_classes_of_main_that_use_other_variables(script):
    """As on a worker: what they append to a list is in a copy of it."""
    with ds.connect(storage="memory:") as context:
        found = context.stream([1, 1, 2]).map(script["noted"]).to_list()

    assert [(kind.__name__, count) for kind, count in found] == [("Dearer", 1), ("Dearer", 2), ("Dearer", 3)]
    assert script["OTHERS"] == []


def test_a_worker_keeps_the_cache_of_a_function_until_what_it_uses_changes(script, monkeypatch):
    """A client that it has made is made once for all tasks; another rate is another function."""
    priced = script["priced"]
    before = [dumps(priced), dumps([priced, 1])]
    script["RATE"] = 4
    after = dumps(priced)
    monkeypatch.setattr(by_value, "_known", {})  # as in a worker, which has not made it

    first, (second, _) = map(pickle.loads, before)
    assert first is second
    assert [first(2), pickle.loads(after)(2)] == [6, 8]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="`type X = ...` is there since Python 3.12")
def test_a_type_statement_of_main_travels_unless_it_refers_to_itself(script):
    """As a copy; one that refers to itself is refused."""
    exec("type Ids[K] = dict[K, UserId]\ntype Json = list[Json]", script)
    copy = pickle.loads(dumps(script["Ids"]))

    assert (copy.__name__, copy.__value__.__args__[1], copy[int].__args__) == ("Ids", script["UserId"], (int,))
    with pytest.raises(pickle.PicklingError, match="recursion"):
        dumps(script["Json"])


def test_what_is_found_in_a_module_travels_by_name():
    """A function with a cache of a module that workers import is the one of their module."""
    from dstream.storage.codec.plain_classes import _is_plain

    assert pickle.loads(dumps_by_value(_is_plain)) is _is_plain
    assert len(dumps_by_value(_is_plain)) < 100


def test_a_sentinel_of_main_is_refused_before_the_job(script):
    """A copy would not be the object that its `__reduce__` names; the variable, the name and the way out are named."""
    function = eval("lambda n: n is MISSING", script)
    with pytest.raises(SerializationError) as caught:
        check_captures(rewrite(Stream.of(1).map(function)._node))

    assert "captures the variable 'MISSING', a Missing (" in str(caught.value)
    assert "pickles as the name 'MISSING' of __main__, which workers do not import; define it" in str(caught.value)


def test_a_sentinel_of_main_as_an_item_is_refused_by_its_name(script, spark_context):
    """It would have to reach a worker, too."""
    with pytest.raises(SerializationError, match=r"Missing .* pickles as the name 'MISSING' of __main__"):
        spark_context.stream([script["MISSING"]]).map(id).to_list()


WRAPPED = {
    "cache": "@functools.cache\ndef used(n): return LOCK",
    "singledispatch": "@functools.singledispatch\ndef used(n): return LOCK",
    "implementation": "used = functools.singledispatch(id)\n@used.register\ndef _(n: int): return LOCK",
    "cached property": "class A:\n  @functools.cached_property\n  def a(self): return LOCK\nused = lambda n: A().a",
    "cache in a class": "class A:\n  @staticmethod\n  @functools.cache\n  def a(): return LOCK\nused = lambda n: A.a()",
}


@pytest.mark.parametrize("way", WRAPPED)
def test_what_a_wrapped_function_captures_is_checked(way, script):
    """It is refused by the variable that the function inside captures, with the line of that function."""
    script["LOCK"] = threading.Lock()
    exec(WRAPPED[way], script)
    with pytest.raises(SerializationError, match="captures the variable 'LOCK', a lock"):
        check_captures(rewrite(Stream.of(1).map(script["used"])._node))


@pytest.mark.parametrize("registered", ["rates", "rates.usual"])
@pytest.mark.parametrize("dump", [dumps, dumps_named])
def test_modules_that_cloudpickle_pickles_by_value_are_not_imported_elsewhere(tmp_path, monkeypatch, registered, dump):
    """`register_pickle_by_value` of a module, or of a package around it, is honored for its functions and items."""
    (tmp_path / "rates").mkdir()
    (tmp_path / "rates" / "__init__.py").write_text("")
    (tmp_path / "rates" / "usual.py").write_text(
        "class Rate:\n    def __init__(self, n):\n        self.n = n\ndef twice(n):\n    return 2 * n\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    usual = importlib.import_module("rates.usual")
    module = sys.modules[registered]
    cloudpickle.register_pickle_by_value(module)
    try:
        data = dump([usual.Rate(7), usual.twice])
        assert not by_value.is_importable(usual.twice)
    finally:
        cloudpickle.unregister_pickle_by_value(module)
    for name in ("rates.usual", "rates"):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(tmp_path)])

    rate, twice = pickle.loads(data)

    assert (rate.n, twice(3)) == (7, 6)


def test_a_reducer_that_is_registered_later_is_used(monkeypatch):
    """Reducers of `copyreg` are looked at for each pickle."""

    class Opened:
        pass

    assert type(pickle.loads(dumps_by_value(Opened()))) is Opened
    monkeypatch.setitem(copyreg.dispatch_table, Opened, lambda opened: (int, (7,)))
    assert pickle.loads(dumps_by_value([Opened(), Opened()])) == [7, 7]
