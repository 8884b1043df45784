"""Find the errors and the slowest requests in logs that hold one JSON object a line.

python docs/samples/log_lines.py
python docs/samples/log_lines.py "logs/*.jsonl"
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import dstream as ds
from collectors import averaging, counting, grouping_by
from sources import text_files

EXAMPLE = """\
{"path": "/login", "status": 200, "ms": 31}
{"path": "/cart", "status": 500, "ms": 950}
{"path": "/cart", "status": 500, "ms": 870}
not JSON: the disk was full
{"path": "/login", "status": 200, "ms": 28}
{"path": "/search", "status": 502, "ms": 1200}
{"path": "/search", "status": 200, "ms": 90}
"""


def parsed(line: str) -> list[dict[str, Any]] | None:
    """Return the request in a list, or None for a line that is no JSON: `flat_map` takes None as nothing."""
    try:
        return [json.loads(line)]
    except ValueError:
        return None


def main(paths: list[str]) -> None:
    """Print a small report."""
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        lines = ctx.read(text_files(paths))
        requests = lines.flat_map(parsed)
        total = requests.count()
        print(f"{total} requests, {lines.count() - total} lines that are no JSON")

        errors = requests.filter(lambda request: request["status"] >= 500)
        by_path = errors.collect(grouping_by(lambda request: request["path"], counting()))
        for path, count in ctx.stream(by_path.items()).sorted(key=lambda pair: pair[1], reverse=True).limit(5):
            print(f"{count:>6} errors  {path}")

        for request in requests.sorted(key=lambda request: request["ms"], reverse=True).limit(3):
            print(f"{request['ms']:>6} ms      {request['path']}")

        mean = requests.collect(averaging(lambda request: request["ms"]))
        print(f"a request took {mean:.0f} ms on average")


def example() -> str:
    """Write the example to a file and return its path."""
    path = Path(tempfile.mkdtemp()) / "requests.jsonl"
    path.write_text(EXAMPLE)
    return str(path)


if __name__ == "__main__":
    main(sys.argv[1:] or [example()])
