"""What a REPL shows: `repr` is the call that made a thing, `dir` is what is public."""

from __future__ import annotations

import operator

import pytest

import collectors as c
import dstream as ds
import reducers
import sources
from dstream import gatherers as g

MODULES = [c, ds, ds.errors, g, ds.spi, ds.testing, ds.values, reducers, sources]
SHOWN = {
    "counting()": c.counting(),
    "grouping_by(...)": c.grouping_by(len, c.mapping(str.upper, c.to_set())),
    "Collector(list, list.append, list.extend)": ds.Collector.of(list, list.append, list.extend),
    "Collector(int, add, add, str)": ds.Collector(int, operator.add, operator.add, str),
    "window_fixed(3)": g.window_fixed(3),
    "fold(...)": g.fold(int, operator.add),
    "map_concurrent(3, len)": g.map_concurrent(3, len),
    "window_fixed(3).and_then(scan(...))": g.window_fixed(3).and_then(g.scan(list, operator.add)),
    "Gatherer.of(...)": g.Gatherer.of(list, integrator=operator.contains),
    "Gatherer(list, contains)": g.Gatherer(list, operator.contains),
    "to_imap('m')": reducers.to_imap("m", len, len),
    "replacing(to_ilist('l'))": reducers.replacing(reducers.to_ilist("l")),
    "Items([1, 2], partitions=None)": sources.Items([1, 2]),
    "Range(start=0, stop=9, step=1, partitions=None)": sources.Range(0, 9),
    "Iterate(1, abs)": sources.Iterate(1, abs),
    "Iterate(1, bool, abs)": sources.Iterate(1, abs, bool),
    "Generate(lambda)": sources.Generate(lambda: 1),
    "text_files('a.txt')": sources.text_files("a.txt"),
}


@pytest.mark.parametrize("shown", SHOWN)
def test_a_thing_is_shown_as_its_call(shown):
    """Without what it is made of inside."""
    assert repr(SHOWN[shown]) == shown


@pytest.mark.parametrize("name", sorted(c.__all__))
def test_every_collector_is_shown_in_a_few_words(name):
    """Its name stands in front, and no address of memory in it."""
    arguments = {"AggregateOperation": None, "co_operation": (c.counting(),), "all_of": (c.counting(),), "joining": ()}
    makers = [(), (len,), (len, len), (2,), ([0.5],), (list,), (len, c.counting()), (c.counting(), len)]
    makers += [(c.counting(), c.counting(), max)]
    for given in makers if name not in arguments else [arguments[name]] * (arguments[name] is not None):
        try:
            made = getattr(c, name)(*given)
        except (TypeError, ValueError):
            continue
        assert repr(made) == f"{name}({'...' if given else ''})"
        return
    assert arguments[name] is None


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_dir_shows_public_names(module):
    """What is imported for other modules is there, and is not listed."""
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in dir(module))


def test_a_context_says_what_it_is_on(tmp_path):
    """Its engine, how that chooses, its master and storage, and no password."""
    with (
        ds.connect(engine="local", storage=tmp_path) as local,
        ds.connect("local[2]", storage="redis://ada:secret@host:6379/0") as spark,
        ds.connect(engine="auto", storage=tmp_path) as auto,
        ds.connect(engine="auto", storage=tmp_path, local_limit=2.5) as limited,
    ):
        others = f"others on Spark), master any that runs, or local[*], storage {tmp_path}, open>"
        assert repr(auto) == f"<dstream context on auto (small plans in this process, {others}"
        assert f"auto (plans of up to 2.5 s of estimated work in this process, {others}" in repr(limited)
        assert repr(local) == f"<dstream context on local, storage {tmp_path}, open>"
        assert repr(spark) == "<dstream context on spark, master local[2], storage redis://ada:***@host:6379/0, open>"
