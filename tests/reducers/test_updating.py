"""`updating_imap` and `processing_imap`: values made of the old ones and of items."""

from __future__ import annotations

import pytest

import dstream as ds
from dstream.errors import NullElementError
from reducers import processing_imap, replacing, updating_imap
from sources import items


def joined(value, item):
    """Append an item to a text."""
    return (value or "") + item


def extended(entry, item):
    """Append an item to the text of an entry; a dot removes it."""
    entry.set_value(None if item == "." else (entry.value or "") + item)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("sink", [updating_imap("m", ord, joined), processing_imap("m", ord, extended)], ids=repr)
def test_each_item_changes_the_value_of_its_key(ctx, sink, partitions):
    """One after another, in encounter order, beginning with the value that is there."""
    ctx.get_map("m").update({97: "x", 98: "y", 99: "z"})
    found = ctx.stream("abadaa", partitions).collect(sink)

    assert dict(found) == {97: "xaaaa", 98: "yb", 99: "z", 100: "d"}


@pytest.mark.parametrize(
    "sink",
    [
        updating_imap("m", len, lambda value, item: None if item == "." else joined(value, item)),
        processing_imap("m", len, extended),
    ],
    ids=repr,
)
def test_none_removes_an_entry(ctx, sink):
    """The next item of the key finds none."""
    ctx.get_map("m").update({1: "old"})

    assert dict(ctx.stream("a.b", 2).collect(sink)) == {1: "b"}
    assert dict(ctx.stream(".", 2).collect(sink)) == {}
    assert dict(ctx.stream(".", 2).collect(sink)) == {}


def test_a_processor_that_sets_nothing_changes_nothing(local_context):
    """Neither does one that changes the value in place."""
    words = local_context.get_map("words", journal=True)
    words["a"] = ["x"]
    local_context.stream("ab").collect(processing_imap("words", str, lambda entry, item: (entry.value or []).append(1)))

    assert words.copy() == {"a": ["x"]}


def test_a_named_job_counts_once(local_context):
    """Without a name, each run counts."""
    for job in ("nightly", "nightly", None, None):
        local_context.stream("aab").collect(updating_imap("counted", str, lambda n, _: (n or 0) + 1, job=job))

    assert local_context.get_map("counted").copy() == {"a": 6, "b": 3}


def test_a_failure_says_what_the_function_was_given(ctx):
    """And nothing is changed."""
    ctx.get_map("m").update(a=0, b=1)
    with pytest.raises(ZeroDivisionError) as raised:
        ctx.stream("ba", 2).collect(updating_imap("m", str, lambda value, item: 1 // value))

    assert "when update was given 0 and 'a'" in "\n".join(raised.value.__notes__)
    assert dict(ctx.get_map("m")) == {"a": 0, "b": 1}


def test_another_storage_may_have_the_map(local_context, tmp_path):
    """As that of `to_imap`."""
    found = local_context.stream("aa").collect(updating_imap("away", str, joined, storage=tmp_path))

    assert (dict(found), local_context.existing("map", "away")) == ({"a": "aa"}, None)


async def later(value, item):
    """A function that runs later, if anybody waits for it."""


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: updating_imap("", str, max), ValueError, "name must not be empty"),
        (lambda: updating_imap("m", "x", max), TypeError, "key must be a function, not str"),
        (lambda: updating_imap("m", str, later), TypeError, "update must give a result"),
        (lambda: processing_imap("m", str, 5), TypeError, "processor must be a function, not int"),
        (lambda: replacing(updating_imap("m", str, max)), TypeError, "there would be no old values to update"),
    ],
)
def test_arguments_are_checked(make, error, said):
    """At the call."""
    with pytest.raises(error, match=said):
        make()


def test_a_key_is_not_none(local_context):
    """As in every map."""
    with pytest.raises(NullElementError):
        local_context.stream("a").collect(updating_imap("m", lambda item: None, joined))


def test_a_stage_writes_into_it(local_context):
    """Of a pipeline, as into any sink."""
    pipeline = ds.Pipeline()
    pipeline.read_from(items("b", "a", "b")).write_to(updating_imap("of a stage", str, joined))
    local_context.new_job(pipeline).join()

    assert local_context.get_map("of a stage").copy() == {"a": "a", "b": "bb"}
