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
        ("zip://*.txt::sftp://ada:SECRET@host/a.zip", "zip://*.txt::sftp://ada:***@host/a.zip"),
    ],
)
def test_secrets_of_urls_are_hidden(url, shown):
    """Users, hosts and paths stay, as far as it is certain where the password ends."""
    assert shown_url(url.replace("SECRET", SECRET)) == shown
    assert shown_url(shown) == shown


@pytest.mark.parametrize("url", ["/tmp/a@b:c", "s3://bucket/a@b", "redis://[::1]:6379/0", "abfss://c@account/a", "a/b"])
def test_urls_without_secrets_stay(url):
    """An @ in a path ends no password."""
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
