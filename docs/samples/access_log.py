"""Analyse the access log of a web server in one reading: visits of each folder, failed requests, unreadable lines.

python docs/samples/access_log.py [PATH]
"""

from __future__ import annotations

import os
import random
import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import dstream as ds
from collectors import counting
from dstream import Pipeline
from reducers import replacing, to_files, to_ilist, to_imap
from sources import json_lines, text_files

REQUEST = re.compile(r'(\S+) \S+ \S+ \[[^]]+\] "[A-Z]+ (\S+) [^"]*" (\d{3}) (\d+|-)')


class Request(NamedTuple):
    """A request, as far as it is looked at."""

    host: str
    path: str
    status: int


def analysis(log: str) -> Pipeline:
    """Return a pipeline that writes the map `visits`, the files of the folder `failed`, and the list `unreadable`."""
    pipeline = Pipeline()
    requests = pipeline.read_from(text_files(log)).map(parsed).set_name("parsed")
    visited = requests.filter(lambda request: 0 < request.status < 400).flat_map(lambda request: folders(request.path))
    visited.grouping_key(lambda folder: folder).aggregate(counting()).write_to(replacing(to_imap("visits")))
    requests.filter(lambda request: request.status >= 400).write_to(replacing(to_files("failed", format="json")))
    unreadable = requests.filter(lambda request: request.status == 0)
    unreadable.map(lambda request: request.path).write_to(replacing(to_ilist("unreadable")))
    return pipeline


def parsed(line: str) -> Request:
    """Return the request of a line; one of status 0 holds a line that is none."""
    return Request(found[1], found[2], int(found[3])) if (found := REQUEST.match(line)) else Request("", line, 0)


def folders(path: str) -> list[str]:
    """Return the folders that a path lies in, and itself: /a/b.html gives /, /a and /a/b.html."""
    parts = [part for part in path.split("?")[0].split("/") if part]
    return ["/" + "/".join(parts[:count]) for count in range(len(parts) + 1)]


def main(log: str) -> None:
    """Print the most visited places, and what went wrong."""
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        ctx.new_job(analysis(log), name="access-log").join()
        for path, count in ctx.get_map("visits").stream().sorted(key=lambda e: (-e.value, e.key)).limit(8):
            print(f"{count:>7,}  {path}")
        print(f"{ctx.read(json_lines('failed')).count():>7,}  failed requests, in the folder 'failed'")
        print(f"{len(ctx.get_list('unreadable')):>7,}  lines are no requests")


def generated(count: int = 20_000) -> str:
    """Write a log, each thousandth line of which is broken; return its path."""
    chance, path = random.Random(7), Path(tempfile.mkdtemp()) / "access.log"
    pages = ["/", "/shop", "/shop/hats/top.html", "/shop/shoes.html", "/about/us.html"]
    with path.open("w") as log:
        for number in range(count):
            page, [status] = chance.choice(pages), chance.choices([200, 304, 404, 500], [90, 5, 4, 1])
            line = f'10.0.0.{number % 9} - - [10/Oct/2026:13:55:36] "GET {page} HTTP/1.1" {status} 2326\n'
            log.write(line if number % 1000 else f"{number} bytes were cut\n")
    return str(path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else generated())
