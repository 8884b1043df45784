"""A map does what a dict does, by the standard library's own tests; what differs is overridden with its reason."""

from __future__ import annotations

import unittest

import pytest

from dstream.errors import NullElementError
from tests.collections.stored import Making

mapping_tests = pytest.importorskip("test.mapping_tests", reason="this Python was installed without its tests")


class TestMap(mapping_tests.TestHashMappingProtocol):
    @staticmethod
    def type2test(*args, **kwargs):
        made = Making().map()
        made.update(*args, **kwargs)
        return made

    def test_setdefault(self):
        """`setdefault(key)` would store a None, which a map refuses; and what it returns is a copy."""
        ages = self._empty_mapping()
        with pytest.raises(TypeError):
            ages.setdefault("Ada")
        ages.setdefault("list", []).append(3)
        assert ages["list"] == []
        assert ages.setdefault("list", [1]) == []

    def test_copy(self):
        """A copy is a plain dict: a second collection would need a name."""
        ages = self._full_mapping({1: 1, 2: 2})
        assert type(ages.copy()) is dict
        assert ages.copy() == {1: 1, 2: 2} == ages
        with pytest.raises(TypeError):
            ages.copy(None)

    def test_popitem(self):
        """`popitem` removes some entry: there is no last one."""
        entries = {str(n): n for n in range(70)}
        ages = self._full_mapping(entries)
        assert dict(ages.popitem() for _ in range(70)) == entries
        with pytest.raises(KeyError):
            ages.popitem()

    def test_repr(self):
        """A repr names the collection and shows a few entries; `test_shown` says how."""
        assert repr(self._empty_mapping()) != "{}"

    def test_mutatingiteration(self):
        """Iterating sees the state at its start and needs no error."""
        numbers = self._full_mapping({1: 1})
        for n in numbers:
            numbers[n + 1] = 1
        assert numbers == {1: 1, 2: 1}

    def test_getitem(self):
        mapping_tests.TestMappingProtocol.test_getitem(self)  # The rest is about keys whose hash or equality fails.

    def test_pop(self):
        mapping_tests.TestMappingProtocol.test_pop(self)  # As above.

    def test_eq(self):
        """Maps of equal entries are equal; keys of classes that compare in strange ways are refused."""
        assert self._full_mapping({1: 2}) == self._full_mapping({1: 2})

    @unittest.skip("a handle is made from a store, not from entries")
    def test_fromkeys(self):
        """Be skipped."""

    @unittest.skip("a map cannot be a value of itself")
    def test_repr_deep(self):
        """Be skipped."""


@pytest.mark.parametrize("call", ["__getitem__", "pop", "get", "__contains__", "remove"])
def test_a_key_whose_hash_fails_is_a_type_error_that_says_so(make, call):
    """A dict would pass the exception of `__hash__` on; here it is the cause of an `UnstableKeyError`."""

    class BadHash:
        def __eq__(self, other):
            return True

        def __hash__(self):
            raise ZeroDivisionError

    with pytest.raises(TypeError, match="cannot be a key"):
        getattr(make.map(), call)(BadHash())


def test_none_is_never_a_key(make):
    """Asked for, it is not there, as what nobody has put is not; nobody can put it."""
    stored = make.map()
    stored["a"] = 1

    assert None not in stored
    assert (stored.get(None), stored.get(None, 7), stored.pop(None, 8), stored.remove(None)) == (None, 7, 8, None)
    assert stored.get_all([None, "a"]) == {"a": 1}
    for asked in (lambda: stored[None], lambda: stored.pop(None), lambda: stored.__delitem__(None)):
        with pytest.raises(KeyError):
            asked()
    for put in (lambda: stored.put(None, 1), lambda: stored.update({None: 1}), lambda: stored.setdefault(None, 1)):
        with pytest.raises(NullElementError):
            put()
