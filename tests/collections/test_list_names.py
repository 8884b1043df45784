"""Jet's names on a list, and where they differ from a list's."""

from __future__ import annotations

import threading

import pytest

from tests.collections.stored import StoreAround


def test_add_appends_and_returns_true(make):
    """As `java.util.List.add`."""
    names = make.list(["Ada"])

    assert (names.add("Alan"), names.add(None), names.copy()) == (True, True, ["Ada", "Alan", None])


def test_add_at_an_index(make):
    """The end itself counts, what lies beyond is an `IndexError`."""
    names = make.list("ad")
    names.add(1, "b")
    names.add(-1, "c")
    names.add(4, "e")

    assert names == list("abcde")
    for index in (6, -6):
        with pytest.raises(IndexError, match=f"index {index} lies beyond the 5 items of list 'names'"):
            names.add(index, "z")


def test_add_all_says_whether_there_was_anything(make):
    """At the end, or before an index; all in one commit."""
    names = make.list("ad")

    assert [names.add_all(iter("ef")), names.add_all(1, "bc"), names.add_all(""), names.add_all(0, "")] == [
        True,
        True,
        False,
        False,
    ]
    names.add_all(names)
    assert names == list("abcdefabcdef")


def test_set_returns_the_old_item(make):
    """Negative indices count from the end."""
    names = make.list("abc")

    assert (names.set(0, "x"), names.set(-1, "z"), names.copy()) == ("a", "c", ["x", "b", "z"])
    with pytest.raises(IndexError):
        names.set(3, "y")


def test_get_is_an_index(make):
    """Only of one item."""
    names = make.list("abc")

    assert (names.get(0), names.get(-1)) == ("a", "c")
    with pytest.raises(IndexError, match="list index out of range"):
        names.get(3)
    with pytest.raises(TypeError):
        names.get(slice(0, 2))


@pytest.mark.parametrize("call", ["add", "add_all"])
def test_a_wrong_number_of_arguments_is_refused(make, call):
    """The message says what the call takes."""
    with pytest.raises(TypeError, match=rf"{call}\(\) takes \(item"):
        getattr(make.list(), call)(1, 2, 3)


def test_size_and_emptiness(make):
    """`len` and `bool` say the same."""
    names = make.list()
    before = (names.size(), len(names), names.is_empty(), bool(names))
    names.append(None)

    assert before == (0, 0, True, False)
    assert (names.size(), len(names), names.is_empty(), bool(names)) == (1, 1, False, True)


@pytest.mark.parametrize(
    ("other", "is_equal"),
    [
        (["a", "b"], True),
        (("a", "b"), True),
        (["b", "a"], False),
        (["a"], False),
        (["a", "b", "c"], False),
        ("ab", False),
        ({"a", "b"}, False),
        (None, False),
    ],
)
def test_equality_with_any_sequence_but_a_text(make, other, is_equal):
    """The same items in the same order; two lists of different names too."""
    names = make.list("ab")

    assert (names == other, names != other) == (is_equal, not is_equal)
    if is_equal:
        assert names == make.list(other, "others")


def test_equality_compares_one_state_to_its_end(make):
    """What comes between counting and reading is seen."""
    names = make.list("ab")
    names._opened = Growing(names.store)

    assert names != ["a", "b"]


class Growing(StoreAround):
    """Adds an item as soon as its size was told."""

    def size(self):
        size = self.store.size()
        self.store.extend("c")
        return size


@pytest.mark.parametrize(("replace", "items"), [(False, ["a", "b"]), (True, ["b"])])
def test_a_job_appends_or_replaces(make, replace, items):
    """As it was begun; once, whoever runs it again."""
    names = make.list("a")
    for _ in range(2):
        job = names.store.begin("nightly", replace=replace)
        job.commit(list(job.writer.write(iter("b"))))

    assert names == items


def test_nan_is_found(make):
    """A list finds it by identity, which it has lost in the storage."""
    numbers = make.list([1.0, float("nan")])

    assert (float("nan") in numbers, numbers.index(float("nan")), numbers.count(float("nan"))) == (True, 1, 1)


def test_an_iterable_that_fails_adds_nothing(make):
    """All or nothing."""
    names = make.list(["a"])

    def failing():
        yield "b"
        raise ZeroDivisionError

    for add in (
        names.extend,
        names.add_all,
        lambda items: names.add_all(0, items),
        lambda items: set_all(names, items),
    ):
        with pytest.raises(ZeroDivisionError):
            add(failing())
    assert names == ["a"]


def set_all(names, items):
    """Replace all items."""
    names[:] = items


CHANGES = {
    "names[-1] = 'z'": lambda names: names.__setitem__(-1, "z"),
    "del names[-1]": lambda names: names.__delitem__(-1),
    "del names[::2]": lambda names: names.__delitem__(slice(None, None, 2)),
    "names[-2:] = ..": lambda names: names.__setitem__(slice(-2, None), "xyz"),
    "names[:1] = names": lambda names: names.__setitem__(slice(0, 1), names),
    "pop": lambda names: names.pop(),
    "insert": lambda names: names.insert(-1, "z"),
    "remove": lambda names: names.remove("a"),
    "reverse": lambda names: names.reverse(),
    "sort": lambda names: names.sort(),
    "clear": lambda names: names.clear(),
    "set": lambda names: names.set(-1, "z"),
    "add": lambda names: names.add(-1, "z"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_sees_one_state(make, change):
    """What another thread appends while it runs is not lost, and indices count from the list as it then is."""
    names, plain = make.list("abcd"), list("abcd")
    names._opened = Appending(names.store, plain)
    CHANGES[change](names)
    CHANGES[change](plain) if change not in ("set", "add") else plain.__setitem__(
        *((-1, "z") if change == "set" else (slice(-1, -1), ["z"]))
    )

    assert names == plain


class Appending(StoreAround):
    """Lets another thread append two items while the first change runs."""

    def __init__(self, store, plain):
        super().__init__(store)
        self.plain = plain

    def edit(self, change):
        def meddling(view):
            splice = change(view)
            if len(self.plain) == 4 and splice is not None:
                self.plain += "ef"
                other = threading.Thread(target=self.store.extend, args=("ef",))
                other.start()
                other.join()
            return splice

        self.store.edit(meddling)


def test_negative_indices_and_slices_are_read_in_one_state(make):
    """Size and items come from one look."""
    names = make.list("abcd")
    names._opened = Sizeless(names.store)

    assert (names[-1], names[-2:], names[::-2], names.index("c", -3)) == ("d", ["c", "d"], ["d", "b"], 2)


class Sizeless(StoreAround):
    """Refuses to tell a size that may be another one a moment later."""

    def __getattr__(self, name):
        assert name != "size"
        return super().__getattr__(name)


def test_a_list_has_no_hash(make):
    """As a list, which changes."""
    with pytest.raises(TypeError, match="unhashable type: 'IStreamList'"):
        hash(make.list())
