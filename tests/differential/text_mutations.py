"""Break each guard of columns of texts on purpose: the tests have to see it.

`python -m tests.differential.text_mutations` runs them against each mutation, as `column_mutations` does.
"""

from __future__ import annotations

from tests.differential.mutating import of_columns, run_all

__all__ = ["MUTATIONS"]

_TESTS = [
    "tests/engine/test_text_columns.py",
    "tests/sources/test_encoded_lines.py",
    "tests/differential/test_text_programs.py",
]

MUTATIONS = of_columns([
    ("text_functions", "    if not texts.is_ascii:\n        raise Withheld(\"a text beyond ASCII\")", "    if False:\n        raise Withheld(\"a text beyond ASCII\")"),
    ("text_functions", "            if not texts.is_ascii and has_other_blanks(texts):", "            if False:"),
    ("text_functions", "        elif not _encoded(characters).isascii():", "        elif False:"),
    ("text_functions", "            characters = BLANKS\n", "            characters = \" \\t\\n\\r\\x0b\\x0c\"\n"),
    ("text_functions", "    if not before:\n        raise Withheld(\"a replacement between all characters\")\n", ""),
    ("text_functions", " and b\"\\n\" not in before + after:", ":"),
    ("text_functions", "is_ascii = texts.is_ascii and after.isascii()", "is_ascii = texts.is_ascii"),
    ("text_functions", "    if step is not None and (type(step) is not int or step != 1):", "    if False:"),
    ("text_functions", "    if texts.is_ascii:\n        return Texts(_slices_of_bytes", "    if True:\n        return Texts(_slices_of_bytes"),
    ("text_functions", "np.maximum(lengths + bound, 0)", "lengths + bound"),
    ("text_functions", "    kept = np.maximum(last - first, 0)", "    kept = np.abs(last - first)"),
    ("text_functions", "            is_ascii = _encoded(each.value).isascii() and is_ascii\n", "            is_ascii = True\n"),
    ("text_functions", "            is_ascii = is_ascii and each.is_ascii\n", ""),
    ("text_functions", "    if not _encoded(separator):\n        raise Withheld(\"an empty separator\")\n", ""),
    ("text_functions", "    if lists.size and not -int(lengths.min()) <= place < int(lengths.min()):", "    if False:"),
    ("text_functions", "lists.starts() if place >= 0 else lists.ends()", "lists.starts() if place > 0 else lists.ends()"),
    ("text_functions", "    if texts.is_ascii:\n        lengths = np.diff", "    if True:\n        lengths = np.diff"),
    ("text_functions", "np.cumsum(chosen) - 1", "np.arange(len(chosen))"),
    ("text_functions", "[each for each in values if isinstance(each, str)]", "[str(each) for each in values]"),
    ("text_functions", "is_ascii=all(each.is_ascii for each in parts)).taken", "is_ascii=True).taken"),
    ("text_functions", "    except UnicodeEncodeError:\n        raise Withheld(\"a surrogate\") from None", "    except UnicodeEncodeError:\n        return b\"?\""),
    ("text_functions", "        _encoded(pattern)\n        return _bools(match", "        return _bools(match"),
    ("text_functions", "    value = _constant(pattern)\n    _encoded(value)\n", "    value = _constant(pattern)\n"),
    ("text_functions", "    if type(values) not in (tuple, frozenset):", "    if False:"),
    ("text_functions", "    for each in wanted:\n        _encoded(each)\n", ""),
    ("text_functions", '"<": pc.less,', '"<": pc.less_equal,'),
    ("text_functions", '">=": pc.greater_equal,', '">=": pc.greater,'),
    ("text_functions", "or abs(bound) >= _MOST_CHARACTERS", ""),
    ("text_functions", "type(bound) is not int or", ""),
    ("text_functions", "start or 0, stop)", "0, stop)"),
    ("text_functions", "<= place < int(lengths.min()):", "<= place <= int(lengths.min()):"),
    ("text_functions", "not -int(lengths.min()) <= place", "not -int(lengths.max()) <= place"),
    ("text_functions", "    if type(place) is not int:", "    if False:"),
    ("text_functions", "int(lengths.max(initial=0))", "int(lengths.min(initial=0))"),
    ("text_functions", "Texts(found.flatten(), is_ascii=texts.is_ascii)", "Texts(found.flatten(), is_ascii=True)"),
    ("text_functions", "    is_ascii = _encoded(value).isascii()\n    return Texts(pa.repeat", "    is_ascii = True\n    return Texts(pa.repeat"),
    ("text_functions", "    if type(text) is not str:\n        raise Withheld(\"an argument that is no text\")\n", ""),
    ("text_functions", "    value = _constant(column)\n    _encoded(value)\n    return pa.scalar", "    value = _constant(column)\n    return pa.scalar"),
    ("text_functions", "Texts(array_of(offsets, change(data.tobytes())), is_ascii=True)", "Texts(array_of(offsets, data.tobytes()), is_ascii=True)"),
    ("text_functions", "np.minimum(bound, lengths) if bound >= 0", "np.minimum(bound, lengths) if bound > 0"),
    ("text_functions", "np.repeat(offsets[:-1] + first - found[:-1], kept)", "np.repeat(offsets[:-1] + first, kept)"),
    ("text_functions", "        else:\n            raise Withheld(\"a text beside something else\")", "        else:\n            parts.append(pa.array(each.values).cast(pa.string()))"),
    ("text_runs", "    if not texts.is_ascii and has_other_blanks(texts):", "    if False:"),
    ("text_runs", "or code == _NEWLINE", ""),
    ("text_runs", "    if beyond is None and not texts.is_ascii:", "    if False:"),
    ("text_runs", "_of_pattern(pattern, bool(beyond))", "_of_pattern(pattern, True)"),
    ("text_runs", "_of_pattern(pattern, bool(beyond))", "_of_pattern(pattern, False)"),
    ("text_runs", "offsets = before if is_end.all() else before[np.concatenate((_YES, is_end))]", "offsets = before"),
    ("text_runs", "np.cumsum(is_end)", "np.arange(1, len(is_end) + 1)"),
    ("text_runs", "for code in range(128) if chr(code).isspace()", "for code in range(28) if chr(code).isspace()"),
    ("readable_patterns", "        or pattern.flags & re.IGNORECASE\n", ""),
    ("readable_patterns", "or re.search(r\"\\\\[wWdDsS]\", found[2])", ""),
    ("readable_patterns", "or not found[2].isascii()", ""),
    ("readable_patterns", "or pattern.flags & ~_FLAGS", ""),
    ("column_texts", "or np.any(data == _NEWLINE)", ""),
    ("column_texts", "if not np.any(data == ord(each))", "if True"),
    ("column_texts", "        return self.lengths() > 0\n", "        return self.lengths() >= 0\n"),
    ("column_texts", "[first : first + len(array) + 1]", "[: len(array) + 1]"),
    ("column_values", "\"\".join(items).isascii()", "True"),
    ("column_values", "    except (UnicodeEncodeError, pa.ArrowException):", "    except pa.ArrowException:"),
    ("column_values", "    if items.are_few:", "    if False:"),
    ("column_collecting", "known.downstream.supplier or collector.keyed.downstream.supplier", "collector.keyed.downstream.supplier"),
    ("text_groups", "        if not len(each):\n            continue\n", ""),
    ("text_groups", "    except Withheld:\n        yield from tables", "    except Withheld:\n        yield from ()"),
    ("text_groups", "stable_hashes(table.keys.tolist())", "range(len(table))"),
    ("text_groups", "            yield from _together(held)\n            held = []\n            yield each\n            continue", "            yield each\n            continue"),
    ("text_groups", "ranks = np.concatenate([table.ranks for table in tables])[first]", "ranks = np.arange(len(distinct), dtype=np.int64)"),
    ("text_groups", "first[numbered[::-1]] = np.arange(len(numbered) - 1, -1, -1)", "first[numbered] = np.arange(len(numbered))"),
    ("column_collecting", "    if _is_one_int(taken) and isinstance(keys, Texts)", "    if isinstance(taken, Same) and isinstance(keys, Texts)"),
    ("column_collecting", "    if known.only is int and not (isinstance(found, Ints) or _is_one_int(found)):", "    if False:"),
    ("text_groups", "counts * np.int64(numbers.value)", "counts"),
    ("column_steps", "        compare_step(replace(op, action=\"map\"), column, found)", "        pass"),
    ("steps_in_columns", "if op.kind is None else", "if True else"),
    ("evaluating_texts", "    except pa.ArrowException as error:", "    except ZeroDivisionError as error:"),
])  # fmt: skip


if __name__ == "__main__":
    run_all(MUTATIONS, lambda _: _TESTS)
