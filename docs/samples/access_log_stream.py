"""Follow the access logs of a folder while a web server writes them: requests and errors of each second.

The folder is watched. A line is read once its line break is there, and lines that came while the job was down are read
when it goes on. A line counts for the second in which it was written, by the time in it.

python docs/samples/access_log_stream.py
"""

from __future__ import annotations

import os
import random
import re
import tempfile
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import dstream as ds
from collectors import all_of, averaging, counting
from dstream import Pipeline
from dstream.windows import tumbling
from reducers import to_imap
from sources import watch_files

REQUEST = re.compile(r'\S+ \S+ \S+ \[([^]]+)\] "[A-Z]+ \S+ [^"]*" (\d{3}) (\d+)')
TIME = "%d/%b/%Y:%H:%M:%S %z"
BEGIN = datetime.strptime("10/Oct/2026:13:55:00 +0000", TIME)
Request = tuple[datetime, int, int]
"""When, with which status, and how many bytes."""


def seconds(folder: str) -> Pipeline:
    """Return a pipeline that writes (requests, rate of errors) of each second into the map `seconds`, by its start."""
    pipeline = Pipeline()
    requests = pipeline.read_from(watch_files(folder, "*.log")).flat_map(parsed)
    timed = requests.add_timestamps(lambda request: request[0], allowed_lag=timedelta(seconds=2))
    is_error = averaging(lambda request: request[1] >= 500)
    counted = timed.window(tumbling(timedelta(seconds=1))).aggregate(all_of(counting(), is_error))
    counted.write_to(to_imap("seconds", lambda found: found.start, lambda found: found.result))
    return pipeline


def parsed(line: str) -> list[Request]:
    """Return the request of a line, or nothing."""
    found = REQUEST.match(line)
    return [(datetime.strptime(found[1], TIME), int(found[2]), int(found[3]))] if found else []


def serve(folder: str, second: int) -> None:
    """Write what a server writes in a second: into one of two files, and now and then a line that is cut."""
    chance = random.Random(second)
    with Path(folder, f"{second % 2}.log").open("a") as log:
        for _ in range(chance.randint(20, 60)):
            [status] = chance.choices([200, 404, 500], [80, 10, 10])
            at = (BEGIN + timedelta(seconds=second)).strftime(TIME)
            log.write(f'10.0.0.1 - - [{at}] "GET /shop HTTP/1.1" {status} 2326\n')
        log.write("cut\n")


def main() -> None:
    """Serve for ten seconds of the log while the job runs; print all seconds that are complete."""
    folder = tempfile.mkdtemp()
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        job = ctx.new_job(seconds(folder), name="access-log-stream")
        for second in range(10):
            serve(folder, second)
        while (job.clock or 0) < (BEGIN + timedelta(seconds=6)).timestamp() * 1000:
            with suppress(TimeoutError):
                job.join(timeout=0.1)  # It raises what the job failed with, if it did.
        job.cancel()
        for start, (count, errors) in sorted(ctx.get_map("seconds").items()):
            print(
                f"{datetime.fromtimestamp(start / 1000, BEGIN.tzinfo):%H:%M:%S}  {count} requests, {errors:.0%} errors"
            )


if __name__ == "__main__":
    main()
