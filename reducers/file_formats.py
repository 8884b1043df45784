"""How items become the bytes of a file: lines of text or of JSON, in an encoding, compressed or not.

A format is a value that travels to the tasks. `sources.text_files` and `sources.json_lines` read what stands here.
"""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, Literal, TypeAlias, cast

from dstream.values.blaming import each, failed_on
from dstream.values.contexts import contextmanager
from dstream.values.fields import field_names

__all__ = [
    "Compression",
    "Encoding",
    "FileFormat",
    "JsonFormat",
    "TextFormat",
    "checked_encoding",
    "compressing",
    "plain",
]

Compression: TypeAlias = Literal["gz", "bz2", "xz", "zst"]


def checked_encoding(encoding: str) -> str:
    """Return `encoding`, refusing what `open` would refuse.

    Raises:
        LookupError: there is no such text encoding.
        TypeError: `encoding` is no str.
    """
    if not isinstance(encoding, str):
        raise TypeError(f"encoding must be a str, not {type(encoding).__name__}")
    io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    return encoding


@dataclass(frozen=True, slots=True)
class TextFormat:
    """Each item as a line of text.

    Attributes:
        to_string: makes the text of an item.
        encoding: of the file.
    """

    to_string: Callable[[Any], str]
    encoding: str

    suffix = ".txt"

    def lines(self, items: Sequence[Any]) -> str:
        """Return the lines of some items, each with its end.

        Raises:
            TypeError: `to_string` gives no text.
            ValueError: a text has a line break, so that readers would find two lines.
        """
        texts = each(self.to_string, items)
        if not {str}.issuperset(map(type, texts)):
            _refuse(items, texts, lambda text: not isinstance(text, str), _no_text)
        made = "\n".join([*texts, ""])
        if "\r" in made or made.count("\n") != len(texts):
            _refuse(items, texts, lambda text: "\n" in text or "\r" in text, _broken)
        return made

    def unencodable(self, items: Sequence[Any], lines: str, error: UnicodeEncodeError) -> str:
        """Say which item the encoding has no bytes for."""
        failed_on(error, items[lines.count("\n", 0, error.start)])
        raise error


def _refuse(
    items: Sequence[Any], texts: Sequence[Any], is_wrong: Callable[[Any], bool], why: Callable[[Any], Exception]
) -> None:
    for item, text in zip(items, texts, strict=True):
        if is_wrong(text):
            error = why(text)
            failed_on(error, item)
            raise error


def _no_text(text: object) -> Exception:
    return TypeError(f"to_string must give a str, not {type(text).__name__}")


def _broken(text: object) -> Exception:
    return ValueError(
        "the text of an item has a line break, so it would be read as several lines; format='json' keeps line breaks"
    )


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """Each item as a line of JSON.

    Attributes:
        encoding: of the file. Characters that it has not are written as escapes.
    """

    encoding: str

    suffix = ".jsonl"

    def lines(self, items: Sequence[Any]) -> str:
        """Return the lines of some items, each with its end.

        Raises:
            TypeError: an item holds what JSON has not.
        """
        return "\n".join([*each(_one_line, items), ""])

    def unencodable(self, items: Sequence[Any], lines: str, error: UnicodeEncodeError) -> str:
        """Return the lines in ASCII."""
        return "\n".join([*(json.dumps(plain(item)) for item in items), ""])


FileFormat: TypeAlias = TextFormat | JsonFormat


def _one_line(item: Any) -> str:
    return _ENCODER.encode(plain(item))


_ENCODER = json.JSONEncoder(ensure_ascii=False)


def plain(value: Any) -> Any:
    """Return `value` as JSON has it: dataclasses and named tuples are objects, other tuples are arrays.

    NaN and infinities stay, which `json.loads` reads and some other programs do not.

    Raises:
        TypeError: it holds something that has no such form, or an object with a key that is no text.

    Example:
        >>> from dstream.values import Entry
        >>> plain([Entry("a", (1, None))])
        [{'key': 'a', 'value': [1, None]}]
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is dict:
        return _object(value.items())
    if kind is list or kind is tuple:
        return [plain(part) for part in value]
    return _plain_of_a_subclass(value)


_SCALARS = frozenset({str, int, float, bool, type(None)})


def _object(pairs: Any) -> dict[str, Any]:
    made = {}
    for key, value in pairs:
        if not isinstance(key, str):
            # `json.dumps` makes texts of numbers, so that 1 and "1" would be one key.
            raise TypeError(f"a key of a JSON object is a text, not {type(key).__name__} {key!r}: make a str of it")
        made[str(key)] = plain(value)
    return made


def _plain_of_a_subclass(value: Any) -> Any:
    if isinstance(value, type):
        raise TypeError(f"JSON has no form for the class {value.__qualname__}")
    if names := field_names(type(value)):
        return {name: plain(getattr(value, name)) for name in names}
    for kind in (str, int, float):  # An Enum of these too.
        if isinstance(value, kind):
            return kind(value) if not isinstance(value, str) else str.__str__(value)
    if isinstance(value, dict):
        return _object(value.items())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    raise TypeError(f"JSON has no form for {type(value).__name__}: make a str, a number, a list or a dict of it before")


@contextmanager
def compressing(file: Any, how: Compression | None) -> Iterator[Any]:
    """Give what writes into `file`, compressed; the end of the block completes it. `file` stays open."""
    if how is None:
        yield file
        return
    with _compressed(file, how) as stream:
        yield stream


def _compressed(file: IO[bytes], how: Compression) -> IO[bytes]:
    if how == "gz":
        import gzip

        # The same items make the same bytes: no name and no time.
        return cast("IO[bytes]", gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0))
    if how == "bz2":
        import bz2

        return bz2.BZ2File(file, "wb")
    if how == "xz":
        import lzma

        return lzma.LZMAFile(file, "wb")
    # The standard library writes Zstandard from Python 3.14 on; pyarrow is here anyway, but slow to import.
    import pyarrow

    return cast("IO[bytes]", pyarrow.CompressedOutputStream(pyarrow.PythonFile(_Kept(file), mode="w"), "zstd"))


class _Kept(io.RawIOBase):
    """A file that who closes this does not close."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._file.write(data)


class Encoding:
    """Makes bytes of the lines of one file, piece by piece; only the first has a byte order mark."""

    def __init__(self, form: FileFormat) -> None:
        self._form = form
        self._encoder = codecs.getincrementalencoder(form.encoding)()

    def encoded(self, items: Sequence[Any]) -> bytes:
        """Return the bytes of some items.

        Raises:
            UnicodeEncodeError: the encoding has no bytes for a character of a text.
        """
        lines = self._form.lines(items)
        state = self._encoder.getstate()
        try:
            return self._encoder.encode(lines)
        except UnicodeEncodeError as error:
            self._encoder.setstate(state)
            return self._encoder.encode(self._form.unencodable(items, lines, error))
