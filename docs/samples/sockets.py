"""Read lines from one socket and send others into a second one: each word that comes, with how often it came so far.

The lines are stored in a list of the storage before they are read, so a job that dies goes on with the next one.

python docs/samples/sockets.py
"""

from __future__ import annotations

import os
import socket
import threading

import dstream as ds
from collectors import counting
from dstream import Pipeline
from reducers import to_socket
from sources import socket_lines

LINES = ["the whale and the sea", "the ship", "the sea and a whale"]


def counted(words_at: int, counts_at: int) -> Pipeline:
    """Return a pipeline between two ports of this machine."""
    pipeline = Pipeline()
    lines = pipeline.read_from(socket_lines("127.0.0.1", words_at, durable="heard"))
    words = lines.flat_map(lambda line: line.split()).grouping_key(lambda word: word)
    words.rolling_aggregate(counting()).write_to(to_socket("127.0.0.1", counts_at, lambda e: f"{e.key} {e.value}"))
    return pipeline


def talk(server: socket.socket) -> None:
    """Send the lines to who connects, and close the connection: the source ends then, and the job with it."""
    connection, _ = server.accept()
    with connection:
        connection.sendall("".join(f"{line}\n" for line in LINES).encode())


class Listener(threading.Thread):
    """Takes in what is sent, from one connection after the other, up to an empty line."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.heard: list[str] = []

    def run(self) -> None:
        """Read."""
        while "" not in self.heard:
            connection, _ = self.server.accept()
            with connection, connection.makefile(encoding="utf-8") as lines:
                self.heard += [line.rstrip("\n") for line in lines]

    def all_heard(self) -> list[str]:
        """Return what was sent, once the last connection is read."""
        with socket.create_connection(self.server.getsockname()) as last:
            last.sendall(b"\n")
        self.join()
        return self.heard[:-1]


def main() -> None:
    """Talk, run the job to its end, and print what came back."""
    listener = Listener()
    listener.start()
    with (
        socket.create_server(("127.0.0.1", 0)) as talker,
        ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx,
    ):
        threading.Thread(target=talk, args=[talker], daemon=True).start()
        if heard := ctx.existing("list", "heard"):
            heard.destroy()  # A new job begins with the first line that was ever stored.
        ports = (talker.getsockname()[1], listener.server.getsockname()[1])
        ctx.new_job(counted(*ports), name="sockets").join()
    print("\n".join(listener.all_heard()))


if __name__ == "__main__":
    main()
