"""Any sequence of operations gives what it gives on a dict or a list (Hypothesis)."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.collections.stored import Making

KEYS = st.sampled_from(["a", "b", 1, 1.0, True, 2, (1, "x"), b"k"])
VALUES = st.integers(0, 3) | st.lists(st.integers(0, 2), max_size=2)
ITEMS = st.integers(0, 4) | st.none()
INDEXES = st.integers(-8, 8)
SLICES = st.builds(slice, *[st.none() | INDEXES] * 2, st.none() | st.sampled_from([-3, -2, -1, 1, 2, 3]))


def outcome(call):
    """Return what a call gives, or which exception."""
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


class AgainstDict(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.stored = Making().map()
        self.plain = {}

    def both(self, call):
        assert outcome(lambda: call(self.stored)) == outcome(lambda: call(self.plain))

    @rule(key=KEYS, value=VALUES)
    def set(self, key, value):
        self.both(lambda m: m.__setitem__(key, value))

    @rule(key=KEYS, value=VALUES)
    def setdefault(self, key, value):
        self.both(lambda m: m.setdefault(key, value))

    @rule(key=KEYS)
    def look(self, key):
        self.both(lambda m: (m.get(key), key in m, key in m.keys(), m.get(key, 7), m[key]))  # noqa: SIM118

    @rule(key=KEYS)
    def delete(self, key):
        self.both(lambda m: m.__delitem__(key))

    @rule(key=KEYS)
    def pop(self, key):
        self.both(lambda m: (m.pop(key, None), m.pop(key)))

    @rule(entries=st.dictionaries(KEYS, VALUES, max_size=4))
    def update(self, entries):
        self.both(lambda m: (m.update(entries), m.update([*entries.items()])))

    @rule()
    def clear(self):
        self.both(lambda m: m.clear())

    @rule(entries=st.dictionaries(KEYS, VALUES, max_size=4))
    def combine(self, entries):
        self.both(lambda m: (m | entries, entries | m, m == entries, m.keys() & entries.keys()))

    @invariant()
    def equal(self):
        assert self.stored == self.plain
        assert (len(self.stored), dict(self.stored.items())) == (len(self.plain), self.plain)


class AgainstList(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.stored = Making().list()
        self.plain = []

    def both(self, call):
        assert outcome(lambda: call(self.stored)) == outcome(lambda: call(self.plain))

    @rule(items=st.lists(ITEMS, max_size=5))
    def extend(self, items):
        self.both(lambda names: names.extend(iter(items)))

    @rule(item=ITEMS)
    def append(self, item):
        self.both(lambda names: names.append(item))

    @rule(index=INDEXES, item=ITEMS)
    def insert(self, index, item):
        self.both(lambda names: names.insert(index, item))

    @rule(index=INDEXES | SLICES)
    def look(self, index):
        self.both(lambda names: names[index])

    @rule(index=INDEXES, item=ITEMS)
    def set(self, index, item):
        self.both(lambda names: names.__setitem__(index, item))

    @rule(index=SLICES, items=st.lists(ITEMS, max_size=4))
    def set_slice(self, index, items):
        self.both(lambda names: names.__setitem__(index, items))

    @rule(index=INDEXES | SLICES)
    def delete(self, index):
        self.both(lambda names: names.__delitem__(index))

    @rule(index=INDEXES)
    def pop(self, index):
        self.both(lambda names: names.pop(index))

    @rule(item=ITEMS, start=INDEXES, stop=INDEXES)
    def find(self, item, start, stop):
        self.both(lambda names: (item in names, names.count(item), names.index(item, start, stop)))

    @rule(item=ITEMS)
    def remove(self, item):
        self.both(lambda names: names.remove(item))

    @rule()
    def turn(self):
        self.both(lambda names: names.reverse())

    @rule(reverse=st.booleans())
    def sort(self, reverse):
        self.both(lambda names: names.sort(key=lambda item: -1 if item is None else item, reverse=reverse))

    @invariant()
    def equal(self):
        assert self.stored == self.plain
        assert (list(self.stored), list(reversed(self.stored))) == (self.plain, self.plain[::-1])


TestAgainstDict = AgainstDict.TestCase
TestAgainstList = AgainstList.TestCase
TestAgainstDict.settings = TestAgainstList.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
