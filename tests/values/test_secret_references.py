"""References to secrets: they stay in plans, pickles and messages, and lead to the secret where it is used."""

from __future__ import annotations

import contextlib
import pickle

import pytest

from dstream.base import pickling
from dstream.base.urls import is_reference, looked_up, resolved_url, scrub, shown_url
from dstream.connectors.kafka.settings import kafka_settings
from dstream.connectors.sql.databases import database_of
from dstream.errors import SetupError, SinkError, SourceError
from dstream.filesystem import access
from reducers import to_files, to_kafka, to_sql
from sources import kafka, sql_changes, sql_rows, text_files

SECRET = "correct/h@rse"
PLAIN = "correct-horse"


@pytest.fixture(autouse=True, params=["env", "file"])
def reference(request, monkeypatch, tmp_path):
    """A reference to the secret, of each kind; `PLAIN_SECRET` is one without marks."""
    monkeypatch.setenv("PLAIN_SECRET", PLAIN)
    if request.param == "env":
        monkeypatch.setenv("SHOP_PASSWORD", SECRET)
        return "env:SHOP_PASSWORD"
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    return f"file:{tmp_path / 'secret'}"


def _kafka(reference):
    return {"bootstrap.servers": "localhost:1", "sasl.password": reference, "sasl.username": "ada"}


PG = "postgresql+psycopg://"
MADE = {
    "kafka": lambda at: kafka("t", _kafka(at)),
    "to_kafka": lambda at: to_kafka("t", _kafka(at)),
    "sql_rows": lambda at: sql_rows(f"{PG}ada:{at}@localhost/shop", "SELECT 1"),
    "sql_changes": lambda at: sql_changes(f"{PG}localhost/shop?user=ada&password={at}", "t", order_by="n"),
    "to_sql": lambda at: to_sql(f"{PG}ada:{at}@localhost/shop", "sales"),
    "text_files": lambda at: text_files(f"ftp://ada:{at}@localhost/a.txt"),
    "to_files": lambda at: to_files(f"ftp://ada:{at}@localhost/out"),
}


@pytest.mark.parametrize("made", MADE)
def test_references_are_what_plans_have(made, reference):
    """Neither the pickle of a source or a sink nor what pictures call it has the secret."""
    source = MADE[made](reference)
    pickled = pickling.dumps(source)
    shown = f"{source!r} {getattr(source, 'label', None)}"

    assert any(each.encode() in pickled for each in (reference, reference.replace("/", "%2F").replace(":", "%3A")))
    assert "kafka" in made or "file:" in reference or reference in shown  # Long paths are cut.
    for secret in (SECRET, "correct%2Fh%40rse"):
        assert secret.encode() not in pickled
        assert secret not in shown


def test_references_in_urls_are_shown_and_lead_to_the_secret(reference):
    """In the place of a password and of a parameter that sounds secret; the secret is quoted."""
    url = f"redis://ada:{reference}@host:1/0?db=1&ssl_password={reference}"

    assert shown_url(url) == url
    assert resolved_url(url) == "redis://ada:correct%2Fh%40rse@host:1/0?db=1&ssl_password=correct%2Fh%40rse"
    assert (
        resolved_url("zip://a::sftp://u:env:PLAIN_SECRET@h/b.zip", quoted=False) == f"zip://a::sftp://u:{PLAIN}@h/b.zip"
    )


@pytest.mark.parametrize(
    ("url", "resolved"),
    [
        ("sqlserver://h/db?a=1;password=env:PW;x=1", "sqlserver://h/db?a=1;password=correct%2Fh%40rse;x=1"),
        ("jdbc:sqlserver://h:1;user=u;password=env:PW;", "jdbc:sqlserver://h:1;user=u;password=correct%2Fh%40rse;"),
        ("https://h/a?x=1#token=env:PW", "https://h/a?x=1#token=correct%2Fh%40rse"),
        (
            "mssql:///?odbc_connect=UID%3Du%3BPWD%3Denv:PW",
            "mssql:///?odbc_connect=UID%3Du%3BPWD%3D%7Bcorrect%2Fh%40rse%7D",
        ),
        ("https://h/?to=redis%3A%2F%2Fu%3Aenv%3APW%40h", "https://h/?to=redis%3A%2F%2Fu%3Acorrect%252Fh%2540rse%40h"),
    ],
)
def test_references_behind_and_in_other_parameters_lead_to_the_secret(url, resolved, monkeypatch):
    """Behind a semicolon or a #, and in a connection string or a URL that is a parameter."""
    monkeypatch.setenv("PW", SECRET)

    assert shown_url(url) == url
    assert resolved_url(url) == resolved


@pytest.mark.parametrize(
    "url", ["redis://ada:secret@host", "file:///data", "sqlite:///env:X", "s3://b/env:X@y", "data"]
)
def test_references_are_not_seen_where_no_secret_is(url):
    """Other parts of a URL may look like one."""
    assert resolved_url(url) == url


def test_references_that_lead_nowhere_name_themselves(tmp_path, monkeypatch):
    """A variable or a file that is not there, is empty, is relative or no text."""
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    monkeypatch.delenv("SHOP_PASSWORD", raising=False)
    places = ["env:SHOP_PASSWORD", "file:secret", *(f"file:{tmp_path}/{name}" for name in ("empty", "binary", "gone"))]

    for place in places:
        assert is_reference(place)
        with pytest.raises(SetupError, match=f"the secret {place} "):
            looked_up(place)


def test_references_in_urls_of_fsspec_have_no_marks(reference):
    """It does not understand percent signs, so another file would be opened at another host."""
    with pytest.raises(SetupError, match="has one of"):
        resolved_url(f"ftp://ada:{reference}@host/a", quoted=False)


def test_references_of_kafka_lead_to_the_secret_of_a_client(reference):
    """Clients get the secret, and messages have neither."""
    settings = kafka_settings("kafka", _kafka(reference), "Consumer", (), {"group.id": "g"})

    assert settings.for_client({}, {})["sasl.password"] == SECRET
    assert settings.without_secrets(f"wrong password {SECRET} of {reference}") == f"wrong password *** of {reference}"
    assert reference not in repr(settings)


@pytest.mark.parametrize("failure", [SourceError, SinkError])
def test_references_of_databases_are_looked_up_by_who_connects(reference, failure, monkeypatch):
    """What the driver says of the secret is scrubbed."""
    from sqlalchemy.exc import OperationalError

    asked = []

    def refusing(url, **options):
        asked.append(url)
        raise OperationalError("connect", {}, Exception(f"wrong password {SECRET} at {url}"))

    monkeypatch.setattr("sqlalchemy.create_engine", refusing)
    database = database_of(f"postgresql+psycopg://ada:{reference}@localhost/shop", "to_sql", failure)
    with pytest.raises(failure, match="wrong password") as caught, database.connected():
        pass

    assert asked == ["postgresql+psycopg://ada:correct%2Fh%40rse@localhost/shop"]
    assert reference in str(caught.value)
    assert not any(secret in f"{caught.value} {caught.value.__cause__}" for secret in (SECRET, "h%40rse"))


def test_references_of_file_systems_are_looked_up_by_who_opens(monkeypatch):
    """The split of a file that is not local pickles as its URL."""
    asked = []
    monkeypatch.setattr("fsspec.core.url_to_fs", lambda url: (asked.append(url), (contextlib, ""))[1])
    files = pickle.loads(pickling.dumps(access.ReferredFiles("ftp://ada:env:PLAIN_SECRET@h/a")))

    assert files.suppress is contextlib.suppress
    assert asked == [f"ftp://ada:{PLAIN}@h/a"]
    assert PLAIN.encode() not in pickling.dumps(files)


def test_references_are_scrubbed_from_errors(reference):
    """A library quotes what it was given."""
    error = ValueError(f"no host for {SECRET} or correct%2Fh%40rse")
    scrub(error, f"redis://:{reference}@host")

    assert str(error) == "no host for *** or ***"
