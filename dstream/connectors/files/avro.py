"""Records of Avro files as items."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dstream.connectors.base import MAX_RECORD
from dstream.connectors.files.avro_blocks import Block, Header, blocks, header
from dstream.connectors.files.sources import (
    misread_at,
)
from dstream.connectors.files.splits import Part, plan
from dstream.errors import SourceError
from dstream.filesystem.access import AVRO, File, check_format, opened
from dstream.schema.avro import BrokenSchema, Schema, TornRecord, check_indexes, exactly_read
from dstream.schema.decoders import DecodeError, ItemDecoder
from dstream.schema.factories import maker_of_objects
from dstream.schema.record_decoders import OnMisread
from dstream.spi import Misread

__all__ = ["AvroReader"]


@dataclass(frozen=True, slots=True)
class AvroReader:
    """Records of Avro, the decoder of each, and the bound on the bytes of one."""

    form: ItemDecoder | None
    max_record: int = MAX_RECORD

    def divided(self, files: list[File], parallelism: int) -> list[tuple[Part, ...]]:
        """Divide the files into splits of complete files."""
        return plan(files, parallelism, lambda file: False)

    def items(self, part: Part, misread: OnMisread) -> Iterator[Any]:
        """Yield the items of the records of a file."""
        read = _RecordsOfFile(part.file, self.max_record)
        make = None if self.form is None else maker_of_objects(self.form)
        for records in read.read():
            if isinstance(records, _Unread):
                yield from misread(records.misread(part.file))
            elif make is None:
                yield from records
            else:
                for number, record in enumerate(records, read.number + 1):
                    try:
                        made = make(record)  # A failure would name what is called `item`, which is the one before.
                    except DecodeError as error:
                        yield from misread(_misread(part.file, number, record, error))
                    else:
                        yield made


def _misread(file: File, number: int, record: Any, error: DecodeError) -> Misread:
    return misread_at(file, lambda: number, repr(record), error, f": {error}", unit="record")


@dataclass(frozen=True, slots=True)
class _Unread:
    """Records that are not decoded.

    Attributes:
        first: the number of the first.
        count: their number.
        problem: the error, as it follows the location in a message.
        data: their first bytes, or the stored values of a single one.
    """

    first: int
    count: int
    problem: str
    data: Any

    def misread(self, file: File) -> Misread:
        """Return the error and the dead letter of these records."""
        others = f" (left out with it, of the same block: {self.count - 1:,} more)" if self.count > 1 else ""
        text = f"{self.problem}{others}" if self.problem.startswith(":") else f" {self.problem}{others}"
        return misread_at(file, lambda: self.first, repr(self.data), ValueError(text.lstrip(": ")), text, unit="record")


class _RecordsOfFile:
    """The records of one file, read one after another, once.

    Args:
        file: the file to read.
        most: the limit of the memory of a record, and of the size of a block, in bytes.

    Attributes:
        number: the number of the last record that was read.
    """

    def __init__(self, file: File, most: int) -> None:
        self._file = file
        self._most = most
        self._given: int | None = None  # Records of a block before the first with a value that Python does not have.
        self.number = 0

    def read(self) -> Iterator[Iterable[Any] | _Unread]:
        """Yield the records in batches, each of which is to be consumed before the next one.

        Raises:
            SourceError: the file is torn, or no Avro.
        """
        with opened(self._file) as stream, self._errors():
            check_format(self._file, stream, AVRO)
            head = header(stream)
            decoder = _Decoder(head, self._most)
            for block in blocks(stream, head, self._most):
                for records in decoder.records(block, self.number):
                    if isinstance(records, _Unread | list):
                        yield from self._counted(records)
                        continue
                    yield self._decoded(records, block, decoder)
                    if self._given is None:
                        self.number += block.count
                    else:
                        before, self.number = self.number, self.number + self._given
                        for each in decoder.one_by_one(block, before, self._given):
                            yield from self._counted(each)
                        self._given = None
                        break

    def _counted(self, records: list[Any] | _Unread) -> Iterator[list[Any] | _Unread]:
        yield records
        # Afterwards, since the reader numbers these records from the previous one.
        self.number += records.count if isinstance(records, _Unread) else len(records)

    def _decoded(self, records: Iterable[Any], block: Block, decoder: _Decoder) -> Iterator[Any]:
        with self._errors():
            try:
                yield from records  # Without a step in Python for each: they are counted when one is torn.
            except Exception:
                before, given = self.number, decoder.decodable(block)
                self.number += given  # These are followed by an error with the reason why the block is damaged.
                if not decoder.is_whole(block):
                    raise
                self.number, self._given = before, given

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except SourceError:
            raise
        except EOFError as error:
            raise SourceError(
                f"cannot read {self._file.name}: it is torn: it ends too early behind record {self.number:,}"
            ) from error
        except TornRecord as error:
            torn = f"it is torn: behind record {self.number:,} is {error}"
            raise SourceError(f"cannot read {self._file.name}: {torn}") from error
        except BrokenSchema as error:
            raise SourceError(f"cannot read {self._file.name}: its schema is broken: {error}") from error
        except Exception as error:
            what = f"what comes behind record {self.number:,} is no Avro: {type(error).__name__}: {error}"
            raise SourceError(f"cannot read {self._file.name}: {what}") from error


class _Decoder:
    """The decoder of one file's blocks.

    Args:
        head: the first bytes of the file.
        most: the limit of the memory of a record, in bytes.
    """

    def __init__(self, head: Header, most: int) -> None:
        import fastavro

        self._most = most
        self._sync = head.sync
        self._stored = exactly_read(head.schema)
        # fastavro reads a file whose blocks are not compressed, of which there is never more than one.
        self._file = io.BytesIO(_head(head._replace(schema=json.dumps(self._stored).encode())))
        self._blocks: Any = fastavro.block_reader(self._file)
        self._schema = Schema(self._blocks.writer_schema)
        self._checked = check_indexes(self._blocks.writer_schema)

    def records(self, block: Block, before: int) -> Iterator[Any]:
        """Yield the records of a block together, or in lists as far as they are decoded, and an `_Unread` for the rest.

        Args:
            block: of the file.
            before: how many records are before it.

        Raises:
            EOFError: it ends within a record.
            ValueError: it is no block of records, or has more bytes than its records.
        """
        if block.data is None:
            problem = f"is in a block of more than max_record={self._most:,} bytes, all of which are read together"
            yield _Unread(before + 1, block.count, problem, b"")
            return
        found = self._block(block)
        # Measuring takes about ten times as long as decoding, so only blocks that may be harmful are measured.
        if self._schema.must_be_measured(len(block.data), self._most):
            yield from self._measured(found, block.data, before)
        else:
            yield found
        # fastavro (1.13) ignores bytes after the last counted record of a block: records would be lost silently.
        if left := len(block.data) - found.bytes_.tell():
            raise ValueError(f"its block has bytes behind the last of {block.count:,} records: {left:,} are left over")

    def decodable(self, block: Block) -> int:
        """Count the records of a block that are before the first torn one."""
        number = 0
        with contextlib.suppress(Exception):
            for number, _ in enumerate(self._block(block), start=1):  # noqa: B007
                pass
        return number

    def is_whole(self, block: Block) -> bool:
        """Return whether the bytes of a block consist of its records, so that a failure is caused by a value.

        Raises:
            EOFError: it ends within a record.
            TornRecord: a value in it has no end.
        """
        assert block.data is not None, "its bytes are there"
        ends = [end for end, _ in self._schema.measured(block.data, block.count, self._most)]
        return len(ends) == block.count and ends[-1:] in ([None], [len(block.data)])

    def one_by_one(self, block: Block, before: int, given: int) -> Iterator[list[Any] | _Unread]:
        """Yield the remaining records of a block, and an `_Unread` for each that cannot be decoded."""
        assert block.data is not None, "its bytes are there"
        return self._measured(self._block(block), block.data, before, given)

    def _block(self, block: Block) -> Any:
        assert block.data is not None, "its bytes are there"
        self._file.seek(0)
        self._file.truncate()
        self._file.writelines([_long(block.count), _long(len(block.data)), block.data, self._sync])
        self._file.seek(0)
        # The reader finds the new block where it stopped; a reader for each block would parse the schema again.
        found = next(self._blocks)
        found.writer_schema = self._checked  # A union is another object than the one parsed by fastavro.
        return found

    def _measured(self, found: Any, data: bytes, before: int, given: int = 0) -> Iterator[list[Any] | _Unread]:
        """Decode one record after another, and skip records that are too large, too deep, or have invalid values."""
        start = 0
        for number, (end, problem) in enumerate(self._schema.measured(data, found.num_records, self._most), 1):
            if number > given and problem is None:
                found.bytes_.seek(start)
                try:
                    records: list[Any] | _Unread = list(itertools.islice(found, 1))
                except EOFError:
                    raise
                except Exception as error:
                    records = self._without_value(before + number, data[start:end], error)
                yield records
            elif number > given:
                count = 1 if end is not None else found.num_records - number + 1
                yield _Unread(before + number, count, str(problem), data[start : start + _SHOWN])
            start = len(data) if end is None else end
            found.bytes_.seek(start)

    def _without_value(self, number: int, data: bytes, error: Exception) -> _Unread:
        """Return the report on a record with a value that Python does not have.

        Raises:
            Exception: the error, if nothing shows that a value is to blame.
        """
        plain = self._plainly[0]
        record, other = (_as_stored(data, plain, errors) for errors in ("backslashreplace", "replace"))
        if record is None:
            raise error
        for name, schema in self._plainly[1].items():
            if isinstance(error, UnicodeDecodeError):
                is_to_blame = record[name] != other[name]
            else:
                is_to_blame = _as_stored(data, schema, "strict") is not None
            if is_to_blame:
                problem = f": field {name}: {record[name]!r} is no value of Python ({error})"
                return _Unread(number, 1, problem, record)
        return _Unread(number, 1, f": {record!r} holds no value of Python ({error})", record)

    @functools.cached_property
    def _plainly(self) -> tuple[Any, dict[str, Any]]:
        """Return schemas without logical types: of the record, and of each field."""
        import fastavro

        stored = self._stored
        plain = fastavro.parse_schema(_without_logical_types(stored))
        of_fields = {}
        for place, field in enumerate(stored.get("fields", ()) if isinstance(stored, dict) else ()):
            fields = [*stored["fields"][:place], _without_logical_types(field), *stored["fields"][place + 1 :]]
            of_fields[field["name"]] = fastavro.parse_schema({**stored, "fields": fields})
        return plain, of_fields


def _as_stored(data: bytes, schema: Any, errors: str) -> Any:
    """Return a record by a schema that is like its own, None if it is none."""
    import fastavro

    with contextlib.suppress(Exception):
        return fastavro.schemaless_reader(io.BytesIO(data), schema, None, handle_unicode_errors=errors)
    return None


def _without_logical_types(schema: Any) -> Any:
    """Return a schema by which values are decoded as they are stored."""
    if isinstance(schema, dict):
        return {key: _without_logical_types(part) for key, part in schema.items() if key != "logicalType"}
    return list(map(_without_logical_types, schema)) if isinstance(schema, list) else schema


_SHOWN = 200
"""The number of bytes of a record that are shown if it is not decoded."""


def _head(head: Header) -> bytes:
    meta = {b"avro.schema": head.schema, b"avro.codec": b"null"}
    entries = [_long(len(part)) + part for entry in meta.items() for part in entry]
    return b"".join([b"Obj\x01", _long(len(meta)), *entries, _long(0), head.sync])


def _long(number: int) -> bytes:
    rest, found = number << 1 ^ number >> 63, bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)
