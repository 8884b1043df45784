"""Exceptions whose classes are made in C and have no constructor, on their way from a worker."""

from __future__ import annotations

import pytest

from dstream.failures.account import copied
from dstream.failures.transport import SECRET, as_text, from_worker

pydantic = pytest.importorskip("pydantic")


class Order(pydantic.BaseModel):
    """An order."""

    price: int


@pytest.fixture
def failed():
    """What pydantic raises of an order without a number."""
    with pytest.raises(pydantic.ValidationError) as caught:
        Order(price="x")
    caught.value.add_note("a note")
    return caught.value


def test_an_error_of_pydantic_arrives_as_it_was(failed):
    """With its words, its details and its notes."""
    words, details = str(failed), failed.errors()
    found = from_worker(as_text(failed, SECRET), SECRET)

    assert type(found) is pydantic.ValidationError
    assert (str(found), found.errors()) == (words, details)
    assert "a note" in found.__notes__


def test_an_error_of_pydantic_that_cannot_be_made_again_stays_itself(failed):
    """Where one object is raised again it is copied otherwise."""
    assert copied(failed, []) is failed


def test_groups_of_errors_arrive_with_their_members(failed):
    """Also within each other."""
    group = ExceptionGroup("several", [failed, ExceptionGroup("inner", [ValueError(1)])])
    found = from_worker(as_text(group, SECRET), SECRET)

    assert [type(each) for each in found.exceptions] == [pydantic.ValidationError, ExceptionGroup]
    assert found.exceptions[1].exceptions[0].args == (1,)
