"""The stages as a picture."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from dstream.explain.drawing import as_svg

_SPACE = "{http://www.w3.org/2000/svg}"


def read(text: str) -> ET.Element:
    """Parse a picture; what is no XML fails."""
    return ET.fromstring(text)


def boxes(picture: ET.Element) -> list[dict[str, int]]:
    """Return the rectangles of the stages and of the end."""
    found = (rect for rect in picture.iter(f"{_SPACE}rect") if rect.get("class", "").startswith("box"))
    return [{name: int(rect.get(name, "")) for name in ("x", "y", "width", "height")} for rect in found]


@pytest.mark.parametrize("parts", [1, 2, 3, 4, 7, 30])
def test_boxes_stand_inside_the_picture_and_apart(fan, parts):
    """No box leaves the picture, covers another, or stands above one that it reads from."""
    picture = read(as_svg(fan(parts)))
    _, _, width, height = map(int, picture.get("viewBox", "").split())
    found = boxes(picture)

    assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in found)
    assert all(box["y"] >= 0 and box["y"] + box["height"] <= height for box in found)
    assert not any(overlap(one, other) for one in found for other in found if one is not other)
    assert max(box["y"] for box in found[:-2]) < found[-2]["y"] < found[-1]["y"]


def test_readers_of_one_stage_stand_side_by_side(fork):
    """All of them would like to stand right below it, and none covers another."""
    _, *parts, concat, _ = boxes(read(as_svg(fork)))

    assert (len(parts), len({part["y"] for part in parts}), len({part["x"] for part in parts})) == (3, 1, 3)
    assert not any(overlap(one, other) for one in parts for other in parts if one is not other)
    assert concat["x"] == parts[1]["x"]


def overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    """Say whether two boxes cover each other."""
    return (
        one["x"] < other["x"] + other["width"]
        and other["x"] < one["x"] + one["width"]
        and one["y"] < other["y"] + other["height"]
        and other["y"] < one["y"] + one["height"]
    )


def test_parts_stand_side_by_side(fan):
    """Two parts of a concat have the same height in the picture."""
    first, second, *_ = boxes(read(as_svg(fan(2))))

    assert (first["y"], first["x"] < second["x"]) == (second["y"], True)


def test_the_width_is_bounded(fan, chain):
    """However many parts there are, three stand in a row."""
    widths = {int(read(as_svg(stages)).get("width", "")) for stages in (fan(3), fan(20_000))}

    assert len(widths) == 1
    assert widths.pop() < 1500
    assert len(as_svg(chain(20_000))) < 60_000


def test_every_text_is_escaped(wicked):
    """A user's label is a text of the picture, whatever it holds, and adds no element."""
    picture = read(as_svg(wicked))
    names = {element.tag.removeprefix(_SPACE) for element in picture.iter()}
    texts = "".join(picture.itertext())

    assert names == {"svg", "title", "desc", "style", "rect", "path", "g", "text"}
    assert '"quoted" <b>&amp; [x] {y}' in texts
    assert "\N{REPLACEMENT CHARACTER}" in texts


def test_a_picture_says_in_words_what_it_shows(chain):
    """It is an image with a title and a description, and each call shows its file and line."""
    picture = read(as_svg(chain(2)))
    titles = [element.text for element in picture.iter(f"{_SPACE}title")]

    assert picture.get("role") == "img"
    assert titles == ["to_list() on Spark: 1 job, 1 shuffle", ".first()", ".call(1) /x/words.py:1"]
    assert picture.findtext(f"{_SPACE}desc") == "2 stages from top to bottom; to_list(): all items come."


def test_a_picture_needs_nothing_else(wicked):
    """It loads nothing, runs nothing, and brings its own background."""
    text = as_svg(wicked)
    picture = read(text)

    assert not re.search(r"<script|javascript:|@import|url\(|href", text)
    assert not any(name.startswith("on") for element in picture.iter() for name in element.attrib)
    assert next(picture.iter(f"{_SPACE}rect")).get("class") == "behind"


def test_labels_that_are_too_long_are_cut(chain):
    """What does not fit beside its place is cut; the tooltip has all of it."""
    stages = chain(2)
    long = replace(stages.stages[1].calls[0], label=f".map({'x' * 200})")
    text = as_svg(replace(stages, stages=(stages.stages[0], replace(stages.stages[1], calls=(long,)))))
    shown = [element.text or "" for element in read(text).iter(f"{_SPACE}text") if element.get("class") == "call"]

    assert max(map(len, shown)) < 56
    assert f"<title>.map({'x' * 200}) /x/words.py:1</title>" in text
