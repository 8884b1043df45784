"""`verify_processor` finds states that a snapshot does not save, or does not give back."""

from __future__ import annotations

from typing import ClassVar

import pytest

from dstream.core import AbstractProcessor
from dstream.errors import UnsupportedError
from dstream.testing import verify_processor
from tests.testing.processors_to_verify import SavesNothing, Total


class KeepsAList(Total):
    """Takes entries back in the order in which they come."""

    def start(self, context):
        """Begin."""
        self.items, self.saving = [], None

    def try_process(self, ordinal, item):
        """Keep it."""
        self.items.append(item)
        return True

    def save_to_snapshot(self):
        """Save each."""
        self.saving = self.saving or iter(list(enumerate(self.items)))
        if not self.emit_from_traverser_to_snapshot(self.saving):
            return False
        self.saving = None
        return True

    def restore_entry(self, key, value):
        """Keep it, wherever it was."""
        self.items.append(value)

    def complete(self):
        """Emit all."""
        return self.try_emit(tuple(self.items))


def test_a_state_that_depends_on_the_order_of_entries_is_found():
    """They come back in any."""
    with pytest.raises(AssertionError, match="depends on the order in which entries come back"):
        verify_processor(KeepsAList).input([3, 1, 2]).expect_output([(3, 1, 2)])


def test_a_state_that_is_not_saved_is_found():
    """Without being restored it is right, and the message says so."""
    with pytest.raises(
        AssertionError, match=r"in the run 'restored after every other item', and it was right without being restored"
    ):
        verify_processor(SavesNothing).input([1, 2, 3]).expect_output([6])


class SavesTwice(Total):
    """Saves one key again."""

    saved = 0

    def save_to_snapshot(self):
        """Save the same in two calls."""
        self.saved += self.try_emit_to_snapshot("total", self.total)
        return self.saved % 2 == 0


def test_a_key_that_is_saved_twice_is_found():
    """In one snapshot."""
    with pytest.raises(AssertionError, match="SavesTwice saved the key 'total' twice in one snapshot"):
        verify_processor(SavesTwice).input([1]).expect_output([1])


class SavesOthers(Total):
    """Goes on with another key."""

    saved = 0

    def save_to_snapshot(self):
        """Save two keys, of which the second has another name in each call."""
        self.saved += 2
        return all(self.try_emit_to_snapshot(key, 0) for key in (self.saved, self.saved + 1))


def test_another_key_offered_again_is_found():
    """The message has both."""
    with pytest.raises(AssertionError, match=r"offer_to_snapshot\(\) refused 3, .* and got 4"):
        verify_processor(SavesOthers).input([1]).expect_output([1])


class NotRestored(Total):
    """Saves, and takes nothing back."""

    restore_entry = AbstractProcessor.restore_entry


def test_a_snapshot_that_nobody_takes_back_is_found():
    """As on an engine, and with the place."""
    with pytest.raises(UnsupportedError, match="NotRestored saves a snapshot, and has no restore_entry") as caught:
        verify_processor(NotRestored).input([1]).expect_output([1])

    assert "in the run 'restored after every other item'" in caught.value.__notes__[0]


class SavesAnywhere(Total):
    """Saves while it processes, if there are snapshots."""

    def try_process(self, ordinal, item):
        """Save an item."""
        return not self.context.snapshotting_enabled or self.try_emit_to_snapshot("item", item)


def test_saving_outside_of_a_snapshot_is_found():
    """There is none that it could go into."""
    with pytest.raises(AssertionError, match=r"inside of save_to_snapshot\(\) alone"):
        verify_processor(SavesAnywhere).input([1]).expect_output([0])


class SavesGenerator(Total):
    """Saves what cannot travel."""

    def save_to_snapshot(self):
        """Save a generator."""
        return self.try_emit_to_snapshot("left", (each for each in "ab"))


def test_a_state_that_cannot_travel_is_found():
    """It is pickled, as on an engine."""
    with pytest.raises(TypeError, match="cannot pickle"):
        verify_processor(SavesGenerator).input([1]).expect_output([1])


class OnItsClass(AbstractProcessor):
    """Counts and collects on the class."""

    count = 0
    seen: ClassVar[list[int]] = []

    def try_process(self, ordinal, item):
        """Emit the item."""
        self.keep(item)
        return self.try_emit(item)

    def keep(self, item):
        """Remember it."""


class Rebinds(OnItsClass):
    """Binds an attribute of the class anew."""

    def keep(self, item):
        """Count."""
        OnItsClass.count += 1


class Adds(OnItsClass):
    """Binds a new one."""

    def keep(self, item):
        """Keep the last one."""
        type(self).last = item


class Shares(OnItsClass):
    """Changes a list that all instances share, since it looks like one of its own."""

    def keep(self, item):
        """Add it."""
        self.seen.append(item)


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (Rebinds, r"OnItsClass\.count was 0, and is 1"),
        (Adds, r"Adds\.last was set to 7"),
        (Shares, r"OnItsClass\.seen was \[\], and is \[7\]"),
    ],
)
def test_a_state_on_the_class_is_found(kind, found):
    """It is right while there is one processor, and no snapshot has it."""
    with pytest.raises(AssertionError, match=f"keeps state on its class: {found}, in the run 'not saved'"):
        verify_processor(kind).input([7]).expect_output([7])


def test_a_state_of_its_own_is_none_of_the_class():
    """Also where the class has a value of the same name, which instances begin with."""

    class Own(OnItsClass):
        def start(self, context):
            self.seen = []

        def keep(self, item):
            self.count += 1
            self.seen.append(item)

    verify_processor(Own).input([7, 8]).expect_output([7, 8])
