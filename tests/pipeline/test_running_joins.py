"""Hash joins, services and look-ups of pipelines, from end to end on both engines."""

from __future__ import annotations

import pytest

from dstream import Entry, JoinClause, Pipeline, Service, imap_service
from dstream.errors import UnstableKeyError
from reducers import to_ilist
from sources import Items


@pytest.fixture
def right(pipeline):
    """Entries of which one key has two, and one value is None."""
    return pipeline.read_from(Items([Entry(1, "one"), Entry(2, None), Entry(1, "uno")], 2))


CLAUSE = JoinClause.join_map_entries(abs)


def test_items_are_paired_with_their_matches(numbers, right, given_on):
    """In the order of the left side, several matches in that of the right one; None stands for no match."""
    stage = numbers.limit(3)
    outer = stage.hash_join(right, on=CLAUSE)
    inner = stage.inner_hash_join(right, on=(abs, lambda entry: entry.key), to=lambda n, entry: (n, entry.value))

    assert given_on(outer, inner) == [
        [(0, None), (1, "one"), (1, "uno"), (2, None)],
        [(1, "one"), (1, "uno"), (2, None)],
    ]


def test_several_right_sides_give_their_product(numbers, right, given_on):
    """Each match of one goes with each match of the other."""
    stage = numbers.skip(1).limit(2).hash_join_all([(right, CLAUSE), (right, CLAUSE)], to=lambda n, a, b: f"{n}{a}{b}")

    assert given_on(stage) == ["1oneone", "1oneuno", "1unoone", "1unouno", "2NoneNone"]


def test_a_right_side_may_be_made_of_the_left_one(numbers, given_on):
    """Both hang on one fork."""
    squares = numbers.map(lambda n: (n, n * n))

    assert given_on(numbers.hash_join(squares, on=JoinClause.join_map_entries(abs)).limit(3)) == [
        (0, 0),
        (1, 1),
        (2, 4),
    ]


@pytest.mark.parametrize("keys", [(str, lambda n: [n]), (lambda n: [n], str)], ids=["right", "left"])
def test_a_key_that_cannot_be_one_names_its_item(numbers, given_on, keys):
    """On whichever side it is."""
    with pytest.raises(UnstableKeyError, match="list has no hash") as caught:
        given_on(numbers.hash_join(numbers, on=keys))

    assert "on the item" in "\n".join(caught.value.__notes__)


def made() -> dict[int, str]:
    """Make a service."""
    return {1: "one", 2: "two"}


def test_functions_are_given_a_service(numbers, given_on):
    """Its three forms; failures are dealt with as those of other steps."""
    service = Service(made)
    named = numbers.map_using(service, lambda known, n: known.get(n))
    known = numbers.filter_using(service, lambda known, n: n in known)
    letters = numbers.flat_map_using(Service(made, shared=False), lambda known, n: known.get(n, ""))
    safe = numbers.map_using(service, lambda known, n: known[n]).ignore(KeyError)

    assert given_on(named, known, letters, safe) == [
        [None, "one", "two", None, None, None],
        [1, 2],
        [*"onetwo"],
        ["one", "two"],
    ]


def test_maps_are_read_where_functions_run(numbers, given_on, engine):
    """Through a service, and in batches."""
    name = f"names-{engine.name}"
    engine.context.get_map(name).update({1: "one", 2: "two"})
    looked_up = numbers.map_using_imap(name, lambda n: n + 1, lambda n, value: (n, value))
    counted = numbers.limit(1).map_using(imap_service(name), lambda view, n: len(view))

    assert given_on(looked_up, counted) == [
        [(0, "one"), (1, "two"), (2, None), (3, None), (4, None), (5, None)],
        [2],
    ]


def test_dead_letters_go_to_the_context_of_the_job(numbers, given, local_context):
    """Not to the default one, of which a pipeline knows nothing."""
    stage = numbers.map(lambda n: 6 // n).on_error(ZeroDivisionError, into=to_ilist("letters-of-a-pipeline"))

    assert given(stage) == [6, 3, 2, 1, 1]
    assert [letter.item for letter in local_context.get_list("letters-of-a-pipeline")] == [0]


def test_wrong_arguments_of_look_ups_are_refused(numbers):
    """At the call."""
    with pytest.raises(TypeError, match="key must be a function, not int"):
        numbers.map_using_imap("names", 3, max)
    with pytest.raises(ValueError, match="name of a map must not be empty"):
        Pipeline().read_from(Items([1])).map_using_imap("", abs, max)
