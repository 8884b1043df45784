"""Ways to get it wrong, and what the user reads: what happened, where in their code, what to do."""

from __future__ import annotations

import re
import traceback

import pytest

import dstream as ds
from tests.mistakes import in_arguments, in_captures, in_files, in_functions, in_order, in_setup
from tests.mistakes.mistake import Desk, recorded

MODULES = (in_arguments, in_captures, in_files, in_functions, in_order, in_setup)
CASES = [(name, engine) for name, made in recorded.items() for engine in made.engines]


@pytest.fixture
def desk(request, tmp_path, engine_name):
    """A context on the engine, with a storage of its own."""
    running = request.getfixturevalue(f"{engine_name}_context")
    master = "local[2]" if engine_name == "spark" else None
    assert running.engine == engine_name
    with ds.connect(master, engine=engine_name, storage=tmp_path / "storage") as ctx:
        yield Desk(ctx, tmp_path)


@pytest.mark.parametrize(("name", "engine_name"), CASES)
def test_a_mistake_is_told_in_the_users_terms(desk, name):
    """The error has the type that Python users expect, says what happened, on which line of theirs, and what to do."""
    made = recorded[name]
    with pytest.raises(made.error) as caught:
        made.run(desk)
    words = made.words(caught.value)

    assert re.search(made.says, words, re.DOTALL), words
    assert made.place in made.places(caught.value), words
    assert re.search(made.advises, words, re.DOTALL), words
    assert not re.search(r"[Pp]y4[Jj]|org\.apache|\tat |pyspark/", "".join(traceback.format_exception(caught.value)))


def test_forty_ways_are_recorded():
    """The list is long enough to trust, and each entry says what it is."""
    assert len(recorded) >= 40
    assert all(made.run.__doc__ for made in recorded.values())
