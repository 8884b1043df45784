"""`make soak` finds every soak of its folder."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.soak import __main__ as soak
from tests.soak import columns


def test_every_soak_says_what_it_takes(capsys):
    """Each is a module with a `main()` that reads the command line, and has a line in the documentation."""
    assert {"contention", "hostile", "memory", "mutations", "stderr"} <= set(soak.names())
    assert soak.run("mutations", ["--runs", "1"]) is True
    assert "mutations: well" in capsys.readouterr().out


def test_every_soak_has_a_short_size(capsys):
    """So that all of them can be run within minutes, as one command."""
    assert set(soak._QUICK) == set(soak.names())
    assert soak.main(["--quick", "mutations"]) == 0
    assert "10 mutations" in capsys.readouterr().out


def test_a_soak_that_fails_is_told(capsys):
    """The exit code of one decides about the whole."""
    assert soak.run("mutations", ["--wrong"]) is False
    with pytest.raises(SystemExit, match="2"):
        soak.main(["unknown"])
    assert "FAILED" in capsys.readouterr().out


def test_a_series_of_programs_goes_on_where_it_has_stopped(tmp_path, monkeypatch):
    """A chunk that has run on this commit does not run again; one of another commit does."""
    log = tmp_path / "series.txt"
    monkeypatch.setattr(columns, "_commit", lambda: "new")
    chunks = list(columns._chunks(2000, 7, ["number", "reader"]))
    for chunk, commit in zip(chunks, ["new", "old"] * len(chunks), strict=False):
        with log.open("a") as lines:
            print(json.dumps({"commit": commit, "chunk": chunk, "counts": {"programs": 1}}), file=lines)

    series = columns._Series(log)
    series.add(chunks[1], Counter(programs=2))

    assert set(series.found) == set(chunks[::2])
    assert set(columns._Series(log).found) == {*chunks[::2], chunks[1]}
    assert columns._Series(None).found == {}


def test_what_has_run_of_a_series_at_any_time_has_all_kinds():
    """Each kind has each of its seeds once, and the kinds take turns."""
    chunks = list(columns._chunks(4000, 7, ["number", "reader"]))
    seeds = [seed for kind, first, last in chunks if kind == "number" for seed in range(first, last)]

    assert seeds == list(range(7, 7 + 3000))
    assert [kind for kind, *_ in chunks[:4]] == ["number", "reader"] * 2
    assert sum(last - first for _, first, last in chunks) == 4000


def test_programs_that_cannot_run_end_no_series_and_are_no_success(tmp_path, monkeypatch, capsys):
    """They are not in the log, so that they run the next time, and the others are."""
    monkeypatch.setattr(columns, "_commit", lambda: "new")
    monkeypatch.setattr(columns, "ProcessPoolExecutor", lambda *_, **__: ThreadPoolExecutor(1))
    monkeypatch.setattr(columns, "_ran", lambda kind, *_: Counter(programs=1) if kind == "number" else {}["space"])

    assert columns.run(40, 7, ["number", "reader"], 1, tmp_path / "series.txt") is False
    assert [chunk[0] for chunk in columns._Series(tmp_path / "series.txt").found] == ["number"]
    assert "FAILED:\nTraceback" in capsys.readouterr().out
