"""The text of the word count: deterministic, with 200,000 words whose frequencies fall as 1 / rank."""

from __future__ import annotations

import os
from pathlib import Path

import numpy

__all__ = ["corpus"]

_SEED = 20_240_601
_WORDS = 200_000
_WORDS_PER_LINE = 12
_LINES_AT_ONCE = 50_000
_LETTERS = "etaoinshrdlcumwfgypbvkjxqz"


def corpus(folder: Path, megabytes: int) -> Path:
    """Return a text of about that size, made if it is not there yet."""
    path = folder / f"words-{megabytes}mb-{_SEED}.txt"
    if not path.exists():
        unfinished = path.with_suffix(f".{os.getpid()}.part")
        _write(unfinished, megabytes * 10**6)
        unfinished.rename(path)
    return path


def _write(path: Path, size: int) -> None:
    random = numpy.random.default_rng(_SEED)
    words = numpy.array(_vocabulary(random), dtype=object)
    shares = 1.0 / numpy.arange(1, _WORDS + 1)
    borders = numpy.cumsum(shares / shares.sum())
    written = 0
    with path.open("w", encoding="ascii", newline="\n") as text:
        while written < size:
            ranks = numpy.searchsorted(borders, random.random(_LINES_AT_ONCE * _WORDS_PER_LINE))
            chosen = words[numpy.minimum(ranks, _WORDS - 1)].reshape(_LINES_AT_ONCE, _WORDS_PER_LINE)
            written += text.write("".join(" ".join(line) + "\n" for line in chosen.tolist()))


def _vocabulary(random: numpy.random.Generator) -> list[str]:
    """Make different words of 2 to 11 letters."""
    words: dict[str, None] = {}
    while len(words) < _WORDS:
        lengths = random.integers(2, 12, _WORDS)
        letters = "".join(numpy.array(list(_LETTERS))[random.integers(0, len(_LETTERS), int(lengths.sum()))])
        end = 0
        for length in lengths.tolist():
            end += length
            words[letters[end - length : end]] = None
    return list(words)[:_WORDS]
