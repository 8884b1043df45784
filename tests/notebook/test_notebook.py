"""What a notebook shows: a stream as a picture, a map as a table, an error as a message."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

CONNECT = {
    "local": 'import dstream as ds\nctx = ds.connect(engine="local", storage="memory:")',
    "spark": (
        "import dstream as ds\n"
        'ctx = ds.connect("local[2]", storage="memory:", config={"spark.driver.memory": "1g"}, warm=False)\n'
        "assert 'pyspark' not in __import__('sys').modules"
    ),
}
CELLS = (
    "ran = []\ndef length(word):\n    ran.append(word)\n    return len(word)",
    'words = ctx.stream(["whale", "sea", "ship"], 2).map(length)\nwords.sorted()',
    "print(list(ran), words.to_list())",
    "from reducers import to_imap\nctx.stream(['a', 'bb'], 2).collect(to_imap('lengths', str, len))",
    "def broken(word):\n    return word / 2\nctx.stream(['whale'], 2).map(broken).to_list()",
    "words.explain()",
    "from reducers import to_ilist\n"
    "ctx.stream(['a'], 2).map(int).on_error(ValueError, into=to_ilist('bad')).to_list()\n"
    "print(ctx.get_list('bad')[0])",
    "import threading\nlock = threading.Lock()\ntry:\n    ctx.stream([1], 2).map(lambda n: lock.locked()).to_list()\n"
    "except Exception as error:\n    print(error)",
    "print(words.count())\nctx.close()",
)


def text_of(outputs) -> str:
    """Return what a cell printed."""
    return "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")


def result_of(outputs):
    """Return what the last line of a cell shows, by type; beside it may stand the place of a progress line."""
    (result,) = (output for output in outputs if output.output_type == "execute_result")
    return result.data


@pytest.fixture(params=["local", "spark"])
def executed(request, notebook, java, monkeypatch):
    """The outputs of each cell, on either engine."""
    for name, value in java().items():
        monkeypatch.setenv(name, value)
    return notebook(CONNECT[request.param], *CELLS)


def test_a_notebook_shows_pictures_tables_and_errors(executed):
    """A stream shows its stages with the cell and line of each call, and nothing ran; the rest works as in a script."""
    connected, _, shown, listed, stored, failed, explained, kept, refused, closed = executed
    picture, table = (result_of(outputs)["text/html"] for outputs in (shown, stored))

    assert connected == []
    assert ET.fromstring(picture).find(".//{http://www.w3.org/2000/svg}rect") is not None
    assert "<title>.map(length) cell 3, line 1</title>" in picture
    assert result_of(shown)["text/plain"] == "stream(list).map(length).sorted()"
    assert text_of(listed) == "[] [5, 3, 4]\n"
    assert "<table>" in table
    assert (failed[-1].output_type, failed[-1].ename) == ("error", "TypeError")
    assert "unsupported operand" in failed[-1].evalue
    told = readable(failed[-1].traceback)
    assert "at cell 6, line 3" in told
    assert "broken raised TypeError at cell 6, line 2" in told
    assert re.search(r"\.map\(length\) +cell 3, line 1", text_of(explained))
    assert "cell 8, line 2" in text_of(kept)
    assert text_of(refused) == "" or ".map(lambda) at cell 9, line 4 cannot be sent" in text_of(refused)
    assert text_of(closed) == "3\n"
    assert "ipykernel" not in told + text_of(explained) + text_of(kept) + text_of(refused)


def readable(traceback) -> str:
    """Return a traceback without its colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(traceback))


def test_a_notebook_shows_a_drawing_that_is_asked_for(notebook):
    """An SVG that `explain` returns shows itself; text is printed; what cannot be drawn shows its chain."""
    drawn, printed, refused = notebook(
        CONNECT["local"] + "\nctx.stream([1]).map(abs).explain('svg')",
        "ctx.stream([1]).map(abs).explain()",
        "ds.Stream.iterate(1, abs).sorted()",
    )

    assert drawn[0].data["image/svg+xml"].startswith("<svg")
    assert text_of(printed).startswith("to_list() on the local engine\n")
    assert refused[0].data["text/html"].startswith("<pre>Stream.iterate(1, abs).sorted()")


def test_head_is_a_table_in_a_notebook(notebook):
    """With a caption, and as text for what shows no tables; where it is captured, it is printed as in a script."""
    _, items, entries, captured = notebook(
        CONNECT["local"] + "\nm = ctx.get_map('m')\nm['a'] = '<b>'",
        "ctx.stream([('sea', 3)]).head()",
        "m.head()",
        "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as text:\n    m.head()\n"
        "print(text.getvalue())",
    )
    shown = [next(output.data for output in outputs if "data" in output) for outputs in (items, entries)]

    assert "<td>&#x27;sea&#x27;</td>" in shown[0]["text/html"]
    assert "(1 item)" in shown[0]["text/plain"]
    assert "&lt;b&gt;" in shown[1]["text/html"]
    assert text_of(captured).startswith("IStreamMap 'm', 1 entry")
