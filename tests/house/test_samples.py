"""The samples run as their users run them: as scripts, in a process of their own."""

from __future__ import annotations

import math
import re
import runpy
from collections import Counter
from pathlib import Path

import pytest

import dstream as ds
from sources import json_lines

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "docs" / "samples"

SAID = {
    "employees.py": [
        *("Compilers: 3 people, 9,733 on average", "Engines: Ada", "payroll: 55,400"),
        "salaries from 8,100 to 10,200, 9,233 on average",
    ],
    "log_lines.py": ["6 requests, 1 lines that are no JSON", "2 errors  /cart", "1200 ms      /search"],
    "access_log.py": ["    957  failed requests, in the folder 'failed'", "     20  lines are no requests"],
    "co_group.py": [
        "user 1: 3 visits, 2 in the cart, paid for top hat, boots",
        "5 visits, 3 things in carts, 225 paid",
    ],
    "enrichment.py": [
        f"{way}: 100 of Pequod Whaling, 50 of Rachel Shipping, 70 of Pequod Whaling, 10 of an unknown company"
        for way in ("by_hash_join", "by_service", "by_map")
    ],
    "orders.py": [
        "2026-01: Ada spent 42.75",
        "2026-02: C3 spent 19.90",
        "line 4 is left out: 3,A1,4 EUR,2026-01-10,",
        "line 6 is left out: 5,B2,7.10,2026-02-01",
    ],
    "primes.py": ["1,229 primes up to 10,000", "[2, 3, 5, 7, 11, 13, 17, 19, 23, 29]", "the next one is 10007"],
}
"""What each script says about its own data."""


@pytest.mark.parametrize("sample", sorted(SAID))
def test_samples_say_what_they_found(output_of, sample, tmp_path):
    """Each sample runs without arguments, on its own small data."""
    output = output_of(sample, folder=tmp_path)

    assert [line for line in SAID[sample] if line not in output] == []


def test_samples_log_lines_reads_the_files_that_it_is_given(output_of, tmp_path):
    """A glob is for the sample to resolve, not for the shell."""
    (tmp_path / "a.jsonl").write_text('{"path": "/a", "status": 503, "ms": 5}\n')
    (tmp_path / "b.jsonl").write_text('{"path": "/b", "status": 200, "ms": 7}\n')

    assert "2 requests, 0 lines" in output_of("log_lines.py", "*.jsonl", folder=tmp_path)


def test_samples_wordcount_counts_at_once_and_on_spark(output_of, tmp_path, java):
    """The first megabyte of the files where that ends sooner, then all files on Spark."""
    (tmp_path / "sea.txt").write_text("The whale and the sea.\nThe sea.\n")
    (tmp_path / "ship.txt").write_text(f"{' ' * 2**20}sea")
    output = output_of("wordcount.py", "*.txt", folder=tmp_path, **java())

    assert output.split()[:4] == ["3", "the", "2", "sea"]
    assert "7 words, 4 of them different, in 1 files\nconnect() took" in output
    assert "8 words, 4 of them different, in 2 files\nSpark " in output


def test_samples_wordcount_counts_without_java(output_of, tmp_path):
    """At once what it can, and it says what Spark needs; another process finds the map."""
    (tmp_path / "sea.txt").write_text("The whale and the sea.\nThe sea.\n")
    output = output_of("wordcount.py", "sea.txt", folder=tmp_path, DSTREAM_MASTER="", PATH="", JAVA_HOME="")

    assert "7 words, 4 of them different, in 1 files\nconnect() took" in output
    assert "All 1 files were not counted on Spark: Spark needs Java 17 or newer" in output

    looked_up = output_of("look_up.py", "whale", "ship", folder=tmp_path)
    assert "opens the map 'counts': 4 words" in looked_up
    assert [line.split()[:2] for line in looked_up.splitlines()[-2:]] == [["1", "whale"], ["0", "ship"]]


def test_samples_pipeline_words_counts_as_plain_python_does(output_of, tmp_path):
    """Both sinks of the pipeline have what a `Counter` has of the same words."""
    texts = ["The whale and the sea.", "The sea; and a ship, a ship!"]
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.txt").write_text(text)
    output_of("pipeline_words.py", "*.txt", folder=tmp_path)

    counts = Counter(re.findall(r"\w+", " ".join(texts).lower()))
    with stored(tmp_path) as ctx:
        assert ctx.get_map("counts").copy() == counts
        assert list(ctx.get_list("top-ten")) == sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


@pytest.mark.parametrize("name", ["tf_idf.py", "core_tf_idf.py"])
def test_samples_tf_idf_scores_as_plain_python_does(output_of, tmp_path, name):
    """Each word that some documents have and others have not leads to its documents, the best one first."""
    texts = {"a.txt": "whale whale sea", "b.txt": "whale ship sea", "c.txt": "if ship: sea"}
    for file, text in texts.items():
        (tmp_path / file).write_text(text)
    output_of(name, "*.txt", folder=tmp_path)

    with stored(tmp_path) as ctx:
        found = {word: [(score, Path(at).name) for score, at in best] for word, best in ctx.get_map("index").items()}
    half = math.log(3 / 2)
    assert found == {"whale": [(2 * half, "a.txt"), (half, "b.txt")], "ship": [(half, "c.txt"), (half, "b.txt")]}


def test_samples_access_log_analyses_as_plain_python_does(output_of, tmp_path):
    """Visits count for each folder above a page, failures are files of JSON, what is no request stands in a list."""
    requests = [("/", 200), ("/a/b.html?x=1", 200), ("/a/c.html", 304), ("/a/d.html", 404), ("/e", 500)]
    lines = [f'1.2.3.4 - - [today] "GET {path} HTTP/1.1" {status} 10\n' for path, status in requests]
    (tmp_path / "log").write_text("".join([*lines, "rubbish\n"]))
    output_of("access_log.py", "log", folder=tmp_path)

    with stored(tmp_path) as ctx:
        assert ctx.get_map("visits").copy() == {"/": 3, "/a": 2, "/a/b.html": 1, "/a/c.html": 1}
        assert list(ctx.get_list("unreadable")) == ["rubbish"]
        failed = ctx.read(json_lines(tmp_path / "failed")).map(lambda request: (request["path"], request["status"]))
        assert failed.to_list() == requests[3:]


def sample(name):
    """Return what a sample defines."""
    return runpy.run_path(str(SAMPLES / name))


def stored(folder):
    """Return a context on the collections that a sample has left in its folder."""
    return ds.connect(engine="local", storage=folder / "dstream-data")


def test_samples_each_have_a_line_in_the_readme():
    """A script that is added is described, and none is described that is gone."""
    described = {
        line.split("`")[1].split()[0]
        for line in (SAMPLES / "README.md").read_text().splitlines()
        if "py" in line and line.startswith("| `")
    }

    assert described == {path.name for path in SAMPLES.glob("*.py")}


def test_samples_that_follow_a_journal_have_its_map_for_themselves():
    """In one folder all samples share a storage, and a journal that never ends has what each of them put."""
    texts = {path.name: path.read_text() for path in SAMPLES.glob("*.py")}
    followed = {(each, name) for each, text in texts.items() for name in re.findall(r'imap_journal\("(\w+)"', text)}

    others = {
        (name, other)
        for each, name in followed
        for other, text in texts.items()
        if other != each and re.search(rf'map\("{name}"|imap_journal\("{name}"', text)
    }
    assert (len(followed) >= 2, others) == (True, set())
