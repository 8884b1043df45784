"""A list does what a list does, by the standard library's own tests; what differs is overridden with its reason."""

from __future__ import annotations

import unittest

import pytest

from tests.collections.stored import Making

list_tests = pytest.importorskip("test.list_tests", reason="this Python was installed without its tests")


def without(reason):
    """Skip a test, visibly."""

    @unittest.skip(reason)
    def skipped(self):
        """Be skipped."""

    return skipped


class TestList(list_tests.CommonTest):
    @staticmethod
    def type2test(items=()):
        return Making().list(items)

    test_init = without("a handle is made from a store, not from items")
    test_constructors = test_init
    test_pickle = without("a handle does not travel; test_misuse says what it tells instead")
    test_repr = without("a repr names the collection and shows a few items; test_shown says how")
    test_repr_deep = without("a list cannot be an item of itself")
    test_free_after_iterating = without("an iterator pins a state of the storage, not the handle")
    test_getitemoverwriteiter = without("a subclass of a handle is not made from items")
    test_addmul = without("a stored list is not repeated; `+` is tested below")
    test_imul = test_addmul
    test_repeat = test_addmul
    test_bigrepeat = test_addmul
    test_contains_fake = without(
        "items are copies of plain values; objects with a strange __eq__ do not stay themselves"
    )
    test_contains_order = test_contains_fake

    def test_copy(self):
        """A copy is a plain list, and the items in it are copies too."""
        names = self.type2test([1, [2, 3]])
        copied = names.copy()
        copied[1].append(4)
        assert (type(copied), copied, names) == (list, [1, [2, 3, 4]], [1, [2, 3]])
        with pytest.raises(TypeError):
            names.copy(None)

    def test_count(self):
        numbers = self.type2test([0, 1, 2] * 3)
        assert [numbers.count(n) for n in range(4)] == [3, 3, 3, 0]
        with pytest.raises(TypeError):
            numbers.count()

    def test_index(self):
        numbers = self.type2test([-2, -1, 0, 0, 1, 2])
        plain = [-2, -1, 0, 0, 1, 2]
        for bounds in ((), (2,), (3,), (3, 4), (-4,), (-3, -2), (-(10**30), 10**30)):
            assert numbers.index(0, *bounds) == plain.index(0, *bounds)
        for bounds in ((0, -10), (10**30, -(10**30)), (0, 4)):
            with pytest.raises(ValueError, match="2 is not in list"):
                numbers.index(2, *bounds)

    def test_remove(self):
        numbers = self.type2test([0, 0, 1])
        numbers.remove(1)
        numbers.remove(0)
        assert numbers == [0]
        with pytest.raises(ValueError, match=r"list\.remove\(x\): x not in list"):
            numbers.remove(1)

    def test_sort(self):
        """As `list.sort`; an exception of the key changes nothing."""
        names = self.type2test(["bb", "a", "CC"])
        names.sort()
        assert names == ["CC", "a", "bb"]
        names.sort(key=len, reverse=True)
        assert names == ["CC", "bb", "a"]
        with pytest.raises(ZeroDivisionError):
            names.sort(key=lambda name: 1 / 0)
        assert names == ["CC", "bb", "a"]
        with pytest.raises(TypeError):
            names.sort(len)

    def test_exhausted_iterator(self):
        """An iterator sees the state at its start: what is appended later belongs to the next one."""
        numbers = self.type2test([1])
        iterator = iter(numbers)
        numbers.append(2)
        assert (list(iterator), list(numbers)) == ([1], [1, 2])

    def test_reversed(self):
        numbers = self.type2test(range(20))
        assert list(reversed(numbers)) == list(range(19, -1, -1))
        assert list(reversed(self.type2test())) == []


@pytest.mark.parametrize(
    "operation",
    [
        lambda names: names[9],
        lambda names: names[-9],
        lambda names: names["a"],
        lambda names: names[2**70],
        lambda names: names[::0],
        lambda names: names.__setitem__(9, 1),
        lambda names: names.__setitem__("a", 1),
        lambda names: names.__setitem__(slice(0, 4, 2), [1]),
        lambda names: names.__setitem__(slice(0, 4, 2), 1),
        lambda names: names.__setitem__(slice(0, 4), 1),
        lambda names: names.__setitem__(slice(3, 0, -1), [1]),
        lambda names: names.__delitem__(-9),
        lambda names: names.__delitem__(None),
        lambda names: names.pop(9),
        lambda names: names.pop("a"),
        lambda names: names.insert("a", 1),
        lambda names: names.index("z"),
        lambda names: names.remove("z"),
        lambda names: names.extend(None),
        lambda names: names.__iadd__(5),
        lambda names: {names},
    ],
)
def test_errors_are_those_of_a_list(make, operation):
    """Type and message are the same, and nothing changes."""
    plain, stored = list("abcd"), make.list("abcd")
    with pytest.raises(Exception) as expected:  # noqa: PT011
        operation(plain)
    with pytest.raises(type(expected.value)) as raised:
        operation(stored)

    told = str(raised.value).replace("IStreamList", "list")
    assert (told, stored) == (str(expected.value), plain)


def test_plus_gives_a_plain_list(make):
    """A sum has no name to be stored under."""
    total = make.list([1]) + [2] + make.list([3], "others")

    assert (type(total), total) == (list, [1, 2, 3])
    for other in ((1,), "a", 1, None):
        with pytest.raises(TypeError):
            make.list() + other
        with pytest.raises(TypeError):
            other + make.list()
