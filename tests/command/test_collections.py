"""`dstream collections`: what is shown, written and removed; and that looking makes nothing."""

from __future__ import annotations

import csv
import json
import operator
from collections import deque
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy
import pyarrow.parquet
import pytest

from reducers import to_imap


@dataclass(frozen=True)
class Ship:
    """A value with parts."""

    name: str
    masts: int


@pytest.fixture
def filled(storage):
    """A storage with a map, a list and a cache, two of them of one name."""
    storage.get_map("ages", key_type=str, value_type=int).update({"Ada": 36, "Grace": 85})
    storage.get_list("ages").extend([1, 2, 3])
    storage.get_cache("sessions", key_type=str, value_type=str, ttl=3600)["a"] = "b"
    return storage


def test_the_list_has_a_line_for_each(command, filled):
    """Kind, name, size and types; nothing is cut where there is no terminal."""
    filled.get_map("n" * 120)["k"] = "v"
    lines = [line.split() for line in command("collections").stdout.splitlines()]

    assert lines == [
        ["kind", "name", "size", "types"],
        ["cache", "sessions", "1", "str", "->", "str"],
        ["list", "ages", "3", "int"],
        ["map", "ages", "2", "str", "->", "int"],
        ["map", "n" * 120, "1", "str", "->", "str"],
    ]


def test_sets_counters_and_queues_are_listed_and_shown(command, storage):
    """A counter with its number; what is no table is not exported."""
    storage.get_set("seen").update([1, 2])
    storage.get_counter("visits").add(1500)
    storage.get_queue("jobs").put("a")
    lines = [line.split() for line in command("collections").stdout.splitlines()[1:]]

    assert lines == [["counter", "visits", "1,500", "int"], ["queue", "jobs", "1"], ["set", "seen", "2", "int"]]
    assert "buckets" in command("collections", "show", "seen").stdout
    assert command("collections", "show", "visits").stdout.split()[:6] == [
        "kind",
        "counter",
        "name",
        "visits",
        "size",
        "1,500",
    ]
    assert "'a'" in command("collections", "head", "jobs").stdout
    assert "a queue has no entries" in command("collections", "export", "jobs", "jobs.csv").stderr
    assert command("collections", "export", "seen", "seen.parquet").exit_code == 0


def test_the_list_goes_on_behind_what_is_damaged(command, filled):
    """A collection that cannot be read is shown with the reason, and the others as ever."""
    [entry] = Path(filled.get_list("ages").location, "_delta_log").glob("*0.json")
    entry.write_text("{")
    lines = command("collections").stdout.splitlines()

    assert [line.split()[2] for line in lines[1:]] == ["1", "?", "2"]
    assert "list 'ages' is damaged" in lines[2]


@pytest.mark.parametrize("arguments", [(), ("show", "ages"), ("head", "ages"), ("destroy", "ages", "--yes")])
def test_looking_makes_nothing(command, folder, arguments):
    """In an empty folder there is nothing, before and after."""
    ended = command("collections", *arguments)

    assert list(folder.iterdir()) == []
    assert ended.exit_code == (1 if arguments else 0)
    assert ended.stderr.startswith(
        "no collections in dstream-data" if not arguments else "there is no collection 'ages'"
    )


def test_show_says_how_it_was_made(command, filled):
    """Options, types, size and place, each on a line."""
    said = dict(line.split(None, 1) for line in command("collections", "show", "sessions").stdout.splitlines())

    assert (said["kind"], said["name"], said["size"], said["ttl"]) == ("cache", "sessions", "1", "3600")
    assert said["location"].startswith("/")


def test_show_says_that_values_are_mixed(command, storage):
    """The type of the column is that of the first; what else is there is named."""
    storage.get_map("mixed").update({"a": 1})
    storage.get_map("mixed").update({"b": "x", "c": "y"})

    assert "values      mixed: " in command("collections", "show", "mixed").stdout


def test_show_works_without_the_class_of_the_values(command, storage, monkeypatch):
    """It says which class is missing, and all else."""
    storage.get_map("ships")["a"] = Ship("Pequod", 3)
    monkeypatch.delattr(f"{Ship.__module__}.Ship")
    ended = command("collections", "show", "ships")

    assert ended.exit_code == 0
    assert "Ship" in ended.stdout
    assert "location" in ended.stdout


def test_head_prints_the_first(command, filled):
    """As many as asked for."""
    ended = command("collections", "head", "ages", "--kind", "list", "-n", "2")

    assert [line.split()[-1] for line in ended.stdout.splitlines()[-3:-1]] == ["1", "2"]


def test_a_name_of_two_kinds_is_asked_for(command, filled):
    """Nothing is guessed."""
    ended = command("collections", "head", "ages")

    assert (ended.exit_code, ended.stdout) == (1, "")
    assert ended.stderr == "there is a list and a map named 'ages'; say which one with --kind\n"


def test_a_wrong_name_gets_near_ones(command, filled):
    """One sentence, and the names that look like it."""
    ended = command("collections", "show", "sesions")

    assert ended.exit_code == 1
    assert ended.stderr == "there is no collection 'sesions' in dstream-data; did you mean 'sessions'?\n"


def test_another_storage_is_looked_at(command, folder, filled):
    """The option stands on either side of the subcommand."""
    (folder / "dstream-data").rename(folder / "elsewhere")

    assert "sessions" in command("collections", "--storage", "elsewhere").stdout
    assert command("collections", "show", "sessions", "--storage", "elsewhere").exit_code == 0
    assert command("collections", "--storage", "elsewhere", "show", "sessions").exit_code == 0
    assert command("collections", "--storage", "nowhere", "head", "sessions", "--storage", "elsewhere").exit_code == 0


@pytest.mark.parametrize("kind", ["map", "cache"])
def test_parquet_holds_the_columns(command, folder, storage, kind):
    """Types stay; a dataclass is a struct. Values of a cache come without their times."""
    ships = storage.get_map("ships", value_type=Ship) if kind == "map" else storage.get_cache("ships", ttl=60)
    ships["Pequod"] = Ship("Pequod", 3) if kind == "map" else 3
    ended = command("collections", "export", "ships", "ships.parquet")

    assert (ended.exit_code, ended.stderr) == (0, "1 written to ships.parquet\n")
    value = {"name": "Pequod", "masts": 3} if kind == "map" else 3
    assert pyarrow.parquet.read_table("ships.parquet").to_pylist() == [{"key": "Pequod", "value": value}]


def test_export_writes_a_map_whose_keys_are_texts_of_numpy(command, storage):
    """Keys that are taken from an array are plain texts in the file."""
    words = storage.stream(numpy.array(["b", "a", "b"]))
    words.collect(to_imap("words", lambda word: word, lambda word: 1, operator.add))

    assert command("collections", "export", "words", "words.parquet").exit_code == 0
    assert sorted(pyarrow.parquet.read_table("words.parquet").to_pylist(), key=str) == [
        {"key": "a", "value": 1},
        {"key": "b", "value": 2},
    ]


def test_csv_and_json_hold_what_they_can(command, folder, storage):
    """Texts are quoted as CSV wants it; parts of a value become JSON."""
    values = ['a "b", c\n', date(2026, 1, 2), Decimal("1.10"), Ship("x", 1), [1, None], {"k": (1, 2)}, True, None]
    storage.get_list("mixed").extend(values)
    for ending in ("csv", "jsonl"):
        assert command("collections", "export", "mixed", f"mixed.{ending}").exit_code == 0

    with open("mixed.csv", newline="") as file:
        cells = [row[0] if row else "" for row in csv.reader(file)]
    ship = '{"name": "x", "masts": 1}'
    assert cells == ["value", values[0], "2026-01-02", "1.10", ship, "[1, null]", '{"k": [1, 2]}', "True", ""]
    items = [json.loads(line)["value"] for line in (folder / "mixed.jsonl").read_text().splitlines()]
    assert items == [values[0], "2026-01-02", "1.10", {"name": "x", "masts": 1}, [1, None], {"k": [1, 2]}, True, None]


def test_a_text_without_bytes_is_escaped_in_json_and_refused_in_csv(command, folder, storage):
    """Half of a surrogate pair, such as in a name of a file: a sentence, not a traceback."""
    storage.get_list("names").extend(["é", "\udcff"])

    assert command("collections", "export", "names", "names.jsonl").exit_code == 0
    assert (folder / "names.jsonl").read_bytes() == b'{"value": "\xc3\xa9"}\n{"value": "\\udcff"}\n'
    ended = command("collections", "export", "names", "names.csv")
    assert (ended.exit_code, "half of a surrogate pair: export to .jsonl" in ended.stderr) == (1, True)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_what_has_no_form_leaves_no_file(command, folder, storage, ending):
    """A set among integers fits no column and no JSON: a sentence, and nothing half written."""
    storage.get_list("odd").extend([1, frozenset([2])])
    before = {path.name for path in folder.iterdir()}
    ended = command("collections", "export", "odd", f"odd.{ending}")

    assert (ended.exit_code, ended.stdout) == (1, "")
    assert ended.stderr
    assert {path.name for path in folder.iterdir()} == before


def test_a_file_is_replaced_only_by_force(command, folder, filled):
    """What was there stays until the new file is complete."""
    (folder / "a.csv").write_text("mine")
    refused = command("collections", "export", "sessions", "a.csv")
    assert (refused.exit_code, refused.stderr) == (1, "a.csv exists; --force replaces it\n")
    assert (folder / "a.csv").read_text() == "mine"

    assert command("collections", "export", "sessions", "a.csv", "--force").exit_code == 0
    assert (folder / "a.csv").read_text().split() == ["key,value", "a,b"]


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("a.xls", "a.xls must end in .parquet, .csv, .jsonl"),
        ("no/a.csv", "there is no folder no"),
        ("d.csv", "is a folder"),
    ],
)
def test_a_file_that_cannot_be_is_refused(command, folder, filled, file, why):
    """Before anything is read."""
    (folder / "d.csv").mkdir()

    assert why in command("collections", "export", "sessions", file).stderr


def test_destroy_asks(command, filled):
    """Without a yes nothing happens."""
    kept = command("collections", "destroy", "sessions", answer="n\n")
    assert (kept.exit_code, "Destroy the cache 'sessions' with 1 in it?" in kept.stderr) == (1, True)
    assert [each.name for each in filled.collections()] == ["sessions", "ages", "ages"]

    assert command("collections", "destroy", "sessions", answer="y\n").exit_code == 0
    assert command("collections", "destroy", "ages", "--kind", "map", "--yes").exit_code == 0
    assert [(each.kind, each.name) for each in filled.collections()] == [("list", "ages")]


def test_values_that_may_not_be_loaded_are_a_message(command, storage, monkeypatch):
    """A pickled value is loaded as the settings say; what they forbid is said, without a traceback."""
    storage.get_list("odd").append(deque([Ship("x", 1)]))
    monkeypatch.setenv("DSTREAM_PICKLE", "never")
    listed, seen = command("collections"), command("collections", "head", "odd")

    assert listed.stdout.splitlines()[1].split() == ["list", "odd", "1", "?"]
    assert (seen.exit_code, seen.stdout) == (1, "")
    assert "pickle='never'" in seen.stderr
