"""`dstream wordcount`: counts in a map."""

from __future__ import annotations

import re

TEXT = "The whale and the sea.\nThe sea!\n"


def test_it_counts_words(process, folder, java):
    """On Spark: the most frequent ones first, and nothing beside them."""
    (folder / "sea.txt").write_text(TEXT)
    ours = process("-m", "dstream", "wordcount", "sea.txt", **java())

    assert ours.stdout == "        3  the\n        2  sea\n        1  and\n        1  whale\n"
    assert ours.stderr == "\nthe map 'wordcount' holds 4 words\n"


def test_the_map_and_the_lines_are_chosen(command, folder, storage):
    """The map of another name holds all words; what it held before is replaced."""
    (folder / "sea.txt").write_text(TEXT)
    storage.get_map("sea").update({"the": 10, "old": 1})
    for _ in range(2):
        ended = command("wordcount", "*.txt", "--engine", "local", "--top", "1", "--into", "sea")

    assert ended.stdout == "        3  the\n"
    assert dict(storage.get_map("sea").items()) == {"the": 3, "sea": 2, "and": 1, "whale": 1}


def test_a_file_that_is_not_there_is_one_message(command, folder):
    """It is named, and no traceback is shown."""
    ended = command("wordcount", "nowhere.txt", "--engine", "local")

    assert (ended.exit_code, ended.stdout) == (1, "")
    assert "nowhere.txt" in ended.stderr
    assert "What to do: check that what it reads is there" in ended.stderr
    assert not re.search(r"Traceback|\.py:", ended.stderr)
