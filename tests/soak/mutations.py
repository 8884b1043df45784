"""Damage every kind of file of a lake, open it anew: an error that names the damage, or the right content.

python -m tests.soak.mutations --runs 200 --seed 1
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dstream as ds
from dstream.delta import checkpoints
from dstream.errors import DStreamError
from dstream.spi.store import Options
from dstream.storage import Settings, open_storage
from dstream.storage.lake.caches import BucketCache

__all__ = ["Lake", "run"]

Files = dict[str, bytes]

KINDS: dict[str, Callable[[str], bool]] = {
    "data file": lambda path: path.endswith(".parquet") and "_delta_log" not in path,
    "log entry": lambda path: path.endswith(".json") and "_delta_log" in path,
    "checkpoint": lambda path: path.endswith(".checkpoint.parquet"),
    "checkpoint pointer": lambda path: path.endswith("_last_checkpoint"),
    "last created": lambda path: path.endswith("_last_created"),
    "description": lambda path: path.startswith("names/") and path.endswith(".json"),
    "mark": lambda path: path.endswith("_made"),
}


class Lake:
    """A lake with collections of every kind, which can be damaged and made whole again.

    Attributes:
        files: what each file holds.
        older: what files of the same names have held before.
        right: what the collections hold.
    """

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.older: dict[str, list[bytes]] = {}
        self.files: Files = {}
        every, checkpoints.COLLECTION_CHECKPOINT_INTERVAL = checkpoints.COLLECTION_CHECKPOINT_INTERVAL, 4
        try:
            self._fill(random.Random(seed))
        finally:
            checkpoints.COLLECTION_CHECKPOINT_INTERVAL = every
        self._links = self._linked()
        self.right = self.content()
        assert all(not isinstance(held, Exception) for held in self.right.values()), self.right

    def _fill(self, chosen: random.Random) -> None:
        with ds.connect(engine="local", storage=self.root) as ctx:
            numbers, texts = ctx.get_map("numbers", buckets=2), ctx.get_map("texts", buckets=1, journal=True)
            ages, items = ctx.get_cache("ages", ttl=1e9), ctx.get_list("items")
            ctx.get_map("gone")["a"] = 1
            ctx.get_map("gone").destroy()
            ctx.get_map("again")["a"] = 1
            ctx.get_map("again").destroy()
            ctx.get_map("again")["a"] = 2
            ctx.get_map("empty", key_type=str, value_type=int)
            ctx.get_map("untouched")
            ctx.get_map("large")["bytes"] = chosen.randbytes(1_500_000)
            for step in range(10):
                numbers.update({f"k{chosen.randrange(9)}": step, f"l{chosen.randrange(9)}": -step})
                numbers.pop(f"k{step // 3}", None)
                texts[f"t{step % 5}"] = f"text {step}"
                ages[step] = {"age": step}
                items.extend([step, f"item {step}"])
                self._remember()
            numbers.compact()
            numbers["last"] = 99
            self._remember()

    def _remember(self) -> None:
        now = read_files(self.root)
        for path, data in self.files.items():
            if now.get(path, data) != data:
                self.older.setdefault(path, []).append(data)
        self.files = now

    def _linked(self) -> dict[str, str]:
        """Return the files that are two names of one, by each other."""
        names: dict[int, list[str]] = {}
        for path in self.files:
            names.setdefault((self.root / path).stat().st_ino, []).append(path)
        pairs = [sorted(paths) for paths in names.values() if len(paths) == 2]
        return {path: other for pair in pairs for path, other in (pair, pair[::-1])}

    def restore(self) -> None:
        """Make everything as it was."""
        now = read_files(self.root)
        for path in {*now, *self.files}:
            if now.get(path) != self.files.get(path):
                (self.root / path).unlink(missing_ok=True)
        for path, data in self.files.items():
            whole, other = self.root / path, self._links.get(path)
            if not whole.exists():
                whole.parent.mkdir(parents=True, exist_ok=True)
                whole.write_bytes(data)
            if other and not ((self.root / other).exists() and whole.samefile(self.root / other)):
                (self.root / other).unlink(missing_ok=True)
                os.link(whole, self.root / other)

    def content(self) -> dict[str, Any]:
        """Return what a process that knows nothing reads of each collection, or the error that it gets."""
        with ds.connect(engine="local", storage=self.root) as ctx:
            asked: dict[str, Callable[[], Any]] = {
                "names": lambda: ctx.collections(),
                "numbers": lambda: map_content(ctx.get_map("numbers")),
                "texts": lambda: map_content(ctx.get_map("texts")),
                "journal": lambda: list(ctx.get_map("texts").journal(0)),
                "large": lambda: map_content(ctx.get_map("large")),
                "again": lambda: map_content(ctx.get_map("again")),
                "empty": lambda: map_content(ctx.get_map("empty")),
                "untouched": lambda: map_content(ctx.get_map("untouched")),
                "ages": lambda: map_content(ctx.get_cache("ages")),
                "items": lambda: (list(ctx.get_list("items")), ctx.get_list("items").stream().to_list()),
                "single": lambda: self._looked_up("numbers", [f"k{n}" for n in range(9)]),
                "gone": lambda: open_storage(str(self.root), Settings()).open("map", "gone", Options()),
            }
            return {name: _answer(ask) for name, ask in asked.items()}

    def _looked_up(self, name: str, keys: list[str]) -> list[Any]:
        """Read single keys as of a bucket that is too large for the memory."""
        store: Any = open_storage(str(self.root), Settings()).create("map", name, Options())
        store._cache = BucketCache(store._folder, 1, rows_kept=0)
        return list(store.get_many(keys))


def read_files(root: Path) -> Files:
    """Return what is below a folder."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def map_content(entries: Any) -> tuple[dict[Any, Any], list[Any], int]:
    """Read a map as a dict, as a stream and as a number."""
    streamed = sorted((entry.key, entry.value) for entry in entries.stream().to_list())
    return dict(entries), streamed, len(entries)


def _answer(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Exception as error:
        return error


# ------------------------------------------------------------------------------------------------------------ mutations


def flip(lake: Lake, path: str, chosen: random.Random) -> Files:
    """Change one bit."""
    return {path: _flipped(lake.files[path], chosen)}


def _flipped(data: bytes, chosen: random.Random) -> bytes:
    changed = bytearray(data)
    changed[chosen.randrange(len(data))] ^= 1 << chosen.randrange(8)
    return bytes(changed)


def flip_some(lake: Lake, path: str, chosen: random.Random) -> Files:
    """Change up to ten bits, anywhere."""
    data = lake.files[path]
    for _ in range(chosen.randint(2, 10)):
        data = _flipped(data, chosen)
    return {path: data}


def zero(lake: Lake, path: str, chosen: random.Random) -> Files:
    """Replace a block by zeros, as after a power failure."""
    data = lake.files[path]
    start = chosen.randrange(len(data))
    if chosen.random() < 0.5:
        start -= start % 512
    end = min(len(data), start + chosen.choice([1, 16, 512, 4096, len(data)]))
    return {path: data[:start] + bytes(end - start) + data[end:]}


def cut(lake: Lake, path: str, chosen: random.Random) -> Files:
    """Keep some bytes of the beginning."""
    return {path: lake.files[path][: chosen.randrange(len(lake.files[path]))]}


def cut_lines(lake: Lake, path: str, chosen: random.Random) -> Files:
    """Keep whole lines of the beginning."""
    lines = lake.files[path].splitlines(keepends=True)
    kept = b"".join(lines[: chosen.randrange(len(lines))])
    return {path: kept.rstrip(b"\n") if chosen.random() < 0.5 else kept}


def double_line(lake: Lake, path: str, chosen: random.Random) -> Files:
    """Give a line twice."""
    lines = lake.files[path].split(b"\n")
    lines.insert(chosen.randrange(len(lines)), chosen.choice(lines))
    return {path: b"\n".join(lines)}


def drop_line(lake: Lake, path: str, chosen: random.Random) -> Files:
    """Leave a line out."""
    lines = lake.files[path].split(b"\n")
    lines.pop(chosen.randrange(len(lines)))
    return {path: b"\n".join(lines)}


def remove(lake: Lake, path: str, chosen: random.Random) -> dict[str, None]:
    """Remove the file."""
    return {path: None}


def swap(lake: Lake, path: str, chosen: random.Random) -> Files:
    """Exchange two files of a kind."""
    other = chosen.choice([other for other in lake.files if _kind(other) == _kind(path)])
    return {path: lake.files[other], other: lake.files[path]}


def other_content(lake: Lake, path: str, chosen: random.Random) -> Files:
    """Give it what any other file holds."""
    return {path: lake.files[chosen.choice(list(lake.files))]}


def older(lake: Lake, path: str, chosen: random.Random) -> Files:
    """Give it what a file of that name has held before; where none has, a file of its kind."""
    before = lake.older.get(path)
    return {path: chosen.choice(before)} if before else swap(lake, path, chosen)


MUTATIONS: list[Callable[[Lake, str, random.Random], Any]] = [
    flip,
    flip_some,
    zero,
    cut,
    cut_lines,
    double_line,
    drop_line,
    remove,
    swap,
    other_content,
    older,
]


def _kind(path: str) -> str:
    return next((kind for kind, holds in KINDS.items() if holds(path)), "other")


def _write(root: Path, changed: dict[str, bytes | None], in_place: bool) -> None:
    """Write damaged files; in place, another name of a file is damaged with it."""
    for path, data in changed.items():
        if data is None or not in_place:
            (root / path).unlink()
        if data is not None:
            (root / path).write_bytes(data)


# -------------------------------------------------------------------------------------------------------------- verdict


def _verdict(right: Any, answer: Any) -> str:
    if isinstance(answer, Exception):
        return "error" if isinstance(answer, DStreamError) else f"unnamed {type(answer).__name__}"
    return "right" if answer == right else "WRONG"


def _names_damaged(right: Any, answers: dict[str, Any]) -> bool:
    """Say whether only a collection is named beyond those that there are of which nobody can tell that it is destroyed.

    Its log is damaged, and whoever opens it is told so.
    """
    named = answers["names"]
    more = {found.name for found in named if found not in right}
    return set(right) <= set(named) and all(isinstance(answers.get(name), DStreamError) for name in more)


def run(mutations: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Damage a lake many times.

    Returns:
        How many mutations each kind of file has seen and how each ended, and a line for each that ended badly.
    """
    chosen, ends, bad = random.Random(seed), Counter[str](), []
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(Path(folder) / "lake", seed)
        by_kind = {kind: sorted(path for path in lake.files if _kind(path) == kind) for kind in (*KINDS, "other")}
        kinds = [kind for kind, paths in by_kind.items() if paths]
        for number in range(mutations):
            path, mutation = chosen.choice(by_kind[kinds[number % len(kinds)]]), chosen.choice(MUTATIONS)
            changed = mutation(lake, path, chosen)
            if any(lake.files[path] != data for path, data in changed.items()):
                _write(lake.root, changed, in_place=chosen.random() < 0.5)
            answers = lake.content()
            verdicts = {name: _verdict(lake.right[name], answer) for name, answer in answers.items()}
            if verdicts["names"] == "WRONG" and _names_damaged(lake.right["names"], answers):
                verdicts["names"] = "error"
            worst = max(verdicts.values(), key=["right", "error", "WRONG"].index) if _known(verdicts) else "unnamed"
            ends[f"{_kind(path)}: {worst}"] += 1
            for name, verdict in verdicts.items():
                if verdict not in ("right", "error"):
                    bad.append(f"{number}: {mutation.__name__} of {path}: {name}: {verdict}: {answers[name]!r:.300}")
            lake.restore()
        assert lake.content() == lake.right
    return ends, bad


def _known(verdicts: dict[str, str]) -> bool:
    return set(verdicts.values()) <= {"right", "error", "WRONG"}


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--runs", type=int, default=200, help="how many mutations")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    mutations, seed = given.runs, given.seed
    logging.disable(logging.WARNING)
    ends, bad = run(mutations, seed)
    for end, count in sorted(ends.items()):
        print(f"{count:6,}  {end}")
    print(*bad, sep="\n")
    print(f"{mutations:,} mutations, seed {seed}: {len(bad)} read as something else")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
