"""No module needs itself: whoever reads one finds all that it stands on below it."""

from __future__ import annotations

import grimp
import pytest

PACKAGES = ("collectors", "dstream", "reducers", "sources")

BACK = {
    (
        "dstream.pipeline.windows",
        "dstream.pipeline.keyed",
    ): "a grouped stage makes windows, and windows of several inputs look at each as a grouped stage",
    ("dstream.operators.rows.blocks", "dstream.operators.columns.values"): "loads NumPy, where NumPy made the columns",
    (
        "dstream.operators.rows.operations",
        "dstream.operators.columns.chain_evaluation",
    ): "loads NumPy, where steps run over columns",
    ("dstream.operators.rows.operations", "dstream.operators.columns.top"): "loads NumPy, where NumPy made the columns",
    ("dstream.filesystem.urls", "dstream.filesystem.fsspec_adapter"): "loads obstore, for URLs of object stores alone",
    ("dstream.gatherers.concurrency", "dstream.gatherers.calls"): "loads asyncio, once a gatherer runs",
    ("dstream.session.configuration", "dstream.session.job_config"): "few programs configure their jobs",
}
"""Imports inside of functions that lead back to where they came from, and why.

Those of `dstream.suggestions` lead back too: only a mistaken name loads one of these.
"""


def in_circles(imported: dict[str, set[str]]) -> set[str]:
    """Return the modules that lie on a circle of imports, or between two.

    Those are left when modules that import nothing, or that nothing imports, are taken away again and again.
    """
    left = {name: set(found) for name, found in imported.items()}
    while True:
        needed = set().union(*left.values())
        gone = {name for name, found in left.items() if not found or name not in needed}
        if not gone:
            return set(left)
        left = {name: found - gone for name, found in left.items() if name not in gone}


@pytest.fixture(scope="module")
def imported():
    """What each module imports, also inside of functions; what only type checkers see loads nothing."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None, exclude_type_checking_imports=True)
    return {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}


def test_modules_import_in_no_circle(imported):
    """Except where it is said why."""
    straight = {
        name: {each for each in found if (name, each) not in BACK and not each.startswith("dstream.suggestions.")}
        for name, found in imported.items()
    }

    assert len(imported) > 500
    assert in_circles(straight) == set()


@pytest.mark.parametrize("back", BACK, ids=" -> ".join)
def test_each_import_that_leads_back_is_needed(imported, back):
    """One that leads back no more is not named."""
    name, other = back
    others = BACK.keys() - {back}
    almost = {
        each: {to for to in found if (each, to) not in others and not to.startswith("dstream.suggestions.")}
        for each, found in imported.items()
    }

    assert {name, other} <= in_circles(almost)


def test_a_circle_is_found():
    """With what lies between two, and nothing else."""
    imported = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": {"e"}, "e": {"f", "g"}, "f": {"e"}, "g": set()}

    assert in_circles(imported) == {"b", "c", "d", "e", "f"}
