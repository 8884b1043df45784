"""The scenarios of Jet's own stream tests and samples, on maps, lists and caches."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass

from collectors import averaging_double, counting, grouping_by, max_by
from reducers import grouping_by_to_imap, to_icache, to_ilist, to_imap

LINES = {1: "the whale and the sea", 2: "the sea and the ship", 3: "", 4: "whale"}


@dataclass(frozen=True)
class Employee:
    """Someone with a team and a salary."""

    name: str
    team: str
    level: int
    salary: float


STAFF = [
    Employee("Ada", "engine", 3, 120.0),
    Employee("Grace", "engine", 2, 110.0),
    Employee("Alan", "proof", 3, 100.0),
    Employee("Emmy", "proof", 2, 130.0),
]


def test_words_of_a_map_are_counted_into_a_map(ctx):
    """Word count: the lines are the values of one map, the counts are another."""
    ctx.get_map("lines").update(LINES)
    words = ctx.get_map("lines").stream().flat_map(lambda entry: re.findall(r"\w+", entry.value))
    counts = words.collect(to_imap("counts", lambda w: w, lambda w: 1, operator.add))

    assert dict(counts) == {"the": 4, "whale": 2, "and": 2, "sea": 2, "ship": 1}


def test_employees_of_a_list_are_aggregated(ctx):
    """Averages of groups, from a list of dataclasses into a map."""
    ctx.get_list("staff").extend(STAFF)
    pay = (
        ctx.get_list("staff")
        .stream()
        .collect(grouping_by_to_imap("pay", lambda e: e.team, averaging_double(lambda e: e.salary)))
    )

    assert dict(pay) == {"engine": 115.0, "proof": 115.0}


def test_employees_are_grouped_in_two_levels(ctx):
    """Dictionaries of counts for each team."""
    teams = ctx.stream(STAFF, 3).collect(
        grouping_by_to_imap("teams", lambda e: e.team, grouping_by(lambda e: e.level, counting()))
    )

    assert teams["engine"] == {3: 1, 2: 1}


def test_objects_are_values_of_a_map(ctx):
    """The employee with the highest salary of each team, as the object itself."""
    best = ctx.stream(STAFF, 2).collect(grouping_by_to_imap("best", lambda e: e.team, max_by(key=lambda e: e.salary)))

    assert {team: found.get() for team, found in best.items()} == {"engine": STAFF[0], "proof": STAFF[3]}


def test_entries_are_sorted_into_a_list_with_order_kept(ctx):
    """What was sorted stands sorted in the list."""
    ctx.get_map("ages").update({"Ada": 36, "Grace": 85, "Alan": 41})
    by_age = ctx.get_map("ages").stream().sorted(key=lambda e: e.value).map(lambda e: e.key)

    assert list(by_age.collect(to_ilist("by_age"))) == ["Ada", "Alan", "Grace"]


def test_a_list_is_filtered_into_a_list(ctx):
    """Order is kept through a filter."""
    ctx.get_list("numbers").extend(range(20))
    even = ctx.get_list("numbers").stream().filter(lambda n: n % 2 == 0)

    assert list(even.collect(to_ilist("even"))) == list(range(0, 20, 2))


def test_entries_go_into_a_cache(ctx):
    """A map's entries, changed, into a configured cache."""
    ctx.get_cache("squares", ttl=3600)
    ctx.get_map("numbers").update({n: n for n in range(10)})
    entries = ctx.get_map("numbers").stream().map(lambda e: (e.key, e.value**2))

    assert entries.collect(to_icache("squares"))[9] == 81
