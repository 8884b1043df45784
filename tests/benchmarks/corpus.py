"""Files of the benchmarks, made once: texts whose words are as frequent as 1 / rank, orders, requests, users."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

__all__ = ["SCHEMA", "Order", "corpus", "usual_file"]

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


SCHEMA = "id LONG, shop LONG, customer STRING, amount LONG, price DOUBLE"


@dataclass
class Order:
    """A row of the orders; every second one is of one shop."""

    id: int
    shop: int
    customer: str
    amount: int
    price: float


def usual_file(folder: Path, kind: str, size: int) -> Path:
    """Return a file of a kind, such as `orders.csv`, with a number of rows, or megabytes of text."""
    path = folder / f"usual-{size}-{kind}"
    if kind and not path.exists():
        unfinished = path.with_stem(f"{path.stem}-{os.getpid()}")
        _write_kind(unfinished, kind.partition(".")[0], size)
        unfinished.rename(path)
    return path


def _write_kind(path: Path, kind: str, size: int) -> None:
    if kind == "orders":
        _write_orders(path, size)
        return
    lines = {"words": _sentences, "requests": _requests, "users": _users}[kind](path.parent, size)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(lines)


def _sentences(folder: Path, megabytes: int) -> Iterator[str]:
    """Yield the corpus with capitals, commas, and a letter beyond ASCII in each 60th word or so."""
    with corpus(folder, megabytes).open(encoding="ascii") as words:
        for line in words:
            sentence = line.strip().capitalize().replace(" ", ", ", 1)
            yield sentence.replace("ei", "\u00e9").replace("ou", "\u00fc") + ".\n"


def _requests(folder: Path, size: int) -> Iterator[str]:
    for n in range(size):
        request = f"GET /shop{n * 31 % 300}/item/{n} HTTP/1.1"
        yield json.dumps({"time": n, "host": f"web-{n % 7}", "request": request, "status": 200}) + "\n"


def _users(folder: Path, size: int) -> Iterator[str]:
    return (f"user-{n * 2_654_435_761 % 2**32 % (size // 4)}@example.org\n" for n in range(size))


def _write_orders(path: Path, size: int) -> None:
    numbers = range(size)
    columns = {
        "id": list(numbers),
        "shop": [0 if n % 2 else n * 7919 % 70_000 for n in numbers],
        "customer": [f"customer {n * 7919 % size}" for n in numbers],
        "amount": [n * 31 % 1000 for n in numbers],
        "price": [n * 17 % 100_000 / 100 for n in numbers],
    }
    table = pa.table(columns)
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path, pyarrow.csv.WriteOptions(quoting_style="none"))
    else:
        pq.write_table(table, path, row_group_size=max(size // 8, 10_000))
