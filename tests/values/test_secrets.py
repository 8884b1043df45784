"""Secrets in URLs: what is shown of them, and what exceptions may say."""

from __future__ import annotations

import pytest

from dstream.base.urls import scrub, shown_url, without_secrets

SECRET = "correct-horse"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://ada:SECRET@host:6379/0", "redis://ada:***@host:6379/0"),
        ("redis://:SECRET/x@host:1/0", "redis://:***@host:1/0"),
        ("redis://:SECRET#x@host:1/0", "redis://:***@host:1/0"),
        ("redis://:SECRET?x@host:1/0", "redis://:***@host:1/0"),
        ("redis://ada:12/SECRET@host:1", "redis://ada:***@host:1"),
        ("redis://SECRET@host", "redis://***@host"),
        ("unix:///a.sock?password=SECRET#x&db=1", "unix:///a.sock?password=***&db=1"),
        ("redis://host?p%61ssword=SECRET", "redis://host?p%61ssword=***"),
        ("file://ada:SECRET@host/a", "file://ada:***@host/a"),
        ("s3://ada:SECRET/x@bucket/a", "s3://ada:***@bucket/a"),
        ("https://SECRET@host/a?X-Amz-Signature=SECRET", "https://***@host/a?X-Amz-Signature=***"),
        ("sqlserver://h/db?a=1;password=SECRET", "sqlserver://h/db?a=1;password=***"),
        ("jdbc:sqlserver://h:1433;user=u;password=SECRET;x=1", "jdbc:sqlserver://h:1433;user=u;password=***"),
        ("jdbc:sqlserver://h:1;password=SECRET;x=1&y=2", "jdbc:sqlserver://h:1;password=***&y=2"),
        ("https://host/a?x=1#password=SECRET", "https://host/a?x=1#password=***"),
        ("https://host/a?x=1?token=SECRET", "https://host/a?x=1?token=***"),
        ("https://host/a?x=1;y#z?token=SECRET", "https://host/a?x=1;y#z?token=***"),
        ("mssql+pyodbc:///?odbc_connect=UID%3Du%3BPWD%3DSECRET&x=1", "mssql+pyodbc:///?odbc_connect=***&x=1"),
        ("mssql+pyodbc:///?odbc_connect=PWD%3D%7BSECRET%3Bx%7D", "mssql+pyodbc:///?odbc_connect=***"),
        ("https://host/a?to=redis%3A%2F%2Fu%3ASECRET%40h", "https://host/a?to=***"),
        ("zip://*.txt::sftp://ada:SECRET@host/a.zip", "zip://*.txt::sftp://ada:***@host/a.zip"),
    ],
)
def test_secrets_of_urls_are_hidden(url, shown):
    """Users, hosts and paths stay, as far as it is certain where the password ends."""
    assert shown_url(url.replace("SECRET", SECRET)) == shown
    assert shown_url(shown) == shown


@pytest.mark.parametrize(
    "url",
    [
        "/tmp/a@b:c",
        "s3://bucket/a@b",
        "redis://[::1]:6379/0",
        "abfss://c@account/a",
        "a/b",
        "jdbc:sqlserver://h:1433;user=u;database=d",
        "mssql+pyodbc:///?odbc_connect=UID%3Du%3BServer%3Dh&to=https%3A%2F%2Fh%2Fa%40b",
    ],
)
def test_urls_without_secrets_stay(url):
    """An @ in a path ends no password, and parameters that do not sound secret are shown."""
    assert shown_url(url) == url


def test_secrets_of_urls_in_a_message_are_hidden():
    """Each of them, and the words around them stay."""
    said = without_secrets(f"no 'ftp://u:{SECRET}@h/a', nor redis://:{SECRET}@h")

    assert said == "no 'ftp://u:***@h/a', nor redis://:***@h"


def test_secrets_are_scrubbed_from_the_whole_chain():
    """What a server quotes, what a library quotes with the percent signs, notes, and names of files."""
    first, second = ValueError("args: `correct/horse`"), OSError(2, "gone", "redis://u:correct%2Fhorse@h")
    second.__cause__, second.__context__ = first, first
    second.add_note("it was correct%2Fhorse")

    scrub(second, "redis://u:correct%2Fhorse@h")

    assert "horse" not in f"{first} {second} {second.__notes__}"
    assert "gone" in str(second)


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:sqlserver://h;user=u;password=correct-horse;x=1",
        "mssql+pyodbc:///?odbc_connect=UID%3Du%3BPWD%3D%7Bcorrect-horse%7D%3Bx%3D1",
    ],
)
def test_secrets_between_other_parameters_are_scrubbed(url):
    """A driver quotes the secret alone, without its neighbors and its braces."""
    error = ValueError(f"no login with {SECRET}")

    scrub(error, url)

    assert str(error) == "no login with ***"
