"""Kernels of a join beside each other: the pairs of rows of two columns of keys, in the order of a dict.

`python -m tests.benchmarks.join_kernels 500000 2000000` prints the CPU seconds of one thread, the best of three.
"""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

os.environ["POLARS_MAX_THREADS"] = "1"

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from dstream.operators.columns.strings import Strings
from dstream.operators.joins.key_index import KeyIndex, Keys

Pairs: TypeAlias = tuple[Any, Any]


def _dict(left: pa.Array[Any], right: pa.Array[Any]) -> Pairs:
    held = defaultdict(list)
    for row, key in enumerate(right.to_pylist()):
        held[key].append(row)
    pairs = [(row, other) for row, key in enumerate(left.to_pylist()) for other in held.get(key, ())]
    lefts, rights = zip(*pairs, strict=True)
    return np.array(lefts), np.array(rights)


def _key_index(left: pa.Array[Any], right: pa.Array[Any]) -> Pairs:
    index = KeyIndex(_keys(right))
    return _expanded(index.find(_keys(left)), index.numbers, len(index.keys))


def _key_index_by_blocks(left: pa.Array[Any], right: pa.Array[Any]) -> Pairs:
    index = KeyIndex(_keys(right))
    found = [index.find(_keys(left.slice(start, _BLOCK))) for start in range(0, len(left), _BLOCK)]
    return _expanded(np.concatenate(found), index.numbers, len(index.keys))


_BLOCK = 16_384


def _keys(array: pa.Array[Any]) -> Keys:
    return Strings(array, is_ascii=True) if pa.types.is_string(array.type) else array.to_numpy()


def _index_in(left: pa.Array[Any], right: pa.Array[Any]) -> Pairs:
    encoded: Any = right.dictionary_encode()
    found: Any = pc.call_function("index_in", [left], pc.SetLookupOptions(encoded.dictionary))
    return _expanded(found.fill_null(-1).to_numpy(), encoded.indices.to_numpy(), len(encoded.dictionary))


def _both_encoded(left: pa.Array[Any], right: pa.Array[Any]) -> Pairs:
    encoded: Any = pa.concat_arrays([right, left]).dictionary_encode()
    numbers = encoded.indices.to_numpy()
    return _expanded(numbers[len(right) :], numbers[: len(right)], len(encoded.dictionary))


def _expanded(found: Any, numbers: Any, size: int) -> Pairs:
    counts = np.bincount(numbers, minlength=size)
    starts, rows = np.cumsum(counts) - counts, np.argsort(numbers, kind="stable")
    partners = np.where(found >= 0, counts[found], 0)
    lefts = np.repeat(np.arange(len(found)), partners)
    inside = np.arange(len(lefts)) - np.repeat(np.cumsum(partners) - partners, partners)
    return lefts, rows[starts[found[lefts]] + inside]


def _acero(left: pa.Array[Any], right: pa.Array[Any]) -> Pairs:
    sides = [pa.table({"k": keys, name: np.arange(len(keys))}) for name, keys in (("i", left), ("j", right))]
    joined = sides[0].join(sides[1], "k", join_type="inner", use_threads=False)
    lefts, rights = joined["i"].to_numpy(), joined["j"].to_numpy()
    order = np.lexsort((rights, lefts))
    return lefts[order], rights[order]


def _polars(left: pa.Array[Any], right: pa.Array[Any]) -> Pairs:
    lefts, rights = (
        pl.DataFrame({"k": pl.from_arrow(keys)}).with_row_index(name) for name, keys in (("i", left), ("j", right))
    )
    joined = lefts.join(rights, on="k", how="inner", maintain_order="left_right")
    return joined["i"].to_numpy(), joined["j"].to_numpy()


def _inputs(size: int) -> Iterator[tuple[str, Any, Any]]:
    rows = np.arange(size)
    yield "ints", pa.array(rows * 2654435761 % 2**32), pa.array(rows * 2654435761 % 2**32)
    texts = pa.array([f"customer {row * 7919 % size}" for row in range(size)])
    yield "texts, half of them there", texts, texts.take(pa.array(rows[::2]))
    few = size // 10
    repeated = pa.array([f"customer {row * 7919 % few}" for row in range(size)])
    yield "texts, ten of each", repeated, pa.array([f"customer {row}" for row in range(2 * few)])


_KERNELS: list[Callable[[Any, Any], Pairs]] = [
    _dict, _key_index, _key_index_by_blocks, _index_in, _both_encoded, _acero, _polars
]  # fmt: skip


def _print(size: int) -> None:
    for name, left, right in _inputs(size):
        expected = _dict(left, right)
        for kernel in _KERNELS:
            best = float("inf")
            for _ in range(3):
                began = time.process_time()
                found = kernel(left, right)
                best = min(best, time.process_time() - began)
            assert all(map(np.array_equal, found, expected)), kernel
            print(f"{size:>10,}  {name:26} {kernel.__name__:22} {best:.3f}")


if __name__ == "__main__":
    pa.set_cpu_count(1)
    for each in sys.argv[1:]:
        _print(int(each))
