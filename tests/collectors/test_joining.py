from itertools import chain

import pytest

from collectors import concatenating, joining


def test_joining_joins_in_order():
    """Strings stand in encounter order with nothing between them."""
    assert joining().collect(["b", "a"]) == "ba"


def test_joining_puts_the_delimiter_around_empty_items():
    """An empty string is an item like any other."""
    assert joining(", ", "[", "]").collect(["", "a", "", ""]) == "[, a, , ]"


def test_joining_of_nothing_is_prefix_and_suffix():
    """Nothing has no delimiter."""
    assert joining(", ", "[", "]").collect([]) == "[]"


def test_joining_an_empty_part_adds_no_delimiter():
    """A part without items leaves no trace; a part of one empty item does."""
    collector = joining("-")
    nothing, empty = collector.supplier(), collector.accumulated(collector.supplier(), [""])
    word = collector.accumulated(collector.supplier(), ["a"])

    assert collector.finisher(collector.combined(collector.combined(nothing, empty), word)) == "-a"


def test_joining_takes_subclasses_of_str():
    """A string of the user's own class is a string."""

    class Name(str):
        __slots__ = ()

    assert joining("-").collect([Name("a"), "b"]) == "a-b"


@pytest.mark.parametrize(
    ("item", "message"), [(7, "not int: 7"), (None, "not NoneType: None"), (b"x", "not bytes: b'x'")]
)
@pytest.mark.parametrize("factory", [joining, concatenating])
def test_joining_takes_strings_only(factory, item, message):
    """Anything else is an error that names the factory and the item, taken in bulk or alone."""
    collector = factory()

    with pytest.raises(TypeError, match=rf"{factory.__name__}\(\) takes strings, {message}"):
        collector.collect(["a", item])
    with pytest.raises(TypeError, match=message):
        collector.accumulator(collector.supplier(), item)


def test_concatenating_leaves_empty_items_out():
    """No delimiter stands around an empty string."""
    assert concatenating(", ", "[", "]").collect(["", "a", "", "b", ""]) == "[a, b]"
    assert concatenating(", ", "[", "]").collect(["", ""]) == "[]"


def test_concatenating_a_part_of_empty_items_adds_no_delimiter():
    """A part in which nothing is left leaves no trace."""
    collector = concatenating("-")
    parts = [collector.accumulated(collector.supplier(), part) for part in (["", ""], ["a"], [""], ["b"])]

    assert collector.finisher(list(chain(*parts))) == "a-b"


@pytest.mark.parametrize("name", ["delimiter", "prefix", "suffix"])
def test_joining_refuses_a_delimiter_that_is_no_string(name):
    """A wrong argument is refused at the call, by name."""
    with pytest.raises(TypeError, match=f"{name} must be a str, not int"):
        joining(**{name: 1})
