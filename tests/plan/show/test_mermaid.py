"""The stages in the language of Mermaid."""

from __future__ import annotations

import re

from dstream.explain.text import as_mermaid

_TEXT = r'"(?:[A-Za-z0-9 .,_:=+/-]|#\d+;|<br/>)*"'
_LINE = re.compile(rf"  (s\d+\[{_TEXT}\]|s\d+ (-->|-\.->|==>)\|{_TEXT}\| s\d+|done\(\[{_TEXT}\]\)|s\d+ --> done)")


def test_mermaid_has_a_box_for_each_stage_and_an_arrow_for_each_exchange(chain):
    """A shuffle is a thick arrow."""
    lines = as_mermaid(chain(2)).splitlines()

    assert lines[:2] == ["%% to_list() on Spark: 1 job, 1 shuffle", "flowchart TD"]
    assert lines[3] == '  s1["stage 2: 1 task, in order<br/>.call#40;1#41;  words.py:1"]'
    assert lines[4] == '  s0 ==>|"shuffle<br/>why 1"| s1'


def test_mermaid_writes_every_sign_of_the_user_as_a_number(wicked):
    """Quotes, brackets, backticks, arrows and line ends stay inside their text."""
    first, about, second, *rest = as_mermaid(wicked).split("\n")

    assert (first[:3], about[:3], second) == ("%% ", "%% ", "flowchart TD")
    assert all(_LINE.fullmatch(line) for line in rest)
    assert "#34;quoted#34; #60;b#62;#38;amp#59;" in rest[0]


def test_mermaid_of_a_large_plan_is_bounded(chain):
    """20,000 stages are a few dozen lines."""
    assert len(as_mermaid(chain(20_000)).splitlines()) < 60
