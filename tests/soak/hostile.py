"""Documents of a lake with random changes: each gives what stands there or one clear error, and touches nothing else.

`python -m tests.soak.hostile 2000 --seed 7` makes so many changes. A change replaces a part of a JSON document (the
description of a name, a log entry, the pointer to a checkpoint), an action of a checkpoint, or a value in msgpack. Then
the collection is opened, read, written to, compacted and vacuumed. What is wrong is printed: another exception than an
error of dstream, or a TypeError, that names the collection or the storage; more than a second; a change outside of
the storage. The exit code is 1 then.
"""

from __future__ import annotations

import argparse
import copy
import json
import logging
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

from dstream.delta.checkpoints import write_checkpoint
from dstream.errors import DStreamError
from dstream.spi.store import Options
from dstream.storage import Settings, open_storage
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.pickles import Pickles

__all__ = ["violations"]

LONGEST = 1.0
STRANGE: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 1.5, float("nan"), float("inf"), "", "x", "0", "-1", "9" * 40,
    "../../other", "/etc/passwd", "..%2f..", "..\\..", "a" * 32, "a" * 32 + ".parquet", "\x00", "\ud800", "ü" * 99,
    [], [[]], {}, {"list": {"list": "int"}}, ["x"] * 3, {"x": 1}, "int", "list", "map", "null", "{}", "[" * 9999,
]  # fmt: skip


def violations(count: int, seed: int) -> Iterator[str]:
    """Make so many changes, and say what each did that it should not."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="dstream-hostile-") as folder:
        top = Path(folder)
        _make(top / "made")
        (top / "other").mkdir()
        for name in ("a" * 32 + ".parquet", "precious.txt"):
            (top / "other" / name).write_text("precious")
        for number in range(count):
            shutil.copytree(top / "made", top / "lake")
            what = chance.choice(_CHANGES)(top / "lake", chance)
            before = _outside(top)
            yield from (f"change {number}, {what}: {wrong}" for wrong in _wrong(top / "lake"))
            if _outside(top) != before:
                yield f"change {number}, {what}: something outside has changed"
            shutil.rmtree(top / "lake")
            yield from _wrong_value(chance, number)


def _make(path: Path) -> None:
    storage = open_storage(str(path), Settings(pickle="never"))
    store: Any = storage.create("map", "m", Options(buckets=2, journal=True))
    for n in range(6):
        store.update([f"k{n % 4}"], lambda old, n=n: [n])
    write_checkpoint(store.log.folder)
    store.update(["k0", "k9"], lambda old: [7, (1, "x")])
    items: Any = storage.create("list", "l", Options())
    items.extend([1, 2, None])
    items.extend(["x"])


def _outside(top: Path) -> dict[str, float]:
    return {str(path): path.stat().st_mtime for place in ("made", "other") for path in (top / place).rglob("*")}


def _changed(document: Any, chance: random.Random) -> Any:
    """Return a document of which one part is another, is gone, or is there twice."""
    document = copy.deepcopy(document)
    places = list(_places(document))
    if not places:
        return chance.choice(STRANGE)
    parent, key = chance.choice(places)
    action = chance.random()
    if action < 0.15:
        del parent[key]
    elif action < 0.25 and isinstance(parent, list):
        parent.insert(key, parent[key])
    elif action < 0.35 and isinstance(parent, dict):
        parent[str(chance.choice(STRANGE))[:40]] = parent.pop(key)
    elif isinstance(parent[key], str) and parent[key][:1] in ("{", "[") and action < 0.7:
        parent[key] = json.dumps(_changed(json.loads(parent[key]), chance))
    else:
        parent[key] = chance.choice(STRANGE)
    return document


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(document) if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in keys:
        yield document, key
        yield from _places(document[key])


def _change_lines(lake: Path, chance: random.Random) -> str:
    files = [*lake.glob("names/*/*/*.json"), *lake.glob("data/*/_delta_log/*.json")]
    path = chance.choice([*files, *lake.glob("data/*/_delta_log/_last_checkpoint")])
    lines = path.read_text().splitlines()
    number = chance.randrange(len(lines))
    lines[number] = json.dumps(_changed(json.loads(lines[number]), chance))
    path.write_text("\n".join(map(_without_seal, lines)))
    return f"{path.relative_to(lake)}: {lines[number]:.300}"


def _without_seal(line: str) -> str:
    """Return a line that begins in another way than one with a checksum, so that what it says counts."""
    return f" {line}"


def _change_checkpoint(lake: Path, chance: random.Random) -> str:
    [path] = lake.glob("data/*/_delta_log/*.checkpoint.parquet")
    table = parquet.read_table(path)
    rows = table.to_pylist()
    number = chance.randrange(len(rows))
    for _ in range(20):
        changed = _changed(rows[number], chance)
        try:
            parquet.write_table(
                pa.Table.from_pylist([*rows[:number], changed, *rows[number + 1 :]], table.schema), path
            )
        except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError):
            continue  # what no checkpoint can hold
        return f"{path.relative_to(lake)}: {changed!r:.300}"
    return "nothing"


def _change_bytes(lake: Path, chance: random.Random) -> str:
    path = chance.choice([*lake.glob("names/*/*/*.json"), *lake.glob("data/*/_delta_log/*")])
    data = bytearray(path.read_bytes())
    data[chance.randrange(len(data))] = chance.randrange(256)
    path.write_bytes(data)
    return f"a byte of {path.relative_to(lake)}"


_CHANGES = (_change_lines, _change_lines, _change_lines, _change_checkpoint, _change_bytes)


def _wrong(lake: Path) -> Iterator[str]:
    storage = open_storage(str(lake), Settings(pickle="never"))
    yield from _judged(storage.names, ("the storage", "map 'm'", "list 'l'"))
    names = (str(lake), "map 'm'", "list 'l'")
    for use in (_read_map, _read_list, _write, lambda storage: storage.vacuum(0)):
        yield from _judged(lambda use=use: use(storage), names)


def _read_map(storage: Any) -> None:
    store = storage.open("map", "m", Options())
    if store is not None:
        store.get_many([f"k{n}" for n in range(10)])
        [entry for split in store.splits(2) for entry in split.read()]
        store.size()
        list(store.journal(0))


def _read_list(storage: Any) -> None:
    items = storage.open("list", "l", Options())
    if items is not None:
        items.read(0, 9)
        [item for split in items.splits(2) for item in split.read()]


def _write(storage: Any) -> None:
    store, items = storage.create("map", "m", Options()), storage.create("list", "l", Options())
    store.update(["k1"], lambda old: [5])
    store.compact()
    items.extend([3])
    items.compact()


def _wrong_value(chance: random.Random, number: int) -> Iterator[str]:
    """Change a value in msgpack, and decode it."""
    codec = Codec.of("map", "m", Options(), Pickles("never"))
    value = {"a": (1, 2.5, frozenset("x")), "b": [10**30, None, b"x"], "c": {1: "y"}}
    data = bytearray(codec.encode_value(value))
    for _ in range(chance.randrange(1, 4)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    decode = codec.decode_value if chance.random() < 0.5 else codec.decode_key
    for wrong in _judged(lambda: decode(bytes(data)), ("map 'm'",)):
        yield f"change {number}, value {bytes(data)!r}: {wrong}"


def _judged(use: Callable[[], object], names: tuple[str, ...]) -> Iterator[str]:
    started = time.process_time()
    try:
        use()
    except (DStreamError, TypeError) as error:
        if not any(name in str(error) for name in names):
            yield f"{type(error).__name__} names nothing: {error}"
    except Exception as error:
        yield f"{type(error).__name__}: {error}"
    if (seconds := time.process_time() - started) > LONGEST:
        yield f"it took {seconds:.1f} s of CPU"


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=200, help="how many changes")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    logging.disable()
    started = time.monotonic()
    found = list(violations(arguments.runs, arguments.seed))
    print(*found, sep="\n")
    print(f"{arguments.runs} changes, {len(found)} violations, {time.monotonic() - started:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
