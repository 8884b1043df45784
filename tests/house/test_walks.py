"""`python -m tests.house`: what counts as a call from one module to another."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from tests.house import __main__ as house
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


def test_the_figures_of_the_house():
    """Modules and lines of the four packages, and what they are called."""
    figures = dict(house._figures())

    assert int(figures["modules"].replace(",", "")) > 200
    assert "dstream.stream.base" in figures["modules above 500 lines"]
    assert figures["names that several modules below dstream/ share"] == "none"
