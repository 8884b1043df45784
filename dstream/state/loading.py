"""From the parts of a shard to its state: what a process knows already is brought up to date, the rest is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from dstream.errors import IllegalStateError
from dstream.spi.state_files import StateFiles
from dstream.spi.state_operator import ShardState, StateOperator
from dstream.state.kept_shards import KeptShard
from dstream.state.recent_files import recent_files
from dstream.state.shard_index import Part, Shard
from dstream.state.state_parts import Blob, opened

__all__ = ["ShardFiles"]


@dataclass(frozen=True, slots=True)
class ShardFiles:
    """The files of one step, from which shards are loaded.

    Attributes:
        files: where they stand.
        stage: the name of the step, for messages.
    """

    files: StateFiles
    stage: str

    def state(self, number: int, shard: Shard, operator: StateOperator, known: KeptShard | None) -> ShardState:
        """Return the state that the parts of a shard make up.

        Args:
            number: that of the shard.
            shard: its parts.
            operator: makes an empty state.
            known: what this process has of it, in whatever state; it is used up.

        Raises:
            IllegalStateError: a part is missing or damaged.
        """
        if known is not None and known.token == shard.token:
            return known.state
        missed = None if known is None else self._missed(number, shard.parts, known.token)
        if known is None or missed is None:
            return self._loaded(number, shard.parts, operator)
        return self._patched(number, known.state, missed)

    def blobs(self, number: int, parts: Sequence[Part]) -> Iterator[Blob]:
        """Give the changes that some parts hold, in order."""
        for part in parts:
            yield from self._read(number, part)

    def _missed(self, number: int, parts: Sequence[Part], token: str) -> list[Blob] | None:
        """Return the changes since a state; None if it is none that led here, or a snapshot was written since.

        The state may be one whose change has been put together with later ones, and so stand inside a part.
        """
        missed: list[Blob] = []
        for part in reversed(parts):
            if part.file == token:
                return missed
            if part is parts[0]:
                break
            blobs = self._read(number, part)
            inside = next((place for place, blob in enumerate(blobs) if blob.token == token), None)
            if inside is not None:
                return blobs[inside + 1 :] + missed
            missed = blobs + missed
        return None

    def _loaded(self, number: int, parts: Sequence[Part], operator: StateOperator) -> ShardState:
        state = operator.new()
        if parts:
            (snapshot,) = self._read(number, parts[0])
            state.load(self._unpickled(number, snapshot))
            self._patched(number, state, self.blobs(number, parts[1:]))
        return state

    def _patched(self, number: int, state: ShardState, blobs: Iterator[Blob] | list[Blob]) -> ShardState:
        for blob in blobs:
            state.patch(self._unpickled(number, blob))
        return state

    def _unpickled(self, number: int, blob: Blob) -> Any:
        try:
            return self.files.load(blob.data)
        except Exception as error:
            error.add_note(f"while shard {number} of the state of step {self.stage!r} was loaded from {blob.token}")
            raise

    def _read(self, number: int, part: Part) -> list[Blob]:
        try:
            data = recent_files.read(self.files, part.file, part.offset, part.length)
            return opened(data, part.file, number)
        except FileNotFoundError as error:
            self._refuse(number, part, "it is missing", error)
        except IllegalStateError as error:
            self._refuse(number, part, str(error), error)

    def _refuse(self, number: int, part: Part, why: str, error: Exception) -> NoReturn:
        raise IllegalStateError(
            f"{self.files.title} is damaged: step {self.stage!r} needs the file {part.file} for shard {number}, and "
            f"{why}; restore it from a backup, or let the job start at an earlier epoch with JobConfig(start_at=...)"
        ) from error
