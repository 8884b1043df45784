"""The samples of streams over collections, of jobs and of connectors find what plain Python finds in the same data."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.house.test_samples import SAMPLES, sample, stored

MOST_LINES = 80


def test_samples_words_of_map_counts_as_plain_python_does(output_of, tmp_path):
    """The map of lines is replaced by another text, and the map of counts with it."""
    for text in ("The ship.\nA ship\nand more lines\n", "The whale's way\nand the sea, the SEA\n"):
        (tmp_path / "text").write_text(text)
        output = output_of("words_of_map.py", "text", folder=tmp_path)

    counts = Counter(re.findall(r"[a-z']+", text.lower()))
    assert output.splitlines()[0] == f"2 lines have {len(counts)} different words"
    with stored(tmp_path) as ctx:
        assert ctx.get_map("counts").copy() == counts


def test_samples_sort_and_filter_keeps_the_order(output_of, tmp_path):
    """Both lists are sorted, and one is the cold part of the other."""
    output = output_of("sort_and_filter.py", folder=tmp_path)

    temperatures = sample("sort_and_filter.py")["readings"]()
    in_order = sorted(temperatures.values())
    hot = sorted(sensor for sensor, tenths in temperatures.items() if tenths > 395)
    assert [line.split()[0] for line in output.splitlines()[2:]] == hot
    with stored(tmp_path) as ctx:
        assert ctx.get_list("sorted").copy() == in_order
        assert ctx.get_list("frost").copy() == [tenths for tenths in in_order if tenths < 0]


def test_samples_fault_tolerance_tells_the_guarantees_apart(output_of, tmp_path):
    """No job loses a measurement; without a guarantee it publishes again what it had published before it was killed."""
    said = re.findall(r"(\S+): +(\d+) lost, +(\d+) twice", output_of("fault_tolerance.py", folder=tmp_path))

    lost = {guarantee: int(number) for guarantee, number, _ in said}
    twice = {guarantee: int(number) for guarantee, _, number in said}
    assert lost == {"none": 0, "at-least-once": 0, "exactly-once": 0}
    assert twice["exactly-once"] == 0 < sample("fault_tolerance.py")["COUNT"] // 3 <= twice["none"]


def test_samples_manage_jobs_shows_a_life(output_of, tmp_path):
    """Sums are those of the orders that came before each line."""
    said = output_of("manage_jobs.py", folder=tmp_path).splitlines()

    assert re.fullmatch(r"orders is RUNNING since [\d:]{8}: .*'Ada', value=30.*'Grace', value=120.*", said[0])
    assert said[1].startswith("so far it has read 2 orders")
    assert said[2:4] == [
        "orders is SUSPENDED, and Ada still has 30",
        "orders is RUNNING again, and Ada has 35",
    ]
    assert {"summed keeps", "large starts empty"} <= set(said[4].removeprefix("an update means: ").split(", "))
    assert said[5].endswith("320; and it writes {'Grace': 200}")
    assert said[6].startswith("restarted, it goes on where it was: 50 ")
    assert said[7:] == ["of all jobs: [('orders', 'CANCELLED')]"]


def test_samples_kafka_to_map_keeps_the_last_prices(output_of, tmp_path):
    """Of each share, whatever topic it is in."""
    output = output_of("kafka_to_map.py", folder=tmp_path)

    last = {ticker: (price, topic) for topic, ticker, price in sample("kafka_to_map.py")["generated"]()}
    assert output.splitlines() == [f"{ticker}: {price} at {topic}" for ticker, (price, topic) in sorted(last.items())]
    with stored(tmp_path) as ctx:
        assert ctx.get_map("prices").copy() == last


def test_samples_sockets_answer_each_word(output_of, tmp_path):
    """With its number among those of its kind, and again the same in a second run."""
    counts, expected = Counter(), []
    for word in " ".join(sample("sockets.py")["LINES"]).split():
        counts[word] += 1
        expected.append(f"{word} {counts[word]}")

    for _ in range(2):
        assert sorted(output_of("sockets.py", folder=tmp_path).splitlines()) == sorted(expected)


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_samples_are_short(path):
    """A sample is read at once."""
    assert len(path.read_text().splitlines()) < MOST_LINES
