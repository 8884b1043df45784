"""`python -m tests.house`: what counts as a call from one module to another."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from tests.house.figures import Source, circles
from tests.house.walks import Walk

FILES = {
    "a.py": "from b import give, twice\nfrom outside import through\n\ndef walk():\n    list(give(3))\n    twice(2)\n"
    "    through(twice)\n    here()\n\ndef here():\n    pass\n",
    "b.py": "def give(count):\n    yield from range(count)\n\ndef twice(number):\n    return inner(number)\n\n"
    "def inner(number):\n    return number * 2\n",
}


def test_a_walk_counts_calls_between_modules(tmp_path, monkeypatch):
    """Directly, or through code of others; a generator once; not inside of a module."""
    ours = tmp_path / "ours"
    ours.mkdir()
    for name, text in FILES.items():
        (ours / name).write_text(text)
    (tmp_path / "outside.py").write_text("def through(fn):\n    return fn(1)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(ours)
    walk, run = Walk((f"{ours}/",)), runpy.run_path(str(ours / "a.py"))["walk"]
    before = sys.getprofile()
    sys.setprofile(walk)
    try:
        run()
    finally:
        sys.setprofile(before)

    assert ({Path(file).name for file in walk.modules}, walk.calls) == ({"a.py", "b.py"}, 3)


def test_the_figures_of_a_module():
    """Its head, its comments, the first lines of its docstrings, and whether it repeats its package."""
    head = '"""A queue.\n\nMore."""\n\nimport os\n'
    text = head + '\n# Why\nclass Queue:\n    """Items."""\n\n    size = os.sep  # noqa: X1\n'
    module = Source("dstream.queues.queue_state", text)

    assert (module.head, module.comments, module.lines) == (5, 1, 11)
    assert module.docstrings == ["A queue.", "Items."]
    assert module.public_classes == ["Queue"]
    assert module.repeats_its_package
    assert module.room == "dstream.queues"


def test_classes_for_type_checkers_are_no_part_of_a_head():
    """A head is imports, also those for types."""
    text = "if TYPE_CHECKING:\n    import os\n\nclass A: ...\n\nif TYPE_CHECKING:\n    class B: ...\n"

    assert Source("dstream.a", text).head == 2


def test_imports_for_types_count_for_circles():
    """Those inside of functions do not."""
    text = "if TYPE_CHECKING:\n    from dstream.b import B\n\n\ndef f():\n    import dstream.c\n"

    assert Source("dstream.a", text).imported(frozenset({"dstream.a", "dstream.b", "dstream.c"})) == {"dstream.b"}


def test_circles_of_modules_that_reach_each_other():
    """Each set of them, without the modules that only lead there."""
    found = circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}})

    assert sorted(map(sorted, found)) == [["b", "c"], ["d", "e"]]
