"""Transport: how an exception travels from a worker to the caller in the text of another."""

from __future__ import annotations

import base64
import hmac
import pickle
import threading
from dataclasses import dataclass, replace
from types import NoneType

import pytest
from py4j.protocol import Py4JError

from dstream import Collector
from dstream.engine.spark.port.errors import translated
from dstream.errors import EngineError, SourceError
from dstream.failures import FailureMessage, blame, failure, known_of, origin_of, shown, told
from dstream.failures.transport import SECRET, WorkerFailure, from_worker, raise_to_driver

ANSI = "spark.sql.ansi.enabled"


class Keyworded(Exception):
    """Wants keywords."""

    def __init__(self, *, code):
        super().__init__("text", code)
        self.code = code


class Slotted(ValueError):
    __slots__ = ("extra",)


def sent(error):
    """Return the exception as it arrives, and the text in which it travelled."""
    with pytest.raises(WorkerFailure) as caught:
        raise_to_driver(error, SECRET)
    text = f"org.apache.spark.SparkException: Job aborted\n  {caught.value}\n\tat java.lang.Thread.run"
    return from_worker(text, SECRET), text


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a", 2),
        KeyError(("k", None)),
        Keyworded(code=7),
        Slotted("s"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
        FileNotFoundError(2, "No such file", "a.txt"),
        SourceError(5, "torn", "b.txt"),
        StopIteration(3),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_arrives_as_it_was(error):
    """Type, arguments, text and attributes are the same."""
    arrived, _ = sent(error)

    assert (type(arrived), arrived.args, str(arrived)) == (type(error), error.args, str(error))
    assert {name: value for name, value in vars(arrived).items() if name[:2] != "__"} == vars(error)


def test_os_errors_keep_their_number_and_file():
    """What the built-in `__init__` derives from the arguments is derived again."""
    arrived, _ = sent(SourceError(5, "torn", "b.txt"))

    assert (arrived.errno, arrived.strerror, arrived.filename) == (5, "torn", "b.txt")


def test_notes_and_failure_arrive(step):
    """What was noted on the worker can be read in the caller, with the traceback of the worker as text."""
    error = ValueError("bad")
    error.add_note("mine")
    blame(error, step, 17)
    arrived, _ = sent(error)

    assert (failure(arrived).step, failure(arrived).item) == (step, 17)
    assert "ValueError: bad" in failure(arrived).remote_traceback
    assert arrived.__notes__ == ["mine"]


def test_an_argument_that_cannot_be_pickled_is_shown_instead(step):
    """The type stays; the argument becomes its text."""
    error = ValueError("no", threading.Lock())
    blame(error, step, 17)
    arrived, _ = sent(error)

    assert (type(arrived), arrived.args[0], "lock" in arrived.args[1]) == (ValueError, "'no'", True)
    assert failure(arrived).item == 17


def test_an_attribute_that_cannot_be_pickled_is_left_out():
    """Type and arguments stay."""
    error = ValueError("no")
    error.lock = threading.Lock()
    arrived, _ = sent(error)

    assert (type(arrived), arrived.args, hasattr(arrived, "lock")) == (ValueError, ("no",), False)


def test_an_exception_whose_class_cannot_be_pickled_becomes_an_engine_error():
    """If nothing else is possible, its name and text arrive."""

    class Stubborn(Exception):
        lock = threading.Lock()

    arrived, _ = sent(Stubborn("no way"))
    assert type(arrived) is EngineError
    assert "Stubborn: no way" in str(arrived)


def test_an_item_that_is_large_or_cannot_travel_is_left_out(step):
    """The exception arrives without it; the note still shows how it begins."""
    for item in (b"x" * 1_000_000, threading.Lock()):
        error = ValueError("bad")
        blame(error, step, item)
        arrived, text = sent(error)

        assert repr(failure(arrived).item) == "<not known>"
        assert failure(arrived).shown_item == shown(item)
        assert len(text) < 200_000


def test_what_an_exception_was_raised_from_arrives():
    """The causes come along, each as an exception of its own."""
    error = ValueError("outer")
    error.__cause__ = KeyError("inner")
    error.__cause__.__cause__ = OSError(2, "gone", "f.txt")
    arrived, _ = sent(error)

    assert (repr(arrived.__cause__), arrived.__cause__.__cause__.filename) == ("KeyError('inner')", "f.txt")


def test_the_members_of_a_group_arrive():
    """Also those that cannot be pickled as they are, and those of a group inside."""
    inner = ExceptionGroup("inner", [KeyError(1)])
    arrived, _ = sent(ExceptionGroup("many", [ValueError("no", threading.Lock()), inner]))
    first, second = arrived.exceptions

    assert (type(arrived), arrived.message, type(first), first.args[0]) == (ExceptionGroup, "many", ValueError, "'no'")
    assert repr(second) == repr(inner)


def test_the_line_that_raised_arrives():
    """The frames stay on the worker; where the user's own code failed comes along."""
    try:
        int(threading.Lock())
    except TypeError as error:
        arrived, _ = sent(error)
        expected = origin_of(error)

    assert known_of(arrived).origin == expected
    assert expected.text == "int(threading.Lock())"


def test_the_failure_of_an_inner_stream_arrives_without_its_functions(step):
    """What was told about it is text."""
    error = ValueError("bad")
    blame(error, step, 1)
    told(error, replace(failure(error), account=FailureMessage(("told",), threading.Lock().acquire, is_inside=True)))
    blame(error, step, 2)
    arrived, _ = sent(error)

    assert (failure(arrived).item, failure(arrived).inner.item) == (2, 1)
    assert failure(arrived).inner.account == FailureMessage(("told",), is_inside=True)


def test_another_text_holds_no_exception():
    """An error of Spark's own is not mistaken for one of the user's."""
    assert from_worker("org.apache.spark.SparkException: out of memory", SECRET) is None


@pytest.fixture
def opened(tmp_path):
    """A file that is there as soon as `forged` is unpickled."""
    return tmp_path / "opened"


@pytest.fixture
def forged(opened):
    """Marks whose pickle opens a file: without a signature, with a random one, and signed with another secret."""
    data = base64.b64encode(pickle.dumps(Opening(str(opened)))).decode()
    signature = hmac.digest(b"a guess", data.encode(), "sha256").hex()
    return [f"dstream-failure:{head}{data}" for head in ("", f"{'0f' * 32}:", f"{signature}:")]


@dataclass
class Opening:
    """A value whose unpickling has an effect."""

    path: str

    def __reduce__(self):
        return open, (self.path, "x")


def test_a_forged_failure_is_never_unpickled(forged, opened):
    """A text of Spark's may quote any string of the data; only the workers know the secret."""
    for mark in forged:
        assert from_worker(f"[CAST_INVALID_INPUT] The value '{mark}' cannot be cast", SECRET) is None
        with pytest.raises(EngineError) as caught, translated():
            raise Py4JError(f"java.lang.Foo: the value '{mark}' is none")
        assert mark in str(caught.value)
    assert not opened.exists()


def test_a_failure_that_was_cut_or_changed_holds_no_exception():
    """Its signature is that of the whole."""
    _, text = sent(ValueError("a", 2))
    whole = next(word for word in text.split() if word.startswith("dstream-failure:"))
    changed = f"{whole[:-9]}{'B' if whole[-9] == 'A' else 'A'}{whole[-8:]}"

    assert [type(from_worker(each, SECRET)) for each in (whole, whole[:-8], changed)] == [
        ValueError,
        NoneType,
        NoneType,
    ]


def test_a_failure_is_found_behind_a_forged_one(forged, opened):
    """The item that failed may be the forged text itself."""
    _, text = sent(ValueError("a", 2))

    assert from_worker(f"{' '.join(forged)} {text}", SECRET).args == ("a", 2)
    assert not opened.exists()


@pytest.fixture
def strict_casts(spark_context):
    """A session in which a text that is no number cannot be cast to one, as by default since Spark 4."""
    before = spark_context.spark.conf.get(ANSI)
    spark_context.spark.conf.set(ANSI, "true")
    yield spark_context
    spark_context.spark.conf.set(ANSI, before)


def test_a_data_frame_whose_error_quotes_a_forged_failure_runs_nothing(strict_casts, forged, opened):
    """Its error is one of Spark's, with the text as it is."""
    texts = strict_casts.spark.createDataFrame([(" ".join(forged),)], "text string")
    with pytest.raises(EngineError, match="CAST_INVALID_INPUT") as caught:
        strict_casts.from_df(texts.selectExpr("CAST(text AS INT) AS number")).to_list()

    assert all(mark in failure(caught.value).remote_traceback for mark in forged)
    assert not opened.exists()


def test_a_failure_on_an_item_that_looks_like_one_arrives(spark_context, forged, opened):
    """With its step, its line and its item."""
    with pytest.raises(ValueError, match="invalid literal") as caught:
        spark_context.stream(["1", forged[0]], 2).map(int).to_list()

    found = failure(caught.value)
    assert (found.step.label, found.item, found.step.where.file) == (".map(int)", forged[0], __file__)
    assert not opened.exists()


class Barred(Exception):
    """Refuses to be changed: by `__setattr__`, and by a property without a setter. Keeps a value in a slot."""

    __slots__ = ("_code",)

    def __init__(self, code):
        super().__init__("barred")
        Barred._code.__set__(self, code)

    def __setattr__(self, name, value):
        raise AttributeError("no")

    @property
    def code(self):
        return self._code


@dataclass(frozen=True, slots=True)
class FrozenSlots(Exception):
    """Has its fields in slots."""

    code: int


@dataclass(frozen=True)
class Frozen(Exception):
    """Refuses every attribute."""

    code: int


class Private(Exception):
    """Has a slot whose name is mangled, and one in a base."""

    __slots__ = ("__hidden",)

    def __init__(self, hidden):
        self.__hidden = hidden

    @property
    def code(self):
        return self.__hidden


REFUSING = [Barred, FrozenSlots, Frozen, Private]


@pytest.mark.parametrize("kind", REFUSING)
def test_an_exception_that_refuses_attributes_arrives_whole(kind, step):
    """Its values stand in slots or fields that nobody may set."""
    error = kind(7)
    blame(error, step, 17)
    arrived, _ = sent(error)

    assert (type(arrived), arrived.code, arrived.args) == (kind, 7, error.args)
    assert failure(arrived).item == 17


@pytest.mark.parametrize("kind", REFUSING)
@pytest.mark.parametrize("way", ["map", "finisher", "action", "partition"])
def test_an_exception_that_refuses_attributes_comes_out_of_spark(spark_context, way, kind):
    """With its type, whether it was raised on a worker or in the caller, and with the item."""

    def fail(item, *_):
        raise kind(7)

    stream = spark_context.stream([1], 1)
    run = {
        "map": lambda: stream.map(fail).to_list(),
        "finisher": lambda: stream.collect(Collector(list, list.append, list.extend, fail)),
        "action": lambda: stream.peek(fail).count(),
        "partition": lambda: stream.for_each_partition(lambda items: [fail(item) for item in items]),
    }
    with pytest.raises(kind) as caught:
        run[way]()

    assert (caught.value.code, len(caught.value.__notes__)) == (7, 3)
    assert (failure(caught.value).item == 1) == (way in ("map", "action"))
