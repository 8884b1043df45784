"""Break on purpose what reads files of text in columns: `python -m tests.differential.reader_mutations`."""

from __future__ import annotations

from tests.differential.mutating import Mutation, run_all

__all__ = ["MUTATIONS"]

_FILES = "dstream.connectors.files"

MUTATIONS: list[Mutation] = [(module if "." in module else f"{_FILES}.{module}", old, new) for module, old, new in [
    ("csv_columns", 'if _has_only(texts, b"-0123456789") else None\n\n\ndef _floats', "\n\n\ndef _floats"),
    ("csv_columns", "return found if call_function(\"all\"", "return found if True or call_function(\"all\""),
    ("csv_columns", "    if places.null_count != texts.null_count:\n", "    if False:\n"),
    ("csv_columns", "scalar_of(3, pa.int64())", "scalar_of(4, pa.int64())"),
    ("csv_columns", "return None if least is not None and least < _FIRST_DAY else texts", "return texts"),
    ("csv_columns", 'return texts if call_function("all", [found]).as_py() is not False else None', "return texts"),
    ("dstream.schema.arrow_decoders", '"as texts of dates": _dates', '"as texts of dates": _as_it_is'),
    ("dstream.schema.arrow_decoders", ' or longest > _MOST_DIGITS', ""),
    ("dstream.schema.arrow_decoders", ' or scales["min"] != scales["max"]', ""),
    ("dstream.schema.arrow_decoders", 'if call_function("any", [zeros]).as_py():', "if False:"),
    ("csv_columns", ">= _FIRST_DAY * _DAY", ">= -2**63"),
    ("csv_columns", 'text.startswith(b"\\xef\\xbb\\xbf") or ', ""),
    ("csv_columns", 'text.count(b"\\r") != text.count(b"\\r\\n")', "False"),
    ("csv_columns", " or _are_quotes_plain(text, self._quote, self._signs)", " or True"),
    ("csv_columns", "    if np.any(np.searchsorted(places, ends) % 2):\n        return False\n", ""),
    ("csv_columns", "return bool(before.all() and behind.all())", "return bool(before.all())"),
    ("csv_columns", "return bool(before.all() and behind.all())", "return bool(behind.all())"),
    ("csv_columns", 'text if text.endswith(b"\\n") else text + b"\\n"', "text"),
    ("csv_columns", "quoted_strings_can_be_null=False", "quoted_strings_can_be_null=True"),
    ("csv_columns", "                strings_can_be_null=True,\n", ""),
    ("csv_columns", 'self._dialect["quotechar"] or False', "'\"'"),
    ("csv_lines", "if self._as_text and self.ends_rows and self.rows:", "if False:"),
    ("text_columns", " and not _has_long(tokens) else None", " else None"),
    ("csv_lines", "if self._is_tried or self.damaged:", "if self._is_tried:"),
    ("csv_lines", "self._given += lines", "self._given += 0"),
    ("csv", "            self._begin()\n            yield rows", "            yield rows"),
    ("csv", "            lines.skip(count_lines(text))\n", ""),
    ("json_columns", '        if b"\\\\" in self._text:\n            return False\n', ""),
    ("json_columns", 'np.frombuffer(self._text, np.uint8) < _SPACE)) == self._text.count(b"\\n")', 'np.frombuffer(self._text, np.uint8) < 0)) >= 0'),
    ("json_columns", "if not _are_all(column, text):", "if False:"),
    ("json_columns", "        if name in objects[-1]:\n            return None\n", ""),
    ("json_columns", "not set(self._required) <= {path[0] for path in layout.values}", "False"),
    ("text_columns", '_INT = "-?(0|[1-9][0-9]*)"', '_INT = "-?[0-9]+"'),
    ("text_columns", "_without_negative_zero(_cast(tokens, \"double\", _NUMBER))", "_cast(tokens, \"double\", _NUMBER)"),
    ("text_columns", 'yield _cast(tokens, "double", _FLOAT)', 'yield _cast(tokens, "double", _NUMBER)'),
    ("text_columns", "yield tokens if _match(tokens, _ANY) and not _has_long(tokens) else None", "yield tokens"),
    ("json_columns", 'zip(("starts_with", "ends_with"), around, strict=True)', '(("starts_with", around[0]),)'),
    ("json_columns", 'zip(("starts_with", "ends_with"), around, strict=True)', '(("ends_with", around[1]),)'),
    ("json_columns", "    if not np.array_equal(places,", "    if False and not np.array_equal(places,"),
    ("json_columns", "(_END if is_end else _COMMA).fullmatch(behind)", "True"),
    ("json_columns", " or closed > len(path) + is_end", ""),
    ("json_columns", "is_whole = place == len(parts) and not objects", "is_whole = place == len(parts)"),
    ("json_columns", "if call_function(\"any\", [is_null]).as_py():", "if False:"),
    ("json_columns", "any(of_fields.get(path[0]) for path in self.values if len(path) > 1)", "False"),
    ("json_columns", "~has_others & (counts", "(counts"),
    ("json_columns", "type(value) is not dict or list(value) != list(layout.shape)", "type(value) is not dict or set(value) != set(layout.shape)"),
    ("json_columns", "list(of) == list(inner)", "set(of) == set(inner)"),
    ("json_columns", "int(self._ends[place])].decode())", "int(self._ends[place])])"),
    ("json_columns", "(own != usual.type and usual.null_count < len(usual))", "False"),
    ("json_columns", "if len(kinds) > 1 or own is None", "if own is None"),
    ("json_columns", 'np.argsort(np.concatenate([self._places, others]), kind="stable")', "np.arange(len(self._ends))"),
    ("json_lines", "if end != len(line) and line[end:].strip(JSON_SPACES):", "if False:"),
    ("json_lines", "given + first + len(found) + 1", "given + first + 1"),
    ("json_lines", "given += rows.size", "given += 0"),
]]  # fmt: skip


def _tests_of(mutation: Mutation) -> list[str]:
    of_lines = ["tests/sources/test_source_json_lines.py"] if mutation[0].endswith(".json_lines") else []
    tests = ["tests/sources/test_source_text_columns.py", *of_lines, "tests/differential/test_reader_programs.py"]
    return ["-k", "not spark", *tests]


if __name__ == "__main__":
    run_all(MUTATIONS, _tests_of)
