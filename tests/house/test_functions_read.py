"""The count of the functions that are read looks at each function of a step, and at nothing else."""

from __future__ import annotations

from tests.house.functions_read import functions_of

SCRIPT = """
import dstream as ds

with ds.connect(engine="local") as ctx:
    numbers = ctx.stream([1, 2]).map(lambda n: n + 1).filter(lambda n: id(n)).peek(print)
    assert numbers.sorted(key=lambda n: -n).to_list() == [3, 2]
"""


def test_functions_read_notes_the_route_of_each_function():
    """What runs here, and what is no step of one item, is not counted."""
    assert sorted(functions_of((SCRIPT, [], "a script")).values()) == ["calls id", "read"]
